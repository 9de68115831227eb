/** Remembers the beginning and the end of a stream that goes by, in bounded memory and without copies. */

const HEAD_BYTES = 8 * 1024;
const TAIL_BYTES = 16 * 1024;
// A terminal that carries the whole answer is kept up to this size; beyond it usage goes unreported.
const TERMINAL_BYTES = 16 * 1024 * 1024;

/**
 * Keeps references to the first 8 KB and the last 16 KB of chunks. With marks (the beginnings of a
 * terminal that may be larger), everything from the first mark on is kept.
 */
export class Tail {
  readonly #marks: readonly Buffer[];
  readonly #overlap: number;
  #head: Uint8Array[] = [];
  #headBytes = 0;
  #chunks: Uint8Array[] = [];
  #bytes = 0;
  #dropped = false;
  #marked = false;

  constructor(marks: readonly string[]) {
    this.#marks = marks.map((mark) => Buffer.from(mark));
    this.#overlap = Math.max(0, ...marks.map((mark) => mark.length)) - 1;
  }

  push(chunk: Uint8Array): void {
    if (this.#headBytes < HEAD_BYTES) {
      this.#head.push(chunk);
      this.#headBytes += chunk.length;
      return;
    }
    if (!this.#marked && this.#marks.length > 0) this.#marked = this.#holdsMark(chunk);
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    const limit = this.#marked ? TERMINAL_BYTES : TAIL_BYTES;
    while (this.#bytes - this.#chunks[0]!.length >= limit && this.#chunks.length > 1) {
      this.#bytes -= this.#chunks.shift()!.length;
      this.#dropped = true;
    }
  }

  #holdsMark(chunk: Uint8Array): boolean {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    const last = this.#chunks.at(-1) ?? this.#head.at(-1);
    const seam =
      last === undefined
        ? undefined
        : Buffer.concat([last.subarray(-this.#overlap), bytes.subarray(0, this.#overlap)]);
    return this.#marks.some((mark) => bytes.indexOf(mark) >= 0 || (seam?.indexOf(mark) ?? -1) >= 0);
  }

  /** The kept parts, each a run of bytes as they went by: one when nothing was dropped between. */
  get parts(): readonly Uint8Array[] {
    const head = Buffer.concat(this.#head);
    if (this.#chunks.length === 0) return [head];
    const tail = Buffer.concat(this.#chunks);
    return this.#dropped ? [head, tail] : [Buffer.concat([head, tail])];
  }
}
