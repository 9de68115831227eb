/** Writes the vectors of an answer as base64, for a client that asked for it and a vendor that does not know it. */

import { asBuffer, Pieces } from '../lib/bytes/bytes.ts';
import { tryParse } from '../lib/json/json.ts';

const KEY = Buffer.from('"embedding"');
const BRACKET_OPEN = 0x5b;
const BRACKET_CLOSE = 0x5d;
const COLON = 0x3a;
const BLANK = 0x20;
/** Bytes of white space around the colon. With more, the list goes on as it came. */
const MAX_BLANKS = 64;
/** A list that is longer goes on as it came. */
const MAX_VECTOR_BYTES = 4 * 1024 * 1024;

/** Does an answer that begins so hold vectors as lists of numbers? */
export const holdsLists = (beginning: Uint8Array): boolean => {
  const text = asBuffer(beginning).toString('latin1', 0, 4096);
  return /"embedding"\s{0,64}:\s{0,64}\[\s{0,64}-?\d/.test(text);
};

/**
 * Each `"embedding": [0.5, -0.25]` becomes the base64 of its numbers as little-endian floats of four bytes
 * (https://platform.openai.com/docs/api-reference/embeddings/create); everything else stays byte for byte. The key
 * cannot stand within a text, whose quotation marks are escaped.
 */
export class EmbeddingFilter {
  /** Bytes that wait: the end of a chunk that may begin a key, or a list so far. */
  #held = new Pieces();
  #inList = false;

  push(chunk: Uint8Array): Uint8Array | undefined {
    if (this.#inList && !chunk.includes(BRACKET_CLOSE) && this.#held.size < MAX_VECTOR_BYTES) {
      this.#held.push(chunk);
      return undefined;
    }
    this.#held.push(chunk);
    const bytes = asBuffer(this.#held.joined());
    this.#held = new Pieces();
    const out: Uint8Array[] = [];
    let from = 0;
    for (let at = 0; ; ) {
      const list = this.#nextList(bytes, at);
      if (list === undefined) break;
      const { start, end } = list;
      if (end < 0 && bytes.length - start < MAX_VECTOR_BYTES) {
        out.push(bytes.subarray(from, start));
        this.#hold(bytes, start, true);
        return joined(out);
      }
      at = end < 0 ? bytes.length : end;
      const text = end < 0 ? undefined : base64Of(bytes.toString('latin1', start, end));
      if (text === undefined) continue;
      out.push(bytes.subarray(from, start), Buffer.from(text));
      from = at;
    }
    const keep = Math.max(from, beginningOfKey(bytes));
    out.push(bytes.subarray(from, keep));
    this.#hold(bytes, keep, false);
    return joined(out);
  }

  end(): Uint8Array | undefined {
    return this.#held.size > 0 ? this.#held.joined() : undefined;
  }

  /** A copy: a view would keep the whole chunk in memory. */
  #hold(bytes: Buffer, from: number, inList: boolean): void {
    this.#inList = inList;
    if (from < bytes.length) this.#held.push(Buffer.from(bytes.subarray(from)));
  }

  /** Where a list begins and ends; `end` -1: it goes on. */
  #nextList(bytes: Buffer, from: number): { start: number; end: number } | undefined {
    if (from === 0 && this.#inList)
      return { start: 0, end: bytes.indexOf(BRACKET_CLOSE) + 1 || -1 };
    for (let at = bytes.indexOf(KEY, from); at >= 0; at = bytes.indexOf(KEY, at + KEY.length)) {
      const colon = filled(bytes, at + KEY.length);
      const start = bytes[colon] === COLON ? filled(bytes, colon + 1) : -1;
      if (bytes[start] === BRACKET_OPEN) {
        return { start, end: bytes.indexOf(BRACKET_CLOSE, start) + 1 || -1 };
      }
    }
    return undefined;
  }
}

const joined = (out: readonly Uint8Array[]): Uint8Array | undefined => {
  const bytes = Buffer.concat(out);
  return bytes.length > 0 ? bytes : undefined;
};

function filled(bytes: Buffer, from: number): number {
  let at = from;
  while (at < bytes.length && bytes[at]! <= BLANK) at++;
  return at;
}

/** Where a key begins whose list may begin in the next chunk; the length where there is none. */
function beginningOfKey(bytes: Buffer): number {
  const from = Math.max(0, bytes.length - KEY.length - MAX_BLANKS);
  const whole = bytes.lastIndexOf(KEY);
  if (whole >= from) {
    const colon = filled(bytes, whole + KEY.length);
    const isOpen =
      colon === bytes.length ||
      (bytes[colon] === COLON && filled(bytes, colon + 1) === bytes.length);
    if (isOpen) return whole;
  }
  for (let at = Math.max(0, bytes.length - KEY.length + 1); at < bytes.length; at++) {
    if (KEY.compare(bytes, at, bytes.length, 0, bytes.length - at) === 0) return at;
  }
  return bytes.length;
}

/** `"…"`; undefined for a list of anything but numbers. */
function base64Of(list: string): string | undefined {
  const numbers = tryParse(list);
  if (!Array.isArray(numbers) || numbers.length === 0) return undefined;
  const bytes = Buffer.allocUnsafe(4 * numbers.length);
  for (let i = 0; i < numbers.length; i++) {
    const number = numbers[i];
    if (typeof number !== 'number') return undefined;
    bytes.writeFloatLE(number, 4 * i);
  }
  return `"${bytes.toString('base64')}"`;
}
