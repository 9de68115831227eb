/** The listening sockets of this process as its event loop watches them, and how one gets another one's place (Linux). */

import { FFIType, ptr } from 'bun:ffi';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { libc } from '../../lib/process/libc.ts';

const SYMBOLS = {
  dup3: { args: [FFIType.i32, FFIType.i32, FFIType.i32], returns: FFIType.i32 },
  epoll_ctl: {
    args: [FFIType.i32, FFIType.i32, FFIType.i32, FFIType.ptr],
    returns: FFIType.i32,
  },
  getsockname: { args: [FFIType.i32, FFIType.ptr, FFIType.ptr], returns: FFIType.i32 },
  getsockopt: {
    args: [FFIType.i32, FFIType.i32, FFIType.i32, FFIType.ptr, FFIType.ptr],
    returns: FFIType.i32,
  },
} as const;

// socket(7), open(2) and epoll_ctl(2); the same on every architecture that hopgate is built for.
const SOL_SOCKET = 1;
const SO_ACCEPTCONN = 30;
const O_CLOEXEC = 0x80000;
const EPOLL_CTL_ADD = 1;
const EPOLL_CTL_DEL = 2;
const EPOLL_CTL_MOD = 3;
const MAX_SOCKADDR = 128;
// The kernel packs `epoll_event` on x64 only.
const DATA_AT = process.arch === 'x64' ? 4 : 8;

/** How the event loop watches one listening socket. */
export interface WatchedSocket {
  readonly epoll: number;
  readonly socket: number;
  readonly port: number;
  readonly events: number;
  readonly data: bigint;
}

type System = NonNullable<ReturnType<typeof system>>;
const system = () => libc(SYMBOLS);

/** All of this process; none where the system does not show them. */
export function watchedSockets(): readonly WatchedSocket[] {
  const calls = system();
  return calls === undefined ? [] : watchedBy(calls);
}

/** Watches a socket for these events from now on; 0: for none. */
export function setEvents({ epoll, socket, data }: WatchedSocket, events: number): void {
  system()?.epoll_ctl(epoll, EPOLL_CTL_MOD, socket, ptr(epollEvent(events, data)));
}

/**
 * The server on `to` gets the socket that listens on `from`, with all that waits in its queue; its own is closed. The
 * server on `from` keeps its connections and accepts no more.
 *
 * The two numbers of descriptors then mean one socket, which closes when both servers have stopped. A listening
 * socket that is closed resets the connections in its queue, so the kernel's socket must stay the same.
 * @returns false where the system cannot do this; then nothing has changed
 */
export function handOver(from: number, to: number): boolean {
  const calls = system();
  if (calls === undefined) return false;
  const all = watchedBy(calls);
  const old = all.find(({ port }) => port === from);
  const next = all.find(({ port }) => port === to);
  if (old === undefined || next === undefined) return false;
  if (calls.epoll_ctl(old.epoll, EPOLL_CTL_DEL, old.socket, null) !== 0) return false;
  const { epoll, socket, events, data } = next;
  const moved =
    calls.dup3(old.socket, socket, O_CLOEXEC) === socket &&
    calls.epoll_ctl(epoll, EPOLL_CTL_ADD, socket, ptr(epollEvent(events, data))) === 0;
  if (!moved) {
    calls.epoll_ctl(old.epoll, EPOLL_CTL_ADD, old.socket, ptr(epollEvent(old.events, old.data)));
  }
  return moved;
}

function epollEvent(events: number, data: bigint): Uint8Array {
  const event = new DataView(new ArrayBuffer(16));
  event.setUint32(0, events, true);
  event.setBigUint64(DATA_AT, data, true);
  return new Uint8Array(event.buffer);
}

const WATCHED = /^tfd:\s*(\d+) events:\s*([0-9a-f]+) data:\s*([0-9a-f]+)/gm;

function watchedBy(calls: System): readonly WatchedSocket[] {
  const found: WatchedSocket[] = [];
  try {
    for (const name of readdirSync('/proc/self/fd')) {
      const epoll = Number(name);
      if (!isEpoll(epoll)) continue;
      const info = readFileSync(`/proc/self/fdinfo/${epoll}`, 'latin1');
      for (const [, fd = '', events = '', data = ''] of info.matchAll(WATCHED)) {
        const socket = Number(fd);
        const port = listeningPort(calls, socket);
        if (port === undefined) continue;
        const watched = { events: Number.parseInt(events, 16), data: BigInt(`0x${data}`) };
        found.push({ epoll, socket, port, ...watched });
      }
    }
  } catch {
    // No /proc.
  }
  return found;
}

/** Undefined for a descriptor that does not listen. */
function listeningPort(calls: System, fd: number): number | undefined {
  const flag = new Int32Array(1);
  const size = new Uint32Array([4]);
  const result = calls.getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, ptr(flag), ptr(size));
  if (result !== 0 || flag[0] !== 1) return undefined;
  const name = new Uint8Array(MAX_SOCKADDR);
  size[0] = name.length;
  if (calls.getsockname(fd, ptr(name), ptr(size)) !== 0) return undefined;
  // `sockaddr_in` and `sockaddr_in6` have the port at the same place.
  return new DataView(name.buffer).getUint16(2);
}

function isEpoll(fd: number): boolean {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`) === 'anon_inode:[eventpoll]';
  } catch {
    return false;
  }
}
