/** The sign patterns of vectors that this process has read, by space and model, and the search for the nearest vectors. */

import type { Nearest } from '../ranking/rank.ts';
import { cosine, fewestDifferences, signs } from './vector-math.ts';

/** Bytes of cached sign patterns; the least recently used space is dropped first. */
const CACHE_BYTES = 64 * 2 ** 20;
/** The least number of candidates whose exact angle is computed. */
const POOL = 200;

/** The sign patterns of a space and model that have been read so far. */
export class CachedSigns {
  readonly #words: number;
  readonly #rows: number[] = [];
  #signs: Uint32Array;
  #last = 0;

  /** @param words the length of a pattern in 32-bit words */
  constructor(words: number) {
    this.#words = words;
    this.#signs = new Uint32Array(words * 64);
  }

  /** The number of the last vector that was read. */
  get last(): number {
    return this.#last;
  }

  get bytes(): number {
    return this.#signs.byteLength;
  }

  /** @param pattern of another length: the vector has another number of dimensions, or there is none */
  add(number: number, row: number, pattern: Uint8Array): void {
    this.#last = number;
    const words = this.#words;
    if (pattern.byteLength !== words * 4) return;
    const at = this.#rows.length * words;
    if (at + words > this.#signs.length) {
      const grown = new Uint32Array(this.#signs.length * 2);
      grown.set(this.#signs);
      this.#signs = grown;
    }
    this.#signs.set(new Uint32Array(pattern.slice().buffer), at);
    this.#rows.push(row);
  }

  /** Rows among which the `count` nearest ones are, for their exact angles. */
  near(query: Float32Array, count: number): readonly number[] {
    const most = Math.max(POOL, count * 4);
    const places = fewestDifferences(this.#signs, this.#rows.length, signs(query), most);
    return [...new Set(places.map((at) => this.#rows[at]!))];
  }
}

export class SignCache {
  readonly #cached = new Map<string, CachedSigns>();

  of(key: string, words: number): CachedSigns {
    const found = this.#cached.get(key) ?? new CachedSigns(words);
    this.#cached.delete(key);
    this.#cached.set(key, found);
    return found;
  }

  /** Drops what was used least recently, as far as there is no room; not what is in use now. */
  trim(inUse: CachedSigns): void {
    let bytes = 0;
    for (const one of this.#cached.values()) bytes += one.bytes;
    for (const [key, one] of this.#cached) {
      if (bytes <= CACHE_BYTES || one === inUse) break;
      bytes -= one.bytes;
      this.#cached.delete(key);
    }
  }

  drop(which: (key: string) => boolean): void {
    for (const key of this.#cached.keys()) if (which(key)) this.#cached.delete(key);
  }
}

export function nearest(
  stored: readonly { readonly row: number; readonly vector: Uint8Array }[],
  query: Float32Array,
  count: number,
): Nearest {
  return stored
    .flatMap(({ row, vector }) => {
      const own = new Int8Array(vector.buffer, vector.byteOffset, vector.byteLength);
      return own.length === query.length ? [[row, cosine(own, query)] as const] : [];
    })
    .sort(([one, a], [other, b]) => b - a || one - other)
    .slice(0, count);
}

export const bytesOf = ({ buffer, byteOffset, byteLength }: Uint32Array | Int8Array): Uint8Array =>
  new Uint8Array(buffer as ArrayBuffer, byteOffset, byteLength);
