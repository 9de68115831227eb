/** Further processes of this program on the same port: the kernel spreads connections over them. */

import { event, type Log } from '../../telemetry/log.ts';
import { sumMetrics } from '../../telemetry/sum-metrics.ts';

export interface WorkersOptions {
  readonly count: number;
  /** The program and its arguments. */
  readonly command: readonly string[];
  /** The environment that they are to have. */
  readonly variables: Readonly<Record<string, string | undefined>>;
  /** What the first process is bound to, whatever the configuration says by now. */
  readonly host: string;
  readonly port: number;
  readonly log: Log;
  /** The metrics of the first process. */
  readonly metrics: () => string;
}

/** What processes of one port tell each other, beside the first word of a worker that it is ready. */
type Word =
  /** To the first process: those of all are wanted. To a worker: its own are. */
  | { readonly ask: number }
  /** The answer. */
  | { readonly metrics: string; readonly to: number };

function wordIn(message: unknown): Word | undefined {
  const known = typeof message === 'object' && message !== null;
  return known && ('ask' in message || 'metrics' in message) ? (message as Word) : undefined;
}

export interface Workers {
  /** All of them have started (or failed to, which is logged). */
  readonly ready: Promise<void>;
  readonly exited: Promise<void>;
  /** SIGUSR2: another process succeeds them. */
  signal(name: 'SIGTERM' | 'SIGHUP' | 'SIGUSR2'): void;
  /** The metrics of all processes as those of one. */
  metrics(own: string): Promise<string>;
}

// Whoever is busy for longer is told of as it was when it last was asked.
const ANSWER_MS = 1000;

/** What the workers counted: asks each, and remembers what those that are gone said last. */
class Counted {
  readonly #last = new Map<Bun.Subprocess, string>();
  readonly #asked = new Map<number, () => void>();
  readonly #past: string[] = [];
  #asks = 0;

  async sum(own: string, workers: Iterable<Bun.Subprocess>): Promise<string> {
    const all = [...workers];
    await Promise.all(all.map((worker) => this.#ask(worker)));
    const texts = all.flatMap((worker) => this.#last.get(worker) ?? []);
    return sumMetrics([own, ...texts], this.#past);
  }

  #ask(worker: Bun.Subprocess): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const number = ++this.#asks;
    const late = setTimeout(resolve, ANSWER_MS);
    this.#asked.set(number, resolve);
    send(worker, { ask: number });
    return promise.then(() => {
      clearTimeout(late);
      this.#asked.delete(number);
    });
  }

  answered(worker: Bun.Subprocess, { metrics, to }: Extract<Word, { metrics: string }>): void {
    this.#last.set(worker, metrics);
    this.#asked.get(to)?.();
  }

  /** What it counted stays counted, else all sums would fall. */
  gone(worker: Bun.Subprocess): void {
    const last = this.#last.get(worker);
    this.#last.delete(worker);
    if (last !== undefined) this.#past.push(sumMetrics([], [...this.#past.splice(0), last]));
  }
}

function send(worker: Bun.Subprocess, word: Word): void {
  try {
    worker.send(word);
  } catch {
    // It is ending.
  }
}

const RESTART_MS = 1000;
const LONGEST_MS = 30_000;

/** A worker that dies is started again, unless it was told to stop; at growing intervals while none comes up. */
export function startWorkers(options: WorkersOptions): Workers {
  const { count, command, variables, host, port, log } = options;
  let stopping = false;
  let failures = 0;
  const running = new Set<Bun.Subprocess>();
  const counted = new Counted();
  const metrics = (own: string) => counted.sum(own, running);
  const started: Promise<void>[] = [];

  const again = (why: Readonly<Record<string, unknown>>) => {
    if (stopping) return;
    event(log, 'worker.died', why, 'error');
    const pause = Math.min(LONGEST_MS, RESTART_MS * 2 ** failures++);
    setTimeout(() => stopping || void start(), pause);
  };
  const start = (): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<void>();
    try {
      const child = Bun.spawn([...command, '--host', host, '--port', String(port)], {
        stdio: ['ignore', 'ignore', 'inherit'],
        env: { ...variables, HOPGATE_WORKER: '1' },
        ipc(message, from) {
          const word = wordIn(message);
          if (word === undefined) {
            failures = 0;
            resolve();
          } else if ('metrics' in word) counted.answered(from, word);
          else {
            void metrics(options.metrics()).then((sum) =>
              send(from, { metrics: sum, to: word.ask }),
            );
          }
        },
        onExit(_child, code) {
          running.delete(child);
          counted.gone(child);
          resolve();
          again({ code });
        },
      });
      running.add(child);
    } catch (thrown) {
      // The program is not there for the moment: it is being replaced.
      resolve();
      again({ why: String(thrown) });
    }
    return promise;
  };
  for (let i = 0; i < count; i++) started.push(start());
  return {
    ready: Promise.all(started).then(() => undefined),
    get exited() {
      return Promise.all([...running].map((child) => child.exited)).then(() => undefined);
    },
    signal(name) {
      if (name === 'SIGTERM') stopping = true;
      for (const child of running) child.kill(name);
    },
    metrics,
  };
}

/** In a worker: answers the first process, and asks it for the metrics of all. */
export function metricsOfWorkers(own: () => string): (own: string) => Promise<string> {
  const asked = new Map<number, (text: string) => void>();
  let asks = 0;
  const tell = (word: Word) => {
    if (process.connected) process.send?.(word);
  };
  process.on('message', (message) => {
    const word = wordIn(message);
    if (word === undefined) return;
    if ('metrics' in word) asked.get(word.to)?.(word.metrics);
    else tell({ metrics: own(), to: word.ask });
  });
  return (mine) => {
    const number = ++asks;
    const { promise, resolve } = Promise.withResolvers<string>();
    const late = setTimeout(resolve, 2 * ANSWER_MS, mine);
    asked.set(number, resolve);
    tell({ ask: number });
    return promise.finally(() => {
      clearTimeout(late);
      asked.delete(number);
    });
  };
}

/** In a worker: tells when the process that started it is there no more, however it ended. */
export function whenOrphaned(gone: () => void): void {
  if (process.connected) process.once('disconnect', gone);
  else gone();
}
