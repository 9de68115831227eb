/** Pauses and resumes accepting connections on the listening sockets; new ones wait in the kernel's queue (Linux). */

import { FFIType, ptr } from 'bun:ffi';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { libc } from '../../lib/process/libc.ts';

const SYMBOLS = {
  epoll_ctl: {
    args: [FFIType.i32, FFIType.i32, FFIType.i32, FFIType.ptr],
    returns: FFIType.i32,
  },
  getsockopt: {
    args: [FFIType.i32, FFIType.i32, FFIType.i32, FFIType.ptr, FFIType.ptr],
    returns: FFIType.i32,
  },
} as const;

// socket(7) and epoll_ctl(2).
const SOL_SOCKET = 1;
const SO_ACCEPTCONN = 30;
const EPOLL_CTL_MOD = 3;
// The kernel packs `epoll_event` on x64 only.
const DATA_AT = process.arch === 'x64' ? 4 : 8;

/** How the event loop watches one socket. */
interface WatchedSocket {
  readonly epoll: number;
  readonly socket: number;
  readonly events: number;
  readonly data: bigint;
}

export interface AcceptControl {
  /** False: new connections stay in the kernel's queue. */
  set(accept: boolean): void;
}

/**
 * Controls all sockets that listen at the time of the call. The event loop accepts a connection as soon as there is
 * one; without a free descriptor it fails and tries again at once, for ever. So the events that epoll reports to it
 * are changed from outside.
 * @returns undefined where the system cannot do this
 */
export function acceptControl(): AcceptControl | undefined {
  const system = libc(SYMBOLS);
  if (system === undefined) return undefined;
  const listens = (fd: number) => {
    const flag = new Int32Array(1);
    const size = new Uint32Array([4]);
    const result = system.getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, ptr(flag), ptr(size));
    return result === 0 && flag[0] === 1;
  };
  const watched = watchedSockets(listens);
  if (watched.length === 0) return undefined;
  return {
    set(accept) {
      for (const { epoll, socket, events, data } of watched) {
        const event = new DataView(new ArrayBuffer(16));
        event.setUint32(0, accept ? events : 0, true);
        event.setBigUint64(DATA_AT, data, true);
        system.epoll_ctl(epoll, EPOLL_CTL_MOD, socket, ptr(new Uint8Array(event.buffer)));
      }
    },
  };
}

const WATCHED = /^tfd:\s*(\d+) events:\s*([0-9a-f]+) data:\s*([0-9a-f]+)/gm;

function watchedSockets(listens: (fd: number) => boolean): readonly WatchedSocket[] {
  const found: WatchedSocket[] = [];
  try {
    for (const name of readdirSync('/proc/self/fd')) {
      const epoll = Number(name);
      if (!isEpoll(epoll)) continue;
      const info = readFileSync(`/proc/self/fdinfo/${epoll}`, 'latin1');
      for (const [, fd = '', events = '', data = ''] of info.matchAll(WATCHED)) {
        const socket = Number(fd);
        if (!listens(socket)) continue;
        found.push({
          epoll,
          socket,
          events: Number.parseInt(events, 16),
          data: BigInt(`0x${data}`),
        });
      }
    }
  } catch {
    // No /proc.
  }
  return found;
}

function isEpoll(fd: number): boolean {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`) === 'anon_inode:[eventpoll]';
  } catch {
    return false;
  }
}
