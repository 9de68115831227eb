/** Sends datagrams to a Unix socket, which the socket APIs of Bun and Node cannot do. */

import { FFIType, ptr } from 'bun:ffi';
import { libc } from '../../lib/process/libc.ts';

export interface DatagramSender {
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
