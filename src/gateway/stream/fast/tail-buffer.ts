/** Remembers the end of a stream that goes by, in bounded memory and without holding its chunks. */

import { asBuffer, containsAny, needles } from '../../../lib/bytes/bytes.ts';

// Kept of what was copied: so many frames of the longest kind that came, within these bounds. Five
// hundred streams of small frames would else hold 8 MB, and need as much again when they all end.
const FRAMES = 8;
const MIN_BYTES = 2 * 1024;
const TAIL_BYTES = 16 * 1024;
// All that is kept is searched at the end of a stream, so a chunk longer than twice this leaves only its last frames.
const END_BYTES = 8 * 1024;
const LF = 0x0a;
const [BLANK_LINE] = needles('\n\n') as [Buffer];
// A terminal that carries the whole answer is kept up to this size; beyond it usage goes unreported.
const TERMINAL_BYTES = 16 * 1024 * 1024;
// What a chunk holds besides its bytes, about.
const CHUNK_COST = 64;
// So many chunks that are no longer kept are forgotten at once.
const MAX_DROPPED = 1024;

// So many of the last chunks are held as they are: a short or a bursty stream is never copied.
const HELD_CHUNKS = 3;
// But where a stream begins with a chunk as small as this it is a paced one. While its chunks are whole frames
// (some together, after a pause), the last eight are held; else they are copied while they are at hand. Larger ones may
// be views of more memory.
const SMALL_BYTES = 1000;

/**
 * Keeps the last frames, up to 16 KB or somewhat more: of a paced stream its last eight chunks; of any other the
 * last few, and what stood before them as a copy in one buffer that is written round and round (a chunk held by
 * reference costs many times its length) and grows when longer frames come. With marks (the beginnings of a
 * terminal that may be larger), everything from the first mark on is kept, in chunks.
 */
export class TailBuffer {
  /** Chunks of a few whole frames and nothing else: those below are all that is kept. */
  #paced: boolean;
  // The last chunks, the last of all first. Fields, and no list: of five hundred streams every further object
  // is out of the cache, and costs more than moving these.
  #a: Uint8Array | undefined;
  #b: Uint8Array | undefined;
  #c: Uint8Array | undefined;
  #d: Uint8Array | undefined;
  #e: Uint8Array | undefined;
  #f: Uint8Array | undefined;
  #g: Uint8Array | undefined;
  #h: Uint8Array | undefined;
  /** As much of an end as a mark may begin in. */
  #overlap = 0;
  #ring: Buffer | undefined;
  /** How many bytes went into the ring in all. */
  #length = 0;
  #held: Uint8Array[] = [];
  #heldBytes = 0;
  /** Since the last chunk that ended with a frame. */
  #frameBytes = 0;
  #longest = 0;
  #cut = false;
  /** A mark may still come. */
  #looks: boolean;
  #marked = false;
  /** The chunks from the mark's on. */
  #after: Uint8Array[] = [];
  /** The first of them that is still kept. */
  #afterAt = 0;
  /** What those hold. */
  #afterBytes = 0;

  constructor(private readonly marks: readonly Buffer[]) {
    this.#looks = marks.length > 0;
    this.#paced = !this.#looks;
    for (const { length } of marks) this.#overlap = Math.max(this.#overlap, length - 1);
  }

  push(chunk: Uint8Array): void {
    if (chunk.length === 0) return;
    if (this.#paced) {
      const most = this.#a === undefined ? SMALL_BYTES : END_BYTES;
      if (chunk.length <= most && endsFrame(chunk)) {
        this.#follow(chunk);
        return;
      }
      this.#unpace();
    }
    if (this.#looks && this.#holdsMark(chunk)) {
      this.#marked = true;
      this.#looks = false;
    }
    if (this.#marked) this.#keep(chunk);
    else this.#hold(chunk);
  }

  #follow(chunk: Uint8Array): void {
    if (this.#h !== undefined) this.#cut = true;
    this.#h = this.#g;
    this.#g = this.#f;
    this.#f = this.#e;
    this.#e = this.#d;
    this.#d = this.#c;
    this.#c = this.#b;
    this.#b = this.#a;
    this.#a = chunk;
  }

  get #followed(): readonly Uint8Array[] {
    const all = [this.#h, this.#g, this.#f, this.#e, this.#d, this.#c, this.#b, this.#a];
    return all.slice(all.lastIndexOf(undefined) + 1) as readonly Uint8Array[];
  }

  /** From here on the stream is one like any other. */
  #unpace(): void {
    const followed = this.#followed;
    this.#a = this.#b = this.#c = this.#d = undefined;
    this.#e = this.#f = this.#g = this.#h = undefined;
    this.#paced = false;
    for (const chunk of followed) this.#hold(chunk);
  }

  #hold(chunk: Uint8Array): void {
    this.#frameBytes += chunk.length;
    if (this.#frameBytes > this.#longest) this.#longest = this.#frameBytes;
    if (endsFrame(chunk)) this.#frameBytes = 0;
    // A mark may lie across two chunks, and is looked for in those that are held.
    if (this.#heldBytes === 0 && !this.#looks && chunk.length <= SMALL_BYTES) {
      this.#turn(chunk);
      return;
    }
    const last = chunk.length > 2 * END_BYTES ? this.#endOf(chunk) : chunk;
    this.#held.push(last);
    this.#heldBytes += last.length;
    if (this.#held.length <= HELD_CHUNKS) return;
    const oldest = this.#held.shift()!;
    this.#heldBytes -= oldest.length;
    if (this.#heldBytes < TAIL_BYTES) {
      this.#turn(oldest);
      return;
    }
    // What follows is enough.
    this.#cut = true;
    this.#length = 0;
  }

  /** The last whole frames of a long chunk, before which nothing is kept; the chunk where it is not made of such frames. */
  #endOf(chunk: Uint8Array): Uint8Array {
    const at = asBuffer(chunk).lastIndexOf(BLANK_LINE, chunk.length - END_BYTES);
    if (at < 0) return chunk;
    this.#held = [];
    this.#heldBytes = 0;
    this.#length = 0;
    this.#cut = false;
    return chunk.subarray(at + BLANK_LINE.length);
  }

  #turn(chunk: Uint8Array): void {
    const ring = this.#ringFor(chunk);
    const size = ring.length;
    const skip = Math.max(0, chunk.length - size);
    const last = skip === 0 ? chunk : chunk.subarray(skip);
    const at = (this.#length + skip) % size;
    const room = size - at;
    if (last.length <= room) ring.set(last, at);
    else {
      ring.set(last.subarray(0, room), at);
      ring.set(last.subarray(room), 0);
    }
    this.#length += chunk.length;
    if (this.#length > size) this.#cut = true;
  }

  /** The ring, larger than before where the chunk would push out what is still to be kept. */
  #ringFor(chunk: Uint8Array): Buffer {
    const ring = this.#ring;
    const size = ring?.length ?? 0;
    if (ring !== undefined && this.#length + chunk.length <= size) return ring;
    const wanted = Math.min(TAIL_BYTES, this.#longest * FRAMES);
    if (ring !== undefined && size >= wanted) return ring;
    let larger = Math.max(MIN_BYTES, size);
    while (larger < wanted) larger *= 2;
    const parts = this.#turned();
    this.#ring = Buffer.allocUnsafeSlow(larger);
    this.#length = 0;
    for (const part of parts) {
      this.#ring.set(part, this.#length);
      this.#length += part.length;
    }
    return this.#ring;
  }

  #keep(chunk: Uint8Array): void {
    this.#after.push(chunk);
    this.#afterBytes += chunk.length + CHUNK_COST;
    while (this.#afterBytes - this.#after[this.#afterAt]!.length - CHUNK_COST >= TERMINAL_BYTES) {
      if (this.#afterAt === this.#after.length - 1) break;
      this.#afterBytes -= this.#after[this.#afterAt++]!.length + CHUNK_COST;
      this.#held = [];
      this.#length = 0;
      this.#cut = true;
    }
    if (this.#afterAt < MAX_DROPPED || this.#afterAt * 2 < this.#after.length) return;
    this.#after = this.#after.slice(this.#afterAt);
    this.#afterAt = 0;
  }

  #holdsMark(chunk: Uint8Array): boolean {
    if (containsAny(asBuffer(chunk), this.marks)) return true;
    if (this.#held.length === 0) return false;
    const seam = Buffer.concat([this.#end(), chunk.subarray(0, this.#overlap)]);
    return containsAny(seam, this.marks);
  }

  /** As much of the end as a mark may begin in. */
  #end(): Buffer {
    const last = this.#held.at(-1)!;
    // Chunks as short as this are rare: a stream cut into single bytes.
    const enough = last.length >= this.#overlap ? last : this.bytes;
    return Buffer.from(enough.subarray(-this.#overlap));
  }

  /** What is in the ring, in order. */
  #turned(): readonly Uint8Array[] {
    const ring = this.#ring;
    if (ring === undefined || this.#length === 0) return [];
    if (this.#length <= ring.length) return [ring.subarray(0, this.#length)];
    const end = this.#length % ring.length;
    return [ring.subarray(end), ring.subarray(0, end)];
  }

  /** The first frame of what is kept may be broken: what stood before it is gone. */
  get cut(): boolean {
    return this.#cut;
  }

  /** The beginning of a terminal frame has come. */
  get marked(): boolean {
    return this.#marked;
  }

  /** What is kept: one run of bytes up to the stream's end. */
  get bytes(): Uint8Array {
    const parts = this.#paced
      ? this.#followed
      : [...this.#turned(), ...this.#held, ...this.#after.slice(this.#afterAt)];
    return parts.length === 1 ? parts[0]! : Buffer.concat(parts);
  }
}

/** Counted as the middle of a frame: lines that end in CR LF, and what comes byte by byte. */
const endsFrame = (chunk: Uint8Array): boolean =>
  chunk[chunk.length - 1] === LF && chunk[chunk.length - 2] === LF;
