/** Where the keeper of spend runs: in a thread of its own, or on the loop of its process. */

import { startThread } from '../lib/process/own-program.ts';
import { messageOf } from '../lib/text/thrown.ts';
import { setAsideElsewhere } from '../state/versioned-store.ts';
import type { KeeperHandle } from './journal.ts';
import type { ThreadMessage, ThreadRequest, ThreadStart } from './keeper-thread.ts';
import type { KeepDays, SpendKeeper, SpendKeeperOptions } from './spend-keeper.ts';

/** On this loop: statements of a database run elsewhere anyway. */
export function onThisLoop(keeper: SpendKeeper, writer: string): KeeperHandle {
  return {
    look: async () => {
      await keeper.look();
    },
    get through() {
      return keeper.through(writer);
    },
    close: (patienceMs) => keeper.close(patienceMs),
  };
}

type ThreadOptions = ThreadStart & {
  readonly keep: () => KeepDays;
} & Pick<SpendKeeperOptions, 'onProblem' | 'onRecovered' | 'onRefused'>;

type Answer = Extract<ThreadMessage, { answer: number }>;

/** Milliseconds until a thread that could not be started, or died, is started again. */
const AGAIN_MS = 1000;

/** In a thread, which begins with the first work for it. */
export class KeeperThread implements KeeperHandle {
  readonly #waiting = new Map<number, (answer: Answer | undefined) => void>();
  #worker: Worker | undefined;
  #again: ReturnType<typeof setTimeout> | undefined;
  #asked = 0;
  #closed = false;
  /** It could not be started when it was tried last. */
  #hasFailed = false;
  through = 0;

  constructor(private readonly options: ThreadOptions) {}

  async look(): Promise<void> {
    await this.#ask('look');
  }

  async close(patienceMs: number): Promise<void> {
    const worker = this.#worker;
    if (worker !== undefined && !this.#closed) {
      const ended = new Promise((done) => worker.addEventListener('close', done, { once: true }));
      await this.#ask('close', patienceMs);
      await ended;
    }
    this.#closed = true;
    clearTimeout(this.#again);
  }

  /** Without it, what waits would be taken in with the next request. */
  #lookAgain(): void {
    this.#again ??= setTimeout(() => {
      this.#again = undefined;
      void this.look();
    }, AGAIN_MS).unref();
  }

  #ask(
    what: Extract<ThreadRequest, { ask: number }>['what'],
    patienceMs?: number,
  ): Promise<Answer | undefined> {
    if (this.#closed) return Promise.resolve(undefined);
    const keep = this.options.keep();
    const ask = ++this.#asked;
    const worker = this.#started();
    if (worker === undefined) return Promise.resolve(undefined);
    return new Promise((resolve) => {
      this.#waiting.set(ask, resolve);
      // An answer that somebody waits for keeps the process.
      worker.ref();
      worker.postMessage({ ask, what, keep, patienceMs } satisfies ThreadRequest);
    });
  }

  /** Undefined: it cannot be started now. */
  #started(): Worker | undefined {
    if (this.#worker !== undefined) return this.#worker;
    const { path, folder, writer, hasOthers, keep, onProblem, onRecovered } = this.options;
    let worker: Worker;
    try {
      // Not `smol`: its collections made a small request a tenth dearer.
      worker = startThread('money/keeper-thread.ts', 'spend');
    } catch (thrown) {
      this.#hasFailed = true;
      onProblem(messageOf(thrown));
      this.#lookAgain();
      return undefined;
    }
    if (this.#hasFailed) onRecovered();
    this.#hasFailed = false;
    this.#worker = worker;
    worker.addEventListener('message', ({ data }) => this.#heard(data as ThreadMessage));
    worker.addEventListener('error', ({ message }) => this.#died(message));
    worker.addEventListener('close', () => this.#died('its thread has ended'));
    const start = { path, folder, writer, hasOthers };
    worker.postMessage({ start, keep: keep() } satisfies ThreadRequest);
    return worker;
  }

  #heard(message: ThreadMessage): void {
    const { onProblem, onRecovered, onRefused } = this.options;
    if ('problem' in message) onProblem(message.problem);
    else if ('recovered' in message) onRecovered();
    else if ('refused' in message) onRefused(message.refused);
    else if ('aside' in message) setAsideElsewhere(message.aside);
    else {
      this.through = message.through;
      this.#waiting.get(message.answer)?.(message);
      this.#waiting.delete(message.answer);
      if (this.#waiting.size === 0) this.#worker?.unref();
    }
  }

  #died(message: string): void {
    if (this.#worker === undefined) return;
    this.#worker = undefined;
    for (const resolve of this.#waiting.values()) resolve(undefined);
    this.#waiting.clear();
    if (this.#closed || message === 'its thread has ended') return;
    this.options.onProblem(message);
    this.#lookAgain();
  }
}
