/** Reserves file descriptors for running requests, however many clients connect. */

import { closeSync, openSync, readFileSync } from 'node:fs';
import { event, type Log } from '../../telemetry/log.ts';
import { setEvents, watchedSockets } from './listening-sockets.ts';

export interface DescriptorsOptions {
  readonly log: Log;
  /** True: many connections are open, and each answer should be the last of its own. */
  readonly onCrowded: (crowded: boolean) => void;
  /** None has been left for a while: connections that wait for nothing are to end. */
  readonly onFull: () => void;
}

export interface Descriptors {
  /** Another socket listens from now on. */
  listensAnew(): void;
  close(): void;
}

const LOOK_MS = 250;
// While connections wait in the queue, free descriptors are looked for this often.
const LOOK_SOON_MS = 10;
// A crowd that has gone may come back.
const CROWDED_MS = 10_000;
const TELL_MS = 60_000;
const SOME = 4;
// An idle connection keeps its place for so long.
const PATIENCE_MS = 5000;

/** The limit of open files of this process, as /proc reports it; the runtime has raised it to the hard limit. */
function mostDescriptors(): number | undefined {
  try {
    const limits = readFileSync('/proc/self/limits', 'latin1');
    const soft = /^Max open files\s+(\d+)/m.exec(limits)?.[1];
    return soft === undefined ? undefined : Number(soft);
  } catch {
    // No Linux.
    return undefined;
  }
}

/**
 * Watches over the descriptors of a process that listens by now. A part of them is held in reserve. When all others
 * are used, the reserve is set free for vendors and files, and new connections wait in the kernel's queue until there
 * is room again; after a while, idle ones are closed for them. From half of them on, answers close their connections. Does nothing where the
 * number of descriptors is not known.
 */
export function watchDescriptors(options: DescriptorsOptions): Descriptors {
  let watch: Descriptors | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const begin = () => {
    // Without any, not even /proc can be read.
    const some = take(SOME);
    if (some === undefined) {
      options.onFull();
      timer = setTimeout(begin, LOOK_MS);
      timer.unref();
      return;
    }
    drop(some);
    watch = watched(options);
  };
  begin();
  return {
    listensAnew: () => watch?.listensAnew(),
    close() {
      clearTimeout(timer);
      watch?.close();
    },
  };
}

function watched({ log, onCrowded, onFull }: DescriptorsOptions): Descriptors {
  const most = mostDescriptors();
  const first = most === undefined ? undefined : acceptControl();
  if (most === undefined || first === undefined) return { listensAnew() {}, close() {} };
  let door = first;
  // Each connection may need another one to a vendor.
  const wanted = Math.min(256, Math.max(8, Math.floor(most / 4)));
  const room = Math.ceil(wanted / 4);
  let reserve = take(wanted) ?? [];
  let full = false;
  let fullSince = 0;
  let crowdedUntil = 0;
  let crowded = false;
  let told = Number.NEGATIVE_INFINITY;

  const look = () => {
    const now = performance.now();
    timer = setTimeout(look, !full && now < crowdedUntil ? LOOK_SOON_MS : LOOK_MS);
    timer.unref();
    if (full) {
      const more = take(wanted + room);
      if (more === undefined) {
        if (now - fullSince > PATIENCE_MS) onFull();
        return;
      }
      drop(more.splice(wanted));
      reserve = more;
      full = false;
      door.set(true);
      return;
    }
    // The lowest number that is free: so many are used at least.
    const [free] = take(1) ?? [];
    if (free !== undefined) drop([free]);
    if (free === undefined || free >= (most + wanted) / 2) crowdedUntil = now + CROWDED_MS;
    if (crowded !== now < crowdedUntil) {
      crowded = !crowded;
      onCrowded(crowded);
    }
    if (free !== undefined) return;
    door.set(false);
    full = true;
    fullSince = now;
    drop(reserve);
    reserve = [];
    if (now - told < TELL_MS) return;
    told = now;
    event(log, 'connections.full', { limit: 'RLIMIT_NOFILE', descriptors: most }, 'warn');
  };
  let timer: ReturnType<typeof setTimeout>;
  look();
  return {
    listensAnew() {
      door = acceptControl() ?? door;
      if (full) door.set(false);
    },
    close() {
      clearTimeout(timer);
      drop(reserve);
      reserve = [];
      if (full) door.set(true);
    },
  };
}

/** So many descriptors, or none. */
function take(count: number): number[] | undefined {
  const taken: number[] = [];
  try {
    for (let i = 0; i < count; i++) taken.push(openSync('/dev/null', 'r'));
    return taken;
  } catch {
    drop(taken);
    return undefined;
  }
}

function drop(descriptors: readonly number[]): void {
  for (const one of descriptors) closeSync(one);
}

interface AcceptControl {
  /** False: new connections stay in the kernel's queue. */
  set(accept: boolean): void;
}

/**
 * Controls all sockets that listen at the time of the call. The event loop accepts a connection as soon as there is
 * one; without a free descriptor it fails and tries again at once, for ever. So the events that epoll reports to it
 * are changed from outside.
 * @returns undefined where the system cannot do this
 */
function acceptControl(): AcceptControl | undefined {
  const watched = watchedSockets();
  if (watched.length === 0) return undefined;
  return {
    set(accept) {
      for (const socket of watched) setEvents(socket, accept ? socket.events : 0);
    },
  };
}
