/** Keeps frames byte-identical as long as interceptors hand on the very events that were in them. */

import type { StreamEvent } from '../conversation/events.ts';
import type { SseFrame } from '../lib/sse.ts';
import type { Outputs } from './lane.ts';

interface Waiting {
  /** Undefined: what only the end of the stream tells, which has no bytes of its own. */
  readonly frame: SseFrame | undefined;
  readonly events: readonly StreamEvent[];
  /** How many of the events have come out, and what they read like re-encoded. */
  done: number;
  text: string;
}

/**
 * Matches events that come out with the frames they came in by, in order, across any time that an
 * interceptor holds them back. At the first event that is not the next original one, everything from
 * there on has to be encoded (indices and counters may have shifted), and matching is over.
 */
export class Originals {
  #queue: Waiting[] = [];

  /** Nothing is held back: a frame whose events nobody touched may go out at once. */
  get idle(): boolean {
    return this.#queue.length === 0;
  }

  /** A frame came in. One without events goes out at once when nothing is held back before it. */
  push(frame: SseFrame | undefined, events: readonly StreamEvent[], out: Outputs): void {
    if (events.length === 0 && this.#queue.length === 0) write(frame, out);
    else this.#queue.push({ frame, events, done: 0, text: '' });
  }

  /**
   * An event came out; `text` is what the encoder makes of it. Writes the frame's bytes when that was
   * its last event. False: it was not the expected one, its text has been written, stop matching.
   */
  take(event: StreamEvent, text: string, out: Outputs): boolean {
    const head = this.#queue[0];
    if (head === undefined || head.events[head.done] !== event) {
      // Frames without events behind held ones are pings and empty deltas. They may belong to what is
      // not told (the deltas of a held call), so they are dropped.
      for (const held of this.#queue) out.text(held.text);
      this.#queue = [];
      out.text(text);
      return false;
    }
    head.done++;
    head.text += text;
    if (head.done < head.events.length) return true;
    write(head.frame, out);
    this.#queue.shift();
    while (this.#queue[0]?.events.length === 0) write(this.#queue.shift()!.frame, out);
    return true;
  }
}

/** A frame's own bytes. */
export function write(frame: SseFrame | undefined, out: Outputs): void {
  if (frame !== undefined) out.bytes(frame.bytes, frame.from, frame.to);
}
