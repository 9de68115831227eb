/** Whether an engine answers: a deadline for every call, no calls while it is away, a ping until it is back. */

import { EngineAway, type EngineName, type EngineState } from '../lib/store/engines.ts';

export interface WatchOptions {
  readonly name: EngineName;
  /** Rejects if the engine does not answer. Its deadline is that of the watch. */
  readonly ping: () => Promise<unknown>;
  /** Whether an error says that the engine is away, and not that the call was wrong. */
  readonly isAway: (thrown: unknown) => boolean;
  /** What is wrong with the connection now, where the client knows it. */
  readonly trouble?: () => Error | undefined;
  /** It is away, or back. */
  readonly onChange: (state: EngineState) => void;
  /** Milliseconds between two pings. */
  readonly pingMs?: number;
}

const PING_MS = 500;
const PING_DEADLINE_MS = 1000;
/** The first call also connects; its deadline is no shorter. */
const FIRST_MS = 2000;

export class EngineWatch {
  readonly #options: WatchOptions;
  #status: EngineState['status'] = 'connecting';
  #since = Date.now();
  #message: string | undefined;
  #trips = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #closed = false;

  constructor(options: WatchOptions) {
    this.#options = options;
  }

  get state(): EngineState {
    return {
      name: this.#options.name,
      status: this.#status,
      since: this.#since,
      ...(this.#message !== undefined && { message: this.#message }),
      trips: this.#trips,
    };
  }

  /** @throws EngineAway at the deadline, or at once while the engine is away; else what `work` throws */
  async use<T>(deadlineMs: number, work: () => Promise<T>): Promise<T> {
    const { name, isAway } = this.#options;
    if (this.#closed) throw new EngineAway(name, `the ${name} is closed`);
    if (this.#status === 'down') throw new EngineAway(name, this.#message!);
    this.#trips++;
    let result: T;
    try {
      const patience = this.#status === 'connecting' ? Math.max(deadlineMs, FIRST_MS) : deadlineMs;
      result = await this.#within(patience, work());
    } catch (thrown) {
      if (!isAway(thrown) && !(thrown instanceof EngineAway)) {
        this.#up();
        throw thrown;
      }
      const message = messageOf(thrown);
      this.#down(message);
      throw thrown instanceof EngineAway
        ? thrown
        : new EngineAway(name, message, { cause: thrown });
    }
    this.#up();
    return result;
  }

  /** Connects now, and not with the first call. Never rejects. */
  async open(): Promise<void> {
    await this.use(FIRST_MS, this.#options.ping).catch(() => {});
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
  }

  async #within<T>(deadlineMs: number, work: Promise<T>): Promise<T> {
    const { promise, reject } = Promise.withResolvers<never>();
    const late = () => {
      const trouble = this.#options.trouble?.();
      const why = trouble === undefined ? '' : `: ${messageOf(trouble)}`;
      reject(new EngineAway(this.#options.name, `no answer within ${deadlineMs} ms${why}`));
    };
    // A busy process sees its timers before the answers that have arrived meanwhile: those are read first.
    const timer = setTimeout(() => setImmediate(() => setImmediate(late)), deadlineMs);
    try {
      return await Promise.race([work, promise]);
    } finally {
      clearTimeout(timer);
    }
  }

  #up(): void {
    // A late answer says nothing about now: only the ping ends a time away.
    if (this.#status === 'connecting') this.#change('up', undefined);
  }

  #down(message: string): void {
    if (this.#closed || this.#status === 'down') return;
    this.#change('down', message);
    this.#schedule();
  }

  #change(status: EngineState['status'], message: string | undefined): void {
    this.#status = status;
    this.#since = Date.now();
    this.#message = message;
    this.#options.onChange(this.state);
  }

  #schedule(): void {
    this.#timer = setTimeout(() => void this.#ping(), this.#options.pingMs ?? PING_MS);
    this.#timer.unref();
  }

  async #ping(): Promise<void> {
    try {
      await this.#within(PING_DEADLINE_MS, this.#options.ping());
    } catch (thrown) {
      this.#message = messageOf(thrown);
      if (!this.#closed) this.#schedule();
      return;
    }
    if (!this.#closed) this.#change('up', undefined);
  }
}

/** Several addresses that were tried make an error without a message. */
function messageOf(thrown: unknown): string {
  if (thrown instanceof AggregateError && thrown.message === '') return messageOf(thrown.errors[0]);
  if (!(thrown instanceof Error)) return String(thrown);
  const { code } = thrown as { code?: unknown };
  return thrown.message !== '' ? thrown.message : String(code ?? thrown.name);
}
