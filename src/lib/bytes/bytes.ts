/** Searches in raw bytes without copies, replaces a range, and joins many small pieces. */

/** The bytes as a Buffer, for its searches: the same object where it is one, else a view of it. */
export const asBuffer = (bytes: Uint8Array): Buffer =>
  Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);

/** Search terms as bytes; a string would be converted for every search. */
export const needles = (...words: readonly string[]): readonly Buffer[] =>
  words.map((word) => Buffer.from(word));

/** Does one of the terms occur? */
export function containsAny(bytes: Buffer, any: readonly Buffer[]): boolean {
  const searched = bytes.length < SEARCHES_KEPT ? undefined : searches.get(bytes);
  for (const mark of any) {
    if (searched === undefined ? bytes.includes(mark) : searched.contains(mark)) return true;
  }
  return false;
}

/** Shorter bytes are searched again. */
const SEARCHES_KEPT = 64 * 1024;

const searches = new WeakMap<Buffer, Searched>();

/** What was searched for in vain, for bytes that do not change. */
class Searched {
  readonly #absent = new Set<Buffer>();
  /** Not in the bytes that these go back to. */
  readonly #absentBefore: ReadonlySet<Buffer>;

  constructor(
    private readonly bytes: Buffer,
    before: Searched | undefined,
    private readonly fresh: readonly number[],
  ) {
    this.#absentBefore = before === undefined ? new Set() : before.#absent;
  }

  contains(mark: Buffer): boolean {
    if (this.#absent.has(mark)) return false;
    const found = this.#absentBefore.has(mark) ? this.#inFresh(mark) : this.bytes.includes(mark);
    if (!found) this.#absent.add(mark);
    return found;
  }

  /** A mark that is new stands in a fresh range, or reaches into one. */
  #inFresh(mark: Buffer): boolean {
    const reach = mark.length - 1;
    for (let i = 0; i < this.fresh.length; i += 2) {
      const from = Math.max(0, this.fresh[i]! - reach);
      const to = this.fresh[i + 1]! + reach;
      if (this.bytes.subarray(from, to).includes(mark)) return true;
    }
    return false;
  }
}

/**
 * Searches of {@link containsAny} in these bytes are remembered.
 * @param before other bytes whose searches are remembered; all of `bytes` but the ranges `fresh` (start, end,
 * start, end …) stands there too, each piece between two ranges in one
 */
export function rememberSearches(
  bytes: Buffer,
  before: Buffer | undefined,
  fresh: readonly number[],
): void {
  searches.set(bytes, new Searched(bytes, before && searches.get(before), fresh));
}

// So many small pieces are copied together: as objects they would take many times the memory of their bytes.
const LOOSE = 256;
const SMALL_BYTES = 1000;

/** Joins pieces of any size in linear time and in little more memory than their bytes. */
export class Pieces {
  #loose: Uint8Array[] = [];
  #looseBytes = 0;
  #room = new Uint8Array(0);
  #length = 0;

  /** Bytes in all. */
  get size(): number {
    return this.#length + this.#looseBytes;
  }

  push(piece: Uint8Array): void {
    this.#loose.push(piece);
    this.#looseBytes += piece.length;
    const count = this.#loose.length;
    if (count >= LOOSE && (this.#length > 0 || this.#looseBytes < count * SMALL_BYTES))
      this.#move();
  }

  /** All pieces, in order. */
  joined(): Uint8Array {
    if (this.#length === 0) {
      return this.#loose.length === 1 ? this.#loose[0]! : Buffer.concat(this.#loose);
    }
    this.#move();
    return this.#room.subarray(0, this.#length);
  }

  #move(): void {
    const length = this.size;
    if (this.#room.length < length) {
      const room = new Uint8Array(length * 2);
      room.set(this.#room.subarray(0, this.#length));
      this.#room = room;
    }
    for (const piece of this.#loose) {
      this.#room.set(piece, this.#length);
      this.#length += piece.length;
    }
    this.#loose = [];
    this.#looseBytes = 0;
  }
}

const encoder = new TextEncoder();

/** Without a byte order mark, which some programs write and parsers of JSON refuse (RFC 8259, section 8.1). */
export const withoutByteOrderMark = (bytes: Uint8Array): Uint8Array =>
  bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes;

/** The bytes with `[start, end)` replaced by `text`. */
export function splice(bytes: Uint8Array, start: number, end: number, text: string): Uint8Array {
  const middle = encoder.encode(text);
  // Every byte is written: memory that is cleared first costs a large body as much as the copy.
  const out = Buffer.allocUnsafeSlow(bytes.length - (end - start) + middle.length);
  out.set(bytes.subarray(0, start));
  out.set(middle, start);
  out.set(bytes.subarray(end), start + middle.length);
  return out;
}
