/** What systemd is told of a running server: ready, reloading, stopping, and that it is alive (sd_notify(3)). */

import { event, type Log } from '../../telemetry/log.ts';
import { datagramSender } from './unix-datagram.ts';

export interface Supervisor {
  /** It can answer; from here on the watchdog is fed. */
  ready(url: string): void;
  /** The configuration is loaded again; `reloaded` must follow. */
  reloading(): void;
  reloaded(): void;
  /** Another process is the main one from now on. */
  handOver(pid: number): void;
  /** It takes no new connections. */
  stopping(): void;
  /** Ends the feeding of the watchdog. */
  close(): void;
}

const NOBODY: Supervisor = {
  ready: () => {},
  reloading: () => {},
  reloaded: () => {},
  handOver: () => {},
  stopping: () => {},
  close: () => {},
};

/**
 * Speaks to `$NOTIFY_SOCKET`; does nothing where there is none. The watchdog is fed from the event
 * loop twice in its time, so that a loop that hangs is noticed.
 */
export function systemdNotifier(
  variables: Readonly<Record<string, string | undefined>>,
  log: Log,
): Supervisor {
  if (variables.LISTEN_FDS !== undefined) {
    // Bun's server cannot take over a socket that somebody else opened.
    event(log, 'socket.activation.ignored', { listen_fds: variables.LISTEN_FDS }, 'warn');
  }
  const path = variables.NOTIFY_SOCKET;
  if (path === undefined || path === '') return NOBODY;
  const sender = datagramSender(path);
  if (sender === undefined) {
    event(log, 'supervisor.unreachable', { socket: path }, 'warn');
    return NOBODY;
  }
  const tell = (...lines: string[]) => {
    if (!sender.send(lines.join('\n')))
      event(log, 'supervisor.unreachable', { socket: path }, 'warn');
  };
  const interval = watchdogInterval(variables);
  let feeding: ReturnType<typeof setInterval> | undefined;
  let handedOver = false;
  return {
    ready(url) {
      tell('READY=1', `STATUS=listening on ${url}`);
      if (interval === undefined) return;
      feeding = setInterval(() => sender.send('WATCHDOG=1'), interval);
      feeding.unref();
    },
    // The time is what tells systemd which reload it is that ends with the next READY.
    reloading: () => tell('RELOADING=1', `MONOTONIC_USEC=${sender.monotonic()}`),
    reloaded: () => tell('READY=1'),
    handOver(pid) {
      handedOver = true;
      clearInterval(feeding);
      tell(`MAINPID=${pid}`, 'READY=1');
    },
    // The feeding goes on: draining may take longer than the watchdog's patience.
    stopping() {
      if (!handedOver) tell('STOPPING=1', 'STATUS=waiting for open streams');
    },
    close: () => clearInterval(feeding),
  };
}

/** Milliseconds between feedings; undefined when no watchdog waits for this very process. */
function watchdogInterval(
  variables: Readonly<Record<string, string | undefined>>,
): number | undefined {
  const { WATCHDOG_USEC, WATCHDOG_PID } = variables;
  if (WATCHDOG_USEC === undefined || !/^[1-9]\d{0,15}$/.test(WATCHDOG_USEC)) return undefined;
  if (WATCHDOG_PID !== undefined && WATCHDOG_PID !== String(process.pid)) return undefined;
  return Math.max(1, Number(WATCHDOG_USEC) / 2000);
}
