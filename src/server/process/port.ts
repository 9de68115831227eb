/** Directs new connections to one of the sockets that share a port (Linux, SO_REUSEPORT with a BPF program). */

import { FFIType, ptr } from 'bun:ffi';
import { libc } from '../../lib/process/libc.ts';
import { watchedSockets } from './listening-sockets.ts';

const SYMBOLS = {
  setsockopt: {
    args: [FFIType.i32, FFIType.i32, FFIType.i32, FFIType.ptr, FFIType.u32],
    returns: FFIType.i32,
  },
} as const;

// socket(7); the same on every architecture that hopgate is built for.
const SOL_SOCKET = 1;
const SO_ATTACH_REUSEPORT_CBPF = 51;
const SO_DETACH_REUSEPORT_BPF = 68;
const BPF_RET_K = 0x06;
const SOCK_FPROG = 16;
const SOCK_FILTER = 8;

/**
 * Directs every new connection to the socket that was the `index`th, counted from 0, to listen on the port. This
 * process must listen on it too. When a socket closes, the last one takes its index; where no socket has the
 * index, the kernel spreads connections as usual. Handshakes end at the socket where they began.
 *
 * @returns false where the system cannot do this
 */
export function directConnections(port: number, index: number): boolean {
  // `sock_fprog` (number of instructions, their address) and, in the same buffer so that both live equally long,
  // the only instruction.
  const program = new Uint8Array(SOCK_FPROG + SOCK_FILTER);
  const fields = new DataView(program.buffer);
  fields.setUint16(0, 1, true);
  fields.setBigUint64(8, BigInt(ptr(program)) + BigInt(SOCK_FPROG), true);
  fields.setUint16(SOCK_FPROG, BPF_RET_K, true);
  fields.setUint32(SOCK_FPROG + 4, index, true);
  return setOption(port, SO_ATTACH_REUSEPORT_CBPF, program, SOCK_FPROG);
}

/** Lets the kernel spread connections over all sockets of the port again. */
export function spreadConnections(port: number): boolean {
  return setOption(port, SO_DETACH_REUSEPORT_BPF, new Uint8Array(4), 4);
}

function setOption(port: number, option: number, value: Uint8Array, length: number): boolean {
  const system = libc(SYMBOLS);
  const listening = watchedSockets().find((socket) => socket.port === port);
  if (system === undefined || listening === undefined) return false;
  return system.setsockopt(listening.socket, SOL_SOCKET, option, ptr(value), length) === 0;
}
