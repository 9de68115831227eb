/** Writes a JSON object as bytes. What an earlier object held is copied from its bytes: equality decides, not identity. */

import { isObject, type Json, type JsonObject } from './json.ts';

/** A value and where it stands. */
interface Place {
  readonly value: Json;
  readonly start: number;
  readonly end: number;
}

export interface WrittenBody {
  readonly bytes: Uint8Array;
  /** Items of lists and large members, in order. */
  readonly places: readonly Place[];
  /** Which of them is the first of a member. */
  readonly firsts: ReadonlyMap<string, number>;
}

const encoder = new TextEncoder();

/** Shorter texts are written again. */
const LEAST_KEPT = 512;

/** The same bytes as `JSON.stringify(body)` in UTF-8. Neither object may change later. */
export function writtenBody(body: JsonObject, before: WrittenBody | undefined): WrittenBody {
  const writer = new BodyWriter(before);
  let lead = '{';
  for (const key of Object.keys(body)) {
    const value = body[key];
    if (value === undefined) continue;
    writer.text(`${lead}${JSON.stringify(key)}:`);
    lead = ',';
    writer.member(key);
    if (!Array.isArray(value)) {
      const large = typeof value === 'string' ? value.length > LEAST_KEPT : isObject(value);
      if (large) writer.value(value);
      else writer.text(JSON.stringify(value));
      continue;
    }
    const list: readonly Json[] = value;
    list.forEach((item, i) => {
      writer.text(i === 0 ? '[' : ',');
      writer.value(item);
    });
    writer.text(list.length === 0 ? '[]' : ']');
  }
  writer.text(lead === '{' ? '{}' : '}');
  return writer.done();
}

/** What is to be written: bytes of its own, or a range of the earlier body. */
interface Part {
  readonly bytes: Uint8Array;
  readonly start: number;
  end: number;
}

class BodyWriter {
  readonly #before: WrittenBody | undefined;
  readonly #parts: Part[] = [];
  readonly #places: Place[] = [];
  readonly #firsts = new Map<string, number>();
  #text = '';
  #size = 0;
  /** Where the next value is expected among the earlier ones. */
  #cursor = 0;

  constructor(before: WrittenBody | undefined) {
    this.#before = before;
  }

  member(key: string): void {
    this.#firsts.set(key, this.#places.length);
    this.#cursor = this.#before?.firsts.get(key) ?? this.#cursor;
  }

  text(text: string): void {
    this.#text += text;
  }

  value(value: Json): void {
    const before = this.#before;
    // The next one, or one near it, where some were put in or taken out.
    for (let i = this.#cursor; before !== undefined && i < before.places.length; i++) {
      if (i > this.#cursor + 2) break;
      const { value: old, start, end } = before.places[i]!;
      if (!sameJson(old, value)) continue;
      this.#flush();
      this.#copy(before.bytes, start, end);
      // The earlier value: it is held once.
      this.#places.push({ value: old, start: this.#size - (end - start), end: this.#size });
      this.#cursor = i + 1;
      return;
    }
    this.#cursor++;
    this.#flush();
    const bytes = encoder.encode(JSON.stringify(value) ?? 'null');
    this.#copy(bytes, 0, bytes.length);
    this.#places.push({ value, start: this.#size - bytes.length, end: this.#size });
  }

  #flush(): void {
    if (this.#text === '') return;
    const text = this.#text;
    this.#text = '';
    const last = this.#parts.at(-1);
    // Between two neighbours stands what stood there before: one copy takes them all.
    if (
      last !== undefined &&
      last.bytes === this.#before?.bytes &&
      text === ',' &&
      last.bytes[last.end] === COMMA
    ) {
      last.end++;
      this.#size++;
      return;
    }
    const bytes = encoder.encode(text);
    this.#copy(bytes, 0, bytes.length);
  }

  #copy(bytes: Uint8Array, start: number, end: number): void {
    const last = this.#parts.at(-1);
    this.#size += end - start;
    if (last?.bytes === bytes && last.end === start) last.end = end;
    else this.#parts.push({ bytes, start, end });
  }

  done(): WrittenBody {
    this.#flush();
    const bytes = new Uint8Array(this.#size);
    let at = 0;
    for (const part of this.#parts) {
      bytes.set(part.bytes.subarray(part.start, part.end), at);
      at += part.end - part.start;
    }
    return { bytes, places: this.#places, firsts: this.#firsts };
  }
}

const COMMA = 0x2c;

/** Deeper values are written again: a comparison must not end the stack. */
const MOST_DEPTH = 100;

/** Would both be written the same? False for some that would, never true for others. */
function sameJson(a: Json | undefined, b: Json | undefined, depth = 0): boolean {
  if (a === b) return true;
  if (depth > MOST_DEPTH) return false;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Array.isArray(a)) {
    if (!Array.isArray(b) || a.length !== b.length) return false;
    for (let i = 0; i < a.length; i++)
      if (!sameJson(a[i] as Json, b[i] as Json, depth + 1)) return false;
    return true;
  }
  // Raw numbers are objects of one member; what is written is that member, so they compare like others.
  if (Array.isArray(b) || isObject(a) !== isObject(b)) return false;
  const [one, other] = [a as JsonObject, b as JsonObject];
  const keys = Object.keys(one);
  const others = Object.keys(other);
  if (keys.length !== others.length) return false;
  for (let i = 0; i < keys.length; i++) {
    const key = keys[i]!;
    if (key !== others[i] || !sameJson(one[key], other[key], depth + 1)) return false;
  }
  return true;
}
