/** A restart without a gap: a new process takes over the port before the old one lets go of it. */

import { event, type Log } from '../../telemetry/log.ts';
import { steer, steerNoLonger } from './shared-port.ts';

export interface SuccessionOptions {
  /** The program and its arguments. */
  readonly command: readonly string[];
  readonly variables: Readonly<Record<string, string | undefined>>;
  readonly port: number;
  /** How many sockets of this program listen on it: its own and its workers'. */
  readonly sockets: number;
  readonly log: Log;
  /** The new process can answer: it is the main one from now on. */
  readonly handOver: (pid: number) => void;
  /** New connections go to the new process: the old one may go. */
  readonly leave: () => unknown;
}

/** Tells a process that it succeeds another one, which waits for its word. */
export const SUCCESSOR = 'HOPGATE_SUCCESSOR';

// Who closes a socket resets the connections that wait in its queue. The old process therefore listens
// on for the handshakes that had begun with it, on slow networks too.
const SETTLE_MS = 1000;
const SETTLED_MS = 10 * SETTLE_MS;

export interface Succession {
  /** Whether it took over. */
  readonly took: Promise<boolean>;
  /** Ends a successor that has not taken over yet: the old process stops, and nobody is to go on. */
  giveUp(): void;
}

/**
 * Starts this program again (as it is on disk now) on the same port, which both must share. One that
 * does not come up changes nothing.
 */
export function startSuccessor(options: SuccessionOptions): Succession {
  const { command, variables, port, sockets, log, handOver, leave } = options;
  const { promise: took, resolve } = Promise.withResolvers<boolean>();
  let waiting: Bun.Subprocess | undefined;
  // The watchdog's address is for the old process; the new one feeds it from when it is the main one.
  const { WATCHDOG_PID: _old, ...environment } = variables;
  try {
    const child = Bun.spawn([...command, '--port', String(port)], {
      stdio: ['ignore', 'inherit', 'inherit'],
      env: { ...environment, [SUCCESSOR]: '1' },
      ipc: () => {
        // Nobody is told of one that was given up in the very moment.
        if (waiting === undefined) return;
        waiting = undefined;
        event(log, 'server.succeeded', { pid: child.pid });
        handOver(child.pid);
        // The new sockets stand behind the old ones, and keep the first place behind them while those close.
        setTimeout(leave, steer(port, sockets) ? SETTLE_MS : 0);
        child.disconnect();
        // It must outlive this process.
        child.unref();
        resolve(true);
      },
      onExit: (_child, code) => {
        if (waiting !== undefined) event(log, 'server.succession.failed', { code }, 'error');
        waiting = undefined;
        resolve(false);
      },
    });
    waiting = child;
  } catch (thrown) {
    event(log, 'server.succession.failed', { why: String(thrown) }, 'error');
    resolve(false);
  }
  return {
    took,
    giveUp() {
      waiting?.kill('SIGTERM');
      waiting = undefined;
    },
  };
}

/**
 * Takes over from the process that waits for it; the other's sockets are closed some time later. False: it
 * waits no more, and whoever watches over it knows nothing of a successor.
 */
export function takeOver(port: number): boolean {
  if (!process.connected) return false;
  process.send?.('ready');
  setTimeout(() => steerNoLonger(port), SETTLED_MS).unref();
  return true;
}
