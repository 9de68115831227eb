/** Further processes of this program on the same port: the kernel spreads connections over them. */

import type {
  LimitsAnswer,
  LimitsChannel,
  LimitsQuestion,
  WorkerLimits,
} from '../../limits/worker-channel.ts';
import { event, type Log } from '../../telemetry/log.ts';
import { sumMetrics } from '../../telemetry/metrics.ts';

export interface WorkersOptions {
  readonly count: number;
  /** The program and its arguments. */
  readonly command: readonly string[];
  /** The environment of the workers. */
  readonly variables: Readonly<Record<string, string | undefined>>;
  /** The address of the first process, whatever the configuration says by now. */
  readonly host: string;
  readonly port: number;
  readonly log: Log;
  /** The metrics of the first process. */
  readonly metrics: () => Promise<string>;
  /** The limits for one more worker: they are those of the first process. */
  readonly limits: () => WorkerLimits;
}

/** What the processes of one port send each other; a worker's first message, `ready`, is not one of these. */
type WorkerMessage =
  /** Sent to the first process: asks for the metrics of all. Sent to a worker: asks for its own. */
  | { readonly ask: number }
  /** The answer to the request with this number. */
  | { readonly metrics: string; readonly to: number }
  /** Sent to the first process: what may be done, and what is over. */
  | { readonly question: LimitsQuestion }
  /** Sent to a worker. */
  | { readonly answer: LimitsAnswer };

function workerMessage(message: unknown): WorkerMessage | undefined {
  const known = typeof message === 'object' && message !== null;
  return known &&
    ('ask' in message || 'metrics' in message || 'question' in message || 'answer' in message)
    ? (message as WorkerMessage)
    : undefined;
}

export interface Workers {
  /** All of them have started (or failed to, which is logged). */
  readonly ready: Promise<void>;
  readonly exited: Promise<void>;
  /** SIGUSR2: another process takes over. */
  signal(name: 'SIGTERM' | 'SIGHUP' | 'SIGUSR2'): void;
  /** The metrics of all processes as those of one. */
  metrics(own: string): Promise<string>;
}

// A worker that is busy for longer is counted with its last answer. Prometheus gives up after ten seconds.
const ANSWER_MS = 4000;

/** The metrics of the workers: asks each, and keeps the last answer of those that have ended. */
class WorkerMetrics {
  readonly #latest = new Map<Bun.Subprocess, string>();
  readonly #waiting = new Map<number, () => void>();
  /** The sum of the workers that have ended. */
  readonly #ended: string[] = [];
  #requests = 0;

  async sum(own: string, workers: Iterable<Bun.Subprocess>): Promise<string> {
    const all = [...workers];
    await Promise.all(all.map((worker) => this.#ask(worker)));
    const texts = all.flatMap((worker) => this.#latest.get(worker) ?? []);
    return sumMetrics([own, ...texts], this.#ended);
  }

  #ask(worker: Bun.Subprocess): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const number = ++this.#requests;
    const timeout = setTimeout(resolve, ANSWER_MS);
    this.#waiting.set(number, resolve);
    send(worker, { ask: number });
    return promise.then(() => {
      clearTimeout(timeout);
      this.#waiting.delete(number);
    });
  }

  received(
    worker: Bun.Subprocess,
    { metrics, to }: Extract<WorkerMessage, { metrics: string }>,
  ): void {
    this.#latest.set(worker, metrics);
    this.#waiting.get(to)?.();
  }

  /** A worker has ended. Its counts stay in the sum, because a counter must never fall. */
  ended(worker: Bun.Subprocess): void {
    const last = this.#latest.get(worker);
    this.#latest.delete(worker);
    if (last !== undefined) this.#ended.push(sumMetrics([], [...this.#ended.splice(0), last]));
  }
}

function send(worker: Bun.Subprocess, message: WorkerMessage): void {
  try {
    worker.send(message);
  } catch {
    // It is ending.
  }
}

const RESTART_MS = 1000;
const MAX_MS = 30_000;

/** Starts the workers. One that dies is started again until `SIGTERM`; after failures at growing intervals. */
export function startWorkers(options: WorkersOptions): Workers {
  const { count, command, variables, host, port, log } = options;
  let stopping = false;
  let failures = 0;
  const running = new Set<Bun.Subprocess>();
  /** Those of them that answer: one that still starts has counted nothing. */
  const ready = new Set<Bun.Subprocess>();
  const workerMetrics = new WorkerMetrics();
  const metrics = (own: string) => workerMetrics.sum(own, ready);
  const started: Promise<void>[] = [];

  const startAgain = (why: Readonly<Record<string, unknown>>) => {
    if (stopping) return;
    event(log, 'worker.died', why, 'error');
    const pause = Math.min(MAX_MS, RESTART_MS * 2 ** failures++);
    setTimeout(() => stopping || void start(), pause);
  };
  const start = (): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const limits = options.limits();
    try {
      const child = Bun.spawn([...command, '--host', host, '--port', String(port)], {
        stdio: ['ignore', 'ignore', 'inherit'],
        env: { ...variables, HOPGATE_WORKER: '1' },
        ipc(message, from) {
          const request = workerMessage(message);
          if (request === undefined) {
            failures = 0;
            ready.add(from);
            resolve();
          } else if ('question' in request) {
            const answer = limits.answer(request.question);
            if (answer !== undefined) send(from, { answer });
          } else if ('metrics' in request) workerMetrics.received(from, request);
          else if ('ask' in request) {
            void options
              .metrics()
              .then(metrics)
              .then((sum) => send(from, { metrics: sum, to: request.ask }));
          }
        },
        onExit(_child, code) {
          running.delete(child);
          ready.delete(child);
          workerMetrics.ended(child);
          limits.ended();
          resolve();
          startAgain({ code });
        },
      });
      running.add(child);
    } catch (thrown) {
      // The program file is missing while it is being replaced.
      resolve();
      startAgain({ why: String(thrown) });
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
export function metricsOfWorkers(own: () => Promise<string>): (own: string) => Promise<string> {
  const waiting = new Map<number, (text: string) => void>();
  let requests = 0;
  const sendToFirst = (message: WorkerMessage) => {
    if (process.connected) process.send?.(message);
  };
  process.on('message', (message) => {
    const received = workerMessage(message);
    if (received === undefined) return;
    if ('metrics' in received) waiting.get(received.to)?.(received.metrics);
    else if ('ask' in received) {
      const { ask } = received;
      void own().then((metrics) => sendToFirst({ metrics, to: ask }));
    }
  });
  return (mine) => {
    const number = ++requests;
    const { promise, resolve } = Promise.withResolvers<string>();
    const timeout = setTimeout(resolve, 2 * ANSWER_MS, mine);
    waiting.set(number, resolve);
    sendToFirst({ ask: number });
    return promise.finally(() => {
      clearTimeout(timeout);
      waiting.delete(number);
    });
  };
}

/** In a worker: how it asks the first process, which holds the limits of all. */
export function limitsOfFirstProcess(): LimitsChannel {
  return {
    send(question) {
      if (!process.connected) return false;
      process.send?.({ question } satisfies WorkerMessage);
      return true;
    },
    listen(listener) {
      process.on('message', (message) => {
        const received = workerMessage(message);
        if (received !== undefined && 'answer' in received) listener(received.answer);
      });
      whenOrphaned(() => listener(undefined));
    },
  };
}

/** In a worker: calls back when the process that started it has ended, however it ended. */
export function whenOrphaned(callback: () => void): void {
  if (process.connected) process.once('disconnect', callback);
  else callback();
}
