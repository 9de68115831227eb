/** Remembers the end of a stream that goes by, in bounded memory and without holding its chunks. */

const TAIL_BYTES = 16 * 1024;
// A terminal that carries the whole answer is kept up to this size; beyond it usage goes unreported.
const TERMINAL_BYTES = 16 * 1024 * 1024;

/**
 * Keeps a copy of the last 16 KB in one buffer that is written round and round: a chunk held by
 * reference costs many times its length. With marks (the beginnings of a terminal that may be larger),
 * everything from the first mark on is kept, in chunks.
 */
export class Tail {
  readonly #marks: readonly Buffer[];
  readonly #overlap: number;
  #ring: Buffer | undefined;
  /** How many bytes went into the ring in all. */
  #length = 0;
  #marked = false;
  /** The chunks from the mark's on. */
  #after: Uint8Array[] = [];
  #afterBytes = 0;
  #afterCut = false;

  constructor(marks: readonly string[]) {
    this.#marks = marks.map((mark) => Buffer.from(mark));
    this.#overlap = Math.max(0, ...marks.map((mark) => mark.length - 1));
  }

  push(chunk: Uint8Array): void {
    if (!this.#marked && this.#marks.length > 0) this.#marked = this.#holdsMark(chunk);
    if (this.#marked) this.#keep(chunk);
    else this.#turn(chunk);
  }

  #turn(chunk: Uint8Array): void {
    this.#ring ??= Buffer.allocUnsafeSlow(TAIL_BYTES);
    const skip = Math.max(0, chunk.length - TAIL_BYTES);
    const last = skip === 0 ? chunk : chunk.subarray(skip);
    const at = (this.#length + skip) % TAIL_BYTES;
    const room = TAIL_BYTES - at;
    if (last.length <= room) this.#ring.set(last, at);
    else {
      this.#ring.set(last.subarray(0, room), at);
      this.#ring.set(last.subarray(room), 0);
    }
    this.#length += chunk.length;
  }

  #keep(chunk: Uint8Array): void {
    this.#after.push(chunk);
    this.#afterBytes += chunk.length;
    while (this.#afterBytes - this.#after[0]!.length >= TERMINAL_BYTES && this.#after.length > 1) {
      this.#afterBytes -= this.#after.shift()!.length;
      this.#afterCut = true;
    }
  }

  #holdsMark(chunk: Uint8Array): boolean {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    const before = this.#turned(this.#overlap);
    const seam =
      before.length === 0 ? undefined : Buffer.concat([before, bytes.subarray(0, this.#overlap)]);
    return this.#marks.some((mark) => bytes.indexOf(mark) >= 0 || (seam?.indexOf(mark) ?? -1) >= 0);
  }

  /** The last `most` bytes that went into the ring, in order. */
  #turned(most: number): Buffer {
    const ring = this.#ring;
    const count = Math.min(most, this.#length, TAIL_BYTES);
    if (ring === undefined || count === 0) return Buffer.alloc(0);
    const end = this.#length % TAIL_BYTES;
    if (end >= count) return ring.subarray(end - count, end);
    return Buffer.concat([ring.subarray(TAIL_BYTES - (count - end)), ring.subarray(0, end)]);
  }

  /** Bytes before the kept ones went by and are gone: what is kept may begin in the middle. */
  get cut(): boolean {
    return this.#afterCut || this.#length > TAIL_BYTES;
  }

  /** What is kept: one run of bytes up to the stream's end. May be a view that the next push changes. */
  get bytes(): Buffer {
    if (this.#after.length === 0) return this.#turned(TAIL_BYTES);
    if (this.#afterCut) return Buffer.concat(this.#after);
    return Buffer.concat([this.#turned(TAIL_BYTES), ...this.#after]);
  }
}
