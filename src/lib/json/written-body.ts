/** Writes a JSON object as bytes. What an earlier object held is taken from its bytes: equality decides, not identity. */

import { ByteList, wholeBytes } from '../bytes/byte-list.ts';
import { isObject, type Json, type JsonObject } from './json.ts';

/** A value and where its bytes are: a range of a buffer. */
interface Place {
  readonly value: Json;
  readonly bytes: Uint8Array;
  readonly start: number;
  readonly end: number;
}

export interface WrittenBody {
  /** Ranges of the buffers that earlier bodies were written into, and of one of its own. */
  readonly body: ByteList;
  /** Bytes of these buffers: at most twice those of the body. */
  readonly held: number;
  /** Items of lists and large members, in order. */
  readonly places: readonly Place[];
  /** Which of them is the first of a member. */
  readonly firsts: ReadonlyMap<string, number>;
}

const encoder = new TextEncoder();

/** Shorter texts are written again. */
const MIN_KEPT = 512;

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
      const large = typeof value === 'string' ? value.length > MIN_KEPT : isObject(value);
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

/** What is to be written: a range of a buffer. */
interface Part {
  bytes: Uint8Array;
  readonly start: number;
  end: number;
}

/** Stands for the buffer of what is new, until all of that is known. */
const NEW = new Uint8Array(0);
/** A body of more ranges is joined to one. */
const MAX_PARTS = 256;

class BodyWriter {
  readonly #parts: Part[] = [];
  readonly #places: { -readonly [key in keyof Place]: Place[key] }[] = [];
  /** Where each place stands in the whole. */
  readonly #starts: number[] = [];
  readonly #firsts = new Map<string, number>();
  #text = '';
  #size = 0;
  readonly #made: Uint8Array[] = [];
  #madeSize = 0;
  /** Where the next value is expected among the earlier ones. */
  #cursor = 0;

  constructor(private readonly before: WrittenBody | undefined) {}

  member(key: string): void {
    this.#firsts.set(key, this.#places.length);
    this.#cursor = this.before?.firsts.get(key) ?? this.#cursor;
  }

  text(text: string): void {
    this.#text += text;
  }

  value(value: Json): void {
    const before = this.before;
    // The next one, or one near it, where some were put in or taken out.
    for (let i = this.#cursor; before !== undefined && i < before.places.length; i++) {
      if (i > this.#cursor + 2) break;
      const { value: old, bytes, start, end } = before.places[i]!;
      if (!sameJson(old, value)) continue;
      this.#flush();
      // The newer of two equal values: the next body has that one, too, and needs no comparison.
      this.#place(value, bytes, start, end);
      this.#cursor = i + 1;
      return;
    }
    this.#cursor++;
    this.#flush();
    const start = this.#madeSize;
    this.#make(JSON.stringify(value) ?? 'null');
    this.#place(value, NEW, start, this.#madeSize);
  }

  #place(value: Json, bytes: Uint8Array, start: number, end: number): void {
    this.#starts.push(this.#size);
    this.#places.push({ value, bytes, start, end });
    this.#take(bytes, start, end);
  }

  #flush(): void {
    if (this.#text === '') return;
    const text = this.#text;
    this.#text = '';
    const last = this.#parts.at(-1);
    // Between two neighbours stands what stood there before: one range takes them all.
    if (text === ',' && last !== undefined && last.bytes[last.end] === COMMA) {
      last.end++;
      this.#size++;
      return;
    }
    const start = this.#madeSize;
    this.#make(text);
    this.#take(NEW, start, this.#madeSize);
  }

  #make(text: string): void {
    const bytes = encoder.encode(text);
    this.#made.push(bytes);
    this.#madeSize += bytes.length;
  }

  #take(bytes: Uint8Array, start: number, end: number): void {
    const last = this.#parts.at(-1);
    this.#size += end - start;
    if (last?.bytes === bytes && last.end === start) last.end = end;
    else this.#parts.push({ bytes, start, end });
  }

  done(): WrittenBody {
    this.#flush();
    const made = wholeBytes(new ByteList(this.#made));
    const buffers = new Set<Uint8Array>();
    let held = 0;
    for (const part of this.#parts) {
      if (part.bytes === NEW) part.bytes = made;
      if (buffers.has(part.bytes)) continue;
      buffers.add(part.bytes);
      held += part.bytes.length;
    }
    for (const place of this.#places) if (place.bytes === NEW) place.bytes = made;
    const body = new ByteList(
      this.#parts.map(({ bytes, start, end }) => bytes.subarray(start, end)),
    );
    const [places, firsts] = [this.#places, this.#firsts];
    if (held <= 2 * this.#size && this.#parts.length <= MAX_PARTS) {
      return { body, held, places, firsts };
    }
    const bytes = wholeBytes(body);
    places.forEach((place, i) => {
      place.end = this.#starts[i]! + place.end - place.start;
      place.start = this.#starts[i]!;
      place.bytes = bytes;
    });
    return { body: new ByteList([bytes]), held: bytes.length, places, firsts };
  }
}

const COMMA = 0x2c;

/** Deeper values are written again: a comparison must not end the stack. */
const MAX_DEPTH = 100;

/** Would both be written the same? False for some that would, never true for others. */
function sameJson(a: Json | undefined, b: Json | undefined, depth = 0): boolean {
  if (a === b) return true;
  if (depth > MAX_DEPTH) return false;
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
