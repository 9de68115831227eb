/** Further processes of this program on the same port: the kernel spreads connections over them. */

import { event, type Log } from './telemetry/log.ts';

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
}

export interface Workers {
  /** All of them have started (or failed to, which is logged). */
  readonly ready: Promise<void>;
  readonly exited: Promise<void>;
  /** SIGUSR2: another process succeeds them. */
  signal(name: 'SIGTERM' | 'SIGHUP' | 'SIGUSR2'): void;
}

const RESTART_MS = 1000;
const LONGEST_MS = 30_000;

/** A worker that dies is started again, unless it was told to stop; at growing intervals while none comes up. */
export function startWorkers(options: WorkersOptions): Workers {
  const { count, command, variables, host, port, log } = options;
  let stopping = false;
  let failures = 0;
  const running = new Set<Bun.Subprocess>();
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
        ipc() {
          failures = 0;
          resolve();
        },
        onExit(_child, code) {
          running.delete(child);
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
  };
}

/** In a worker: tells when the process that started it is there no more, however it ended. */
export function whenOrphaned(gone: () => void): void {
  if (process.connected) process.once('disconnect', gone);
  else gone();
}
