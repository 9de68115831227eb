/** Keeps frames byte-identical as long as interceptors hand on the very events that were in them. */

import type { StreamEvent } from '../../conversation/events.ts';
import type { SseFrame } from '../../lib/bytes/sse.ts';
import type { OutputBuilder } from './pipeline.ts';

interface WaitingFrames {
  /** One, or several of which the decoder holds something; none: events of the end of the stream. */
  readonly frames: SseFrame[];
  readonly events: StreamEvent[];
  /** The next frame belongs to them. */
  open: boolean;
  /** How many of the events have come out, and their encoded text. */
  done: number;
  text: string;
}

const MAX_GONE = 256;

/**
 * Matches the events that come out of the interceptors with the frames that they came in, in order, for
 * as long as an interceptor holds them. At the first event that is not the next original one, matching
 * is over: everything from there on has to be encoded, since indexes and counters may have shifted.
 */
export class OriginalFrames {
  #queue: WaitingFrames[] = [];
  /** The first that still waits. */
  #at = 0;
  readonly #onWrite: ((frame: SseFrame) => void) | undefined;
  /** The last that has left as its bytes. */
  last: SseFrame | undefined;

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
    this.last = frame;
    out.bytes(frame.bytes, frame.from, frame.to);
  }

  /**
   * Waits until the events have come out. Frames without events follow the one before them.
   * @param held the decoder holds something of this frame or of those before it: they leave together, when all
   * of it has come out
   */
  push(frame: SseFrame | undefined, events: readonly StreamEvent[], held = false): void {
    const last = this.idle ? undefined : this.#queue.at(-1);
    if (last?.open !== true) {
      const frames = frame === undefined ? [] : [frame];
      this.#queue.push({ frames, events: [...events], open: held, done: 0, text: '' });
      return;
    }
    if (frame !== undefined) last.frames.push(frame);
    for (const event of events) last.events.push(event);
    last.open = held;
  }

  /** Writes frames that no event will follow: what was held of them came to nothing. */
  settle(out: OutputBuilder): void {
    while (!this.idle && isOut(this.#queue[this.#at]!)) this.#writeNext(out);
    this.#forget();
  }

  /** Is this event not the next original one, while all that was encoded before it has left as bytes? */
  endsAt(event: StreamEvent): boolean {
    const head = this.#queue[this.#at];
    return head === undefined || (head.done === 0 && head.events[0] !== event);
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
    if (isOut(head)) this.settle(out);
    return true;
  }

  #writeNext(out: OutputBuilder): void {
    for (const frame of this.#queue[this.#at++]!.frames) this.write(frame, out);
  }

  /** Drops what has gone out, now and then: a list gives up its first item in the time of its length. */
  #forget(): void {
    if (this.idle) this.#queue = [];
    else if (this.#at < MAX_GONE || this.#at * 2 < this.#queue.length) return;
    else this.#queue = this.#queue.slice(this.#at);
    this.#at = 0;
  }
}

const isOut = ({ open, done, events }: WaitingFrames): boolean => !open && done === events.length;
