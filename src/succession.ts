/** A restart without a gap: a new process takes over the port before the old one lets go of it. */

import { event, type Log } from './telemetry/log.ts';

export interface SuccessionOptions {
  /** The program and its arguments. */
  readonly command: readonly string[];
  readonly variables: Readonly<Record<string, string | undefined>>;
  readonly port: number;
  readonly log: Log;
  /** The new process can answer: the old one may go. */
  readonly taken: (pid: number) => void;
}

/** Tells a process that it succeeds another one, which waits for its word. */
export const SUCCESSOR = 'HOPGATE_SUCCESSOR';

/**
 * Starts this program again (as it is on disk now) on the same port, which both must share. One that
 * does not come up changes nothing. Resolves with whether it took over.
 */
export function succeed(options: SuccessionOptions): Promise<boolean> {
  const { command, variables, port, log, taken } = options;
  const { promise, resolve } = Promise.withResolvers<boolean>();
  // The watchdog's address is for the old process; the new one feeds it from when it is the main one.
  const { WATCHDOG_PID: _old, ...environment } = variables;
  try {
    const child = Bun.spawn([...command, '--port', String(port)], {
      stdio: ['ignore', 'inherit', 'inherit'],
      env: { ...environment, [SUCCESSOR]: '1' },
      ipc: () => {
        event(log, 'server.succeeded', { pid: child.pid });
        taken(child.pid);
        child.disconnect();
        // It must outlive this process.
        child.unref();
        resolve(true);
      },
      onExit: (_child, code) => {
        event(log, 'server.succession.failed', { code }, 'error');
        resolve(false);
      },
    });
  } catch (thrown) {
    event(log, 'server.succession.failed', { why: String(thrown) }, 'error');
    resolve(false);
  }
  return promise;
}
