/** Keeps frames byte-identical as long as interceptors hand on the very events that were in them. */

import type { StreamEvent } from '../../../conversation/events.ts';
import type { SseFrame } from '../../../lib/bytes/sse.ts';
import type { OutputBuilder } from '../pipeline.ts';

interface Waiting {
  /** Undefined: what only the end of the stream tells, which has no bytes of its own. */
  readonly frame: SseFrame | undefined;
  readonly events: readonly StreamEvent[];
  /** How many of the events have come out, and what they read like re-encoded. */
  done: number;
  text: string;
}

const MOST_GONE = 256;

/**
 * Matches events that come out with the frames they came in by, in order, across any time that an
 * interceptor holds them back. At the first event that is not the next original one, everything from
 * there on has to be encoded (indices and counters may have shifted), and matching is over.
 */
export class OriginalFrames {
  #queue: Waiting[] = [];
  /** The first that still waits. */
  #at = 0;
  readonly #onWrite: ((frame: SseFrame) => void) | undefined;

  /** @param onWrite told of frames that go out as their bytes, but for those of {@link write} itself */
  constructor(onWrite?: (frame: SseFrame) => void) {
    this.#onWrite = onWrite;
  }

  #write(frame: SseFrame | undefined, out: OutputBuilder): void {
    if (frame === undefined) return;
    this.#onWrite?.(frame);
    write(frame, out);
  }

  /** Nothing is held back: a frame whose events nobody touched may go out at once. */
  get idle(): boolean {
    return this.#at === this.#queue.length;
  }

  /** A frame came in. One without events goes out at once when nothing is held back before it. */
  push(frame: SseFrame | undefined, events: readonly StreamEvent[], out: OutputBuilder): void {
    if (events.length === 0 && this.idle) this.#write(frame, out);
    else this.#queue.push({ frame, events, done: 0, text: '' });
  }

  /**
   * An event came out; `text` is what the encoder makes of it. Writes the frame's bytes when that was
   * its last event. False: it was not the expected one, its text has been written, stop matching.
   */
  take(event: StreamEvent, text: string, out: OutputBuilder): boolean {
    const head = this.#queue[this.#at];
    if (head === undefined || head.events[head.done] !== event) {
      // Frames without events behind held ones are pings and empty deltas. They may belong to what is
      // not told (the deltas of a held call), so they are dropped.
      for (let i = this.#at; i < this.#queue.length; i++) out.text(this.#queue[i]!.text);
      this.#queue = [];
      this.#at = 0;
      out.text(text);
      return false;
    }
    head.done++;
    head.text += text;
    if (head.done < head.events.length) return true;
    this.#write(head.frame, out);
    this.#at++;
    while (this.#queue[this.#at]?.events.length === 0) {
      this.#write(this.#queue[this.#at++]!.frame, out);
    }
    this.#forget();
    return true;
  }

  /** Lets go of what has gone out, now and then: a list gives up its first item in the time of its length. */
  #forget(): void {
    if (this.idle) this.#queue = [];
    else if (this.#at < MOST_GONE || this.#at * 2 < this.#queue.length) return;
    else this.#queue = this.#queue.slice(this.#at);
    this.#at = 0;
  }
}

/** A frame's own bytes. */
export function write(frame: SseFrame, out: OutputBuilder): void {
  out.bytes(frame.bytes, frame.from, frame.to);
}
