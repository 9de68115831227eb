/** Notifies systemd that the server is ready, reloads, stops, and is alive (sd_notify(3)). */

import { FFIType, ptr } from 'bun:ffi';
import { libc } from '../../lib/process/libc.ts';
import { event, type Log } from '../../telemetry/log.ts';

export interface SystemdNotifier {
  /** The server can answer; from here on the watchdog is fed. */
  ready(url: string): void;
  /** The configuration is loaded again; `reloaded` must follow. */
  reloading(): void;
  reloaded(): void;
  /** Another process is the main one from now on. */
  handOver(pid: number): void;
  /** The server takes no new connections. */
  stopping(): void;
  /** Ends the feeding of the watchdog. */
  close(): void;
}

const NO_SYSTEMD: SystemdNotifier = {
  ready: () => {},
  reloading: () => {},
  reloaded: () => {},
  handOver: () => {},
  stopping: () => {},
  close: () => {},
};

/**
 * Writes to `$NOTIFY_SOCKET`; does nothing where there is none. The event loop feeds the watchdog twice in its
 * interval, so that systemd notices a loop that hangs.
 */
export function systemdNotifier(
  variables: Readonly<Record<string, string | undefined>>,
  log: Log,
): SystemdNotifier {
  if (variables.LISTEN_FDS !== undefined) {
    // Bun's server cannot use a socket that another process opened.
    event(log, 'socket.activation.ignored', { listen_fds: variables.LISTEN_FDS }, 'warn');
  }
  const path = variables.NOTIFY_SOCKET;
  if (path === undefined || path === '') return NO_SYSTEMD;
  const sender = datagramSender(path);
  if (sender === undefined) {
    event(log, 'supervisor.unreachable', { socket: path }, 'warn');
    return NO_SYSTEMD;
  }
  const notify = (...lines: string[]) => {
    if (!sender.send(lines.join('\n')))
      event(log, 'supervisor.unreachable', { socket: path }, 'warn');
  };
  const interval = watchdogInterval(variables);
  let watchdogTimer: ReturnType<typeof setInterval> | undefined;
  let handedOver = false;
  return {
    ready(url) {
      notify('READY=1', `STATUS=listening on ${url}`);
      if (interval === undefined) return;
      watchdogTimer = setInterval(() => sender.send('WATCHDOG=1'), interval);
      watchdogTimer.unref();
    },
    // By the time systemd knows which reload the next READY ends.
    reloading: () => notify('RELOADING=1', `MONOTONIC_USEC=${sender.monotonic()}`),
    reloaded: () => notify('READY=1'),
    handOver(pid) {
      handedOver = true;
      clearInterval(watchdogTimer);
      notify(`MAINPID=${pid}`, 'READY=1');
    },
    // The watchdog is fed on: draining may take longer than its interval.
    stopping() {
      if (!handedOver) notify('STOPPING=1', 'STATUS=waiting for open streams');
    },
    close: () => clearInterval(watchdogTimer),
  };
}

/** Milliseconds between two feeds of the watchdog; undefined when none watches this process. */
function watchdogInterval(
  variables: Readonly<Record<string, string | undefined>>,
): number | undefined {
  const { WATCHDOG_USEC, WATCHDOG_PID } = variables;
  if (WATCHDOG_USEC === undefined || !/^[1-9]\d{0,15}$/.test(WATCHDOG_USEC)) return undefined;
  if (WATCHDOG_PID !== undefined && WATCHDOG_PID !== String(process.pid)) return undefined;
  return Math.max(1, Number(WATCHDOG_USEC) / 2000);
}

interface DatagramSender {
  /** False when it did not arrive. Never blocks, never throws. */
  send(text: string): boolean;
  /** Microseconds of the system's monotonic clock. */
  monotonic(): bigint;
}

const SYMBOLS = {
  socket: { args: [FFIType.i32, FFIType.i32, FFIType.i32], returns: FFIType.i32 },
  sendto: {
    args: [FFIType.i32, FFIType.ptr, FFIType.u64, FFIType.i32, FFIType.ptr, FFIType.u32],
    returns: FFIType.i64,
  },
  close: { args: [FFIType.i32], returns: FFIType.i32 },
  clock_gettime: { args: [FFIType.i32, FFIType.ptr], returns: FFIType.i32 },
} as const;

// Linux; the same on every architecture that hopgate is built for.
const AF_UNIX = 1;
const SOCK_DGRAM_CLOEXEC = 2 | 0x80000;
const DONTWAIT_NOSIGNAL = 0x40 | 0x4000;
const CLOCK_MONOTONIC = 1;

/** `sockaddr_un`: a path, or with `@` in front a name in the abstract namespace (unix(7)). */
function address(path: string): Uint8Array {
  const bytes = new TextEncoder().encode(path);
  const abstract = path.startsWith('@');
  const out = new Uint8Array(2 + bytes.length + (abstract ? 0 : 1));
  new DataView(out.buffer).setUint16(0, AF_UNIX, true);
  out.set(bytes, 2);
  if (abstract) out[2] = 0;
  return out;
}

/** A sender to a socket; undefined outside Linux and where there is no C library. */
export function datagramSender(path: string): DatagramSender | undefined {
  if (!/^[/@]./.test(path)) return undefined;
  const system = libc(SYMBOLS);
  if (system === undefined) return undefined;
  const { socket, sendto, close, clock_gettime } = system;
  const to = address(path);
  return {
    send(text) {
      const bytes = new TextEncoder().encode(text);
      const fd = socket(AF_UNIX, SOCK_DGRAM_CLOEXEC, 0);
      if (fd < 0) return false;
      const sent = sendto(fd, ptr(bytes), bytes.length, DONTWAIT_NOSIGNAL, ptr(to), to.length);
      close(fd);
      return Number(sent) === bytes.length;
    },
    monotonic() {
      const time = new BigInt64Array(2);
      clock_gettime(CLOCK_MONOTONIC, ptr(time));
      return time[0]! * 1_000_000n + time[1]! / 1000n;
    },
  };
}
