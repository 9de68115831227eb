/** Which of the sockets that share a port the kernel gives new connections to (Linux). */

import { FFIType, ptr } from 'bun:ffi';
import { readdirSync } from 'node:fs';
import { libc } from '../../lib/process/libc.ts';

const SYMBOLS = {
  getsockname: { args: [FFIType.i32, FFIType.ptr, FFIType.ptr], returns: FFIType.i32 },
  getsockopt: {
    args: [FFIType.i32, FFIType.i32, FFIType.i32, FFIType.ptr, FFIType.ptr],
    returns: FFIType.i32,
  },
  setsockopt: {
    args: [FFIType.i32, FFIType.i32, FFIType.i32, FFIType.ptr, FFIType.u32],
    returns: FFIType.i32,
  },
} as const;

// socket(7), on every architecture that we build for.
const SOL_SOCKET = 1;
const SO_ACCEPTCONN = 30;
const SO_ATTACH_REUSEPORT_CBPF = 51;
const SO_DETACH_REUSEPORT_BPF = 68;
const BPF_RET_K = 0x06;
const SOCK_FPROG = 16;
const SOCK_FILTER = 8;
const LARGEST_SOCKADDR = 128;

/**
 * Gives every new connection to the socket that was the `index`th, counted from 0, to listen on the port
 * that this process listens on. Sockets that close leave their place to the last one; where no socket has
 * the place, connections are spread as without this. Handshakes already begun end where they began.
 *
 * @returns false where the system has no such thing
 */
export function steer(port: number, index: number): boolean {
  // `sock_fprog`, how many instructions and where, and behind it the only one: in one piece of memory,
  // so that who holds the one holds the other.
  const program = new Uint8Array(SOCK_FPROG + SOCK_FILTER);
  const fields = new DataView(program.buffer);
  fields.setUint16(0, 1, true);
  fields.setBigUint64(8, BigInt(ptr(program)) + BigInt(SOCK_FPROG), true);
  fields.setUint16(SOCK_FPROG, BPF_RET_K, true);
  fields.setUint32(SOCK_FPROG + 4, index, true);
  return setOption(port, SO_ATTACH_REUSEPORT_CBPF, program, SOCK_FPROG);
}

/** Connections are spread over all sockets of the port again. */
export function steerNoLonger(port: number): boolean {
  return setOption(port, SO_DETACH_REUSEPORT_BPF, new Uint8Array(4), 4);
}

function setOption(port: number, option: number, value: Uint8Array, length: number): boolean {
  const system = libc(SYMBOLS);
  if (system === undefined) return false;
  const listening = descriptors().find((fd) => {
    const size = new Uint32Array([4]);
    const flag = new Int32Array(1);
    const asked = system.getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, ptr(flag), ptr(size));
    if (asked !== 0 || flag[0] !== 1) return false;
    const name = new Uint8Array(LARGEST_SOCKADDR);
    size[0] = name.length;
    if (system.getsockname(fd, ptr(name), ptr(size)) !== 0) return false;
    // `sockaddr_in` and `sockaddr_in6` have the port at the same place.
    return new DataView(name.buffer).getUint16(2) === port;
  });
  if (listening === undefined) return false;
  return system.setsockopt(listening, SOL_SOCKET, option, ptr(value), length) === 0;
}

function descriptors(): number[] {
  try {
    return readdirSync('/proc/self/fd').map(Number);
  } catch {
    return [];
  }
}
