/** Pauses and resumes accepting connections on the listening sockets; new ones wait in the kernel's queue (Linux). */

import { setEvents, watchedSockets } from './listening-sockets.ts';

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
  const watched = watchedSockets();
  if (watched.length === 0) return undefined;
  return {
    set(accept) {
      for (const socket of watched) setEvents(socket, accept ? socket.events : 0);
    },
  };
}
