/** Restart without downtime: a new process takes over the port before the old one releases it. */

import { event, type Log } from '../../telemetry/log.ts';
import { directConnections, spreadConnections } from './port.ts';

export interface RestartOptions {
  /** The program and its arguments. */
  readonly command: readonly string[];
  readonly variables: Readonly<Record<string, string | undefined>>;
  readonly port: number;
  /** How many sockets of this program listen on it: its own and its workers'. */
  readonly sockets: number;
  readonly log: Log;
  /** Milliseconds that the new process has to start. */
  readonly startMs?: number;
  /** The new process can answer: it is the main one from now on. */
  readonly onReady: (pid: number) => void;
  /** New connections go to the new process: the old one may stop. */
  readonly onHandedOver: () => unknown;
}

/** Tells a process that it takes over from another one, which waits for its message. */
export const SUCCESSOR = 'HOPGATE_SUCCESSOR';

// Closing a listening socket resets the connections in its queue. The old process therefore keeps listening
// until the handshakes that began with it have ended, on slow networks too.
const SETTLE_MS = 1000;
const SETTLED_MS = 10 * SETTLE_MS;

/** As long as systemd gives a service (TimeoutStartSec). One that hangs would keep every later one from starting. */
const START_MS = 60_000;

export interface Restart {
  /** Whether the new process took over. */
  readonly succeeded: Promise<boolean>;
  /** Ends a successor that has not taken over yet: the old process stops for good. */
  cancel(): void;
}

/**
 * Starts this program again, as it is on disk now, on the same port, which both must share. A successor that
 * does not start changes nothing.
 */
export function startSuccessor(options: RestartOptions): Restart {
  const { command, variables, port, sockets, log, onReady, onHandedOver } = options;
  const { startMs = START_MS } = options;
  const { promise: succeeded, resolve } = Promise.withResolvers<boolean>();
  let waiting: Bun.Subprocess | undefined;
  let late: ReturnType<typeof setTimeout> | undefined;
  const fail = (why: Readonly<Record<string, unknown>>) =>
    event(log, 'server.succession.failed', why, 'error');
  // The pid is that of the old process. Without one the new process feeds the watchdog as soon as it is the main one.
  const { WATCHDOG_PID: _old, ...environment } = variables;
  try {
    const child = Bun.spawn([...command, '--port', String(port)], {
      stdio: ['ignore', 'inherit', 'inherit'],
      env: { ...environment, [SUCCESSOR]: '1' },
      ipc: () => {
        // It was cancelled at the last moment.
        if (waiting === undefined) return;
        waiting = undefined;
        clearTimeout(late);
        onReady(child.pid);
        event(log, 'server.succeeded', { pid: child.pid });
        // The sockets of the new process come after the old ones, so this is the index of its first one.
        setTimeout(onHandedOver, directConnections(port, sockets) ? SETTLE_MS : 0);
        child.disconnect();
        // It must outlive this process.
        child.unref();
        resolve(true);
      },
      onExit: (_child, code) => {
        if (waiting !== undefined) fail({ code });
        waiting = undefined;
        clearTimeout(late);
        resolve(false);
      },
    });
    waiting = child;
    late = setTimeout(() => {
      waiting = undefined;
      child.kill('SIGKILL');
      fail({ why: `the new process did not start within ${startMs / 1000} s` });
    }, startMs);
    late.unref();
  } catch (thrown) {
    fail({ why: String(thrown) });
    resolve(false);
  }
  return {
    succeeded,
    cancel() {
      waiting?.kill('SIGTERM');
      waiting = undefined;
    },
  };
}

/**
 * Takes over from the process that started this one, which closes its sockets some time later. False: the old
 * process is gone already, and the service manager does not know of this one.
 */
export function takeOver(port: number): boolean {
  if (!process.connected) return false;
  process.send?.('ready');
  setTimeout(() => spreadConnections(port), SETTLED_MS).unref();
  return true;
}
