/** Holds back the frame that ends an answer until it may go, for a short time. */

import { asBuffer, containsAny, needles } from '../../lib/bytes/bytes.ts';
import type { ByteSink } from './client-lane.ts';

/** A vendor may leave its connection open behind its last frame: the client does not wait for that. */
const MOST_MS = 100;

/** Passes everything on but what begins with the chunk in which a terminal frame begins. */
export class HeldEnd implements ByteSink {
  readonly #sink: ByteSink;
  readonly #marks: readonly Buffer[];
  readonly #overlap: number;
  /** The end of what has gone by: a mark may be spread over chunks. */
  #tail: Buffer = Buffer.alloc(0);
  #held: (Uint8Array | string)[] | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isReleased = false;

  /** @param prefixes the beginnings of terminal frames; they stand in no other place of a stream */
  constructor(sink: ByteSink, prefixes: readonly string[]) {
    this.#sink = sink;
    this.#marks = needles(...prefixes);
    this.#overlap = Math.max(0, ...this.#marks.map((mark) => mark.length - 1));
  }

  write(chunk: Uint8Array | string): unknown {
    if (this.#isReleased) return this.#sink.write(chunk);
    if (this.#held === undefined) {
      if (!this.#endsIn(chunk)) return this.#sink.write(chunk);
      this.#held = [];
      this.#timer = setTimeout(() => {
        void this.release();
        this.#sink.flush();
      }, MOST_MS);
    }
    this.#held.push(chunk);
    return undefined;
  }

  /** From now on everything goes. @returns a promise when the client is slow */
  release(): Promise<void> | undefined {
    this.stop();
    this.#isReleased = true;
    const held = this.#held ?? [];
    this.#held = undefined;
    const slow = held
      .map((chunk) => this.#sink.write(chunk))
      .filter((one) => one instanceof Promise);
    if (slow.length === 0) return undefined;
    const all = Promise.all(slow).then(() => {});
    // Nobody may wait for it: its rejection, when the client goes, must not be unhandled.
    all.catch(() => {});
    return all;
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  flush(): unknown {
    return this.#sink.flush();
  }

  close(): void {
    if (this.#held !== undefined) void this.release();
    this.#sink.close();
  }

  #endsIn(chunk: Uint8Array | string): boolean {
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : asBuffer(chunk);
    const seam = Buffer.concat([this.#tail, bytes.subarray(0, this.#overlap)]);
    if (containsAny(bytes, this.#marks) || containsAny(seam, this.#marks)) return true;
    const last = bytes.subarray(-this.#overlap);
    this.#tail = Buffer.concat([this.#tail, last]).subarray(-this.#overlap);
    return false;
  }
}
