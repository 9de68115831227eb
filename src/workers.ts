/** Further processes of this program on the same port: the kernel spreads connections over them. */

import { event, type Log } from './telemetry/log.ts';

export interface WorkersOptions {
  readonly count: number;
  /** The program and its arguments. */
  readonly command: readonly string[];
  /** The environment that they are to have. */
  readonly variables: Readonly<Record<string, string | undefined>>;
  /** The port that the first process is bound to. */
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

/** A worker that dies is started again, unless it was told to stop. */
export function startWorkers(options: WorkersOptions): Workers {
  const { count, command, variables, port, log } = options;
  let stopping = false;
  const running = new Set<Bun.Subprocess>();
  const started: Promise<void>[] = [];

  const start = (): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const child = Bun.spawn([...command, '--port', String(port)], {
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { ...variables, HOPGATE_WORKER: '1' },
      ipc: () => resolve(),
      onExit: (_child, code) => {
        running.delete(child);
        resolve();
        if (stopping) return;
        event(log, 'worker.died', { code }, 'error');
        setTimeout(() => stopping || void start(), 1000);
      },
    });
    running.add(child);
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
