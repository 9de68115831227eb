/** Keeps frames byte-identical as long as interceptors hand on the very events that were in them. */

import type { StreamEvent } from '../../conversation/events.ts';
import type { SseFrame } from '../../lib/bytes/sse.ts';
import type { OutputBuilder } from './pipeline.ts';

interface WaitingFrame {
  /** Undefined: events of the end of the stream, which have no bytes. */
  readonly frame: SseFrame | undefined;
  readonly events: readonly StreamEvent[];
  /** How many of the events have come out, and their encoded text. */
  done: number;
  text: string;
}

const MOST_GONE = 256;

/**
 * Matches the events that come out of the interceptors with the frames that they came in, in order, for
 * as long as an interceptor holds them. At the first event that is not the next original one, matching
 * is over: everything from there on has to be encoded, since indexes and counters may have shifted.
 */
export class OriginalFrames {
  #queue: WaitingFrame[] = [];
  /** The first that still waits. */
  #at = 0;
  readonly #onWrite: ((frame: SseFrame) => void) | undefined;

  /** @param onWrite gets every frame that leaves as its bytes */
  constructor(onWrite?: (frame: SseFrame) => void) {
    this.#onWrite = onWrite;
  }

  /** No frame waits: one whose events came through untouched may be written at once. */
  get idle(): boolean {
    return this.#at === this.#queue.length;
  }

  write(frame: SseFrame, out: OutputBuilder): void {
    this.#onWrite?.(frame);
    out.bytes(frame.bytes, frame.from, frame.to);
  }

  /** Waits until the events have come out. Frames without events follow the one before them. */
  push(frame: SseFrame | undefined, events: readonly StreamEvent[]): void {
    this.#queue.push({ frame, events, done: 0, text: '' });
  }

  /**
   * An event came out; `text` is its encoded form. Writes the frame's bytes if that was its last event.
   * False: it was not the expected event, its text has been written, matching is over.
   */
  take(event: StreamEvent, text: string, out: OutputBuilder): boolean {
    const head = this.#queue[this.#at];
    if (head === undefined || head.events[head.done] !== event) {
      // Frames without events behind held ones are pings and empty deltas. They may belong to what the
      // client does not get (the deltas of a held call), so they are dropped.
      for (let i = this.#at; i < this.#queue.length; i++) out.text(this.#queue[i]!.text);
      this.#queue = [];
      this.#at = 0;
      out.text(text);
      return false;
    }
    head.done++;
    head.text += text;
    if (head.done < head.events.length) return true;
    this.#writeNext(out);
    while (this.#queue[this.#at]?.events.length === 0) this.#writeNext(out);
    this.#forget();
    return true;
  }

  #writeNext(out: OutputBuilder): void {
    const { frame } = this.#queue[this.#at++]!;
    if (frame !== undefined) this.write(frame, out);
  }

  /** Drops what has gone out, now and then: a list gives up its first item in the time of its length. */
  #forget(): void {
    if (this.idle) this.#queue = [];
    else if (this.#at < MOST_GONE || this.#at * 2 < this.#queue.length) return;
    else this.#queue = this.#queue.slice(this.#at);
    this.#at = 0;
  }
}
