/** Takes media out of what is recorded: base64 in JSON and event streams becomes its length, binary answers too. */

import { asBuffer } from '../lib/bytes/bytes.ts';
import type { ReadonlyHeaders } from '../lib/http/headers.ts';
import { pastEscapes } from '../lib/json/string-ends.ts';

/** A string of so many bytes without a space is data, not words. */
const MAX_WORD = 1024;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SLASH = 0x2f;
const LINE_END = 0x0a;

/** Printable ASCII but for the space: what base64, data URLs and hexadecimal digits are made of. */
const isDense = (byte: number) => byte > 0x20 && byte < 0x7f && byte !== BACKSLASH;

/** Where a filter stands: outside of strings, in the beginning of one, in words, in data. */
const OUTSIDE = 0;
const HELD = 1;
const WORDS = 2;
const DATA = 3;

/** What stands between two strings is mostly short: so many bytes are looked at one by one. */
const NEAR = 24;

/**
 * Copies JSON, or an event stream of JSON, and writes `(N bytes)` for each string of more than 1024 bytes that is
 * one long word. Holds no more than the beginning of one string. The runtime finds the ends of words and data.
 */
export class MediaFilter {
  #out: Uint8Array[] = [];
  #state = OUTSIDE;
  /** The next byte is escaped. */
  #escaped = false;
  /** The byte before the next one, in the beginning of a string. */
  #before = 0;
  /** The beginning of a string that may be data, of earlier chunks. */
  readonly #held = Buffer.alloc(MAX_WORD + 1);
  #heldBytes = 0;
  /** Bytes of the string that was found to be data. */
  #skipped = 0;
  /** In the chunk that is read: where what was not written yet begins, and where the beginning of a string does. */
  #from = 0;
  #start = 0;

  /** What can be recorded of the bytes so far. */
  push(chunk: Uint8Array): Uint8Array {
    const bytes = asBuffer(chunk);
    let line = -1;
    this.#from = 0;
    this.#start = 0;
    for (let at = 0; at < bytes.length; ) {
      if (this.#state === OUTSIDE) at = this.#open(bytes, at);
      else if (this.#state === HELD) at = this.#look(bytes, at);
      else {
        if (line < at) line = bytes.indexOf(LINE_END, at);
        if (line < 0) line = bytes.length;
        at = this.#pass(bytes, at, line);
      }
    }
    if (this.#state === HELD) {
      this.#write(bytes, this.#start);
      bytes.copy(this.#held, this.#heldBytes, this.#start);
      this.#heldBytes += bytes.length - this.#start;
    } else if (this.#state !== DATA) this.#write(bytes, bytes.length);
    return this.#taken();
  }

  /** What was held at the end. */
  end(): Uint8Array {
    this.#writeHeld();
    this.#close();
    return this.#taken();
  }

  #taken(): Uint8Array {
    const out = this.#out;
    this.#out = [];
    return out.length === 1 ? out[0]! : Buffer.concat(out);
  }

  #write(bytes: Buffer, to: number): void {
    if (to > this.#from) this.#out.push(bytes.subarray(this.#from, to));
    this.#from = to;
  }

  #writeHeld(): void {
    if (this.#heldBytes > 0) this.#out.push(Buffer.from(this.#held.subarray(0, this.#heldBytes)));
    this.#heldBytes = 0;
  }

  /** Goes behind the next quote. */
  #open(bytes: Buffer, from: number): number {
    const near = Math.min(bytes.length, from + NEAR);
    let at = from;
    while (at < near && bytes[at] !== QUOTE) at++;
    if (at === near) at = bytes.indexOf(QUOTE, at);
    if (at < 0) return bytes.length;
    this.#state = HELD;
    this.#escaped = false;
    this.#before = 0;
    this.#start = at + 1;
    return at + 1;
  }

  /** Reads on in the beginning of a string, until it is over or shows what it is. Returns the place to go on from. */
  #look(bytes: Buffer, from: number): number {
    const most = from + MAX_WORD + 1 - this.#heldBytes;
    const until = Math.min(bytes.length, most);
    let escaped = this.#escaped;
    let before = this.#before;
    let at = from;
    for (; at < until; at++) {
      const byte = bytes[at]!;
      // No JSON has a line break in a string: what began it was none.
      if ((byte === QUOTE && !escaped) || byte === LINE_END) {
        this.#writeHeld();
        this.#state = OUTSIDE;
        // The line break may stand before a string, and the quote ended one.
        return at + 1;
      }
      const escapedSlash = escaped && byte === SLASH;
      escaped = byte === BACKSLASH && !escaped;
      const dense = isDense(byte) || byte === BACKSLASH;
      if (!dense || (before === BACKSLASH && !escapedSlash)) {
        this.#writeHeld();
        this.#state = WORDS;
        this.#escaped = escaped;
        return at + 1;
      }
      before = byte;
    }
    this.#escaped = escaped;
    this.#before = before;
    if (at === most) {
      this.#write(bytes, this.#start);
      this.#heldBytes = 0;
      this.#skipped = MAX_WORD + 1;
      this.#state = DATA;
    }
    return at;
  }

  /** Goes behind the end of a string of words or data. */
  #pass(bytes: Buffer, from: number, line: number): number {
    // Behind an escape: what stands before this place escapes nothing.
    const clear = this.#escaped ? from + 1 : from;
    let at = clear;
    let quote = bytes.indexOf(QUOTE, at);
    while (quote >= 0 && quote < line && slashesBefore(bytes, at, quote) % 2 === 1) {
      at = pastEscapes(bytes, quote + 1);
      quote = bytes.indexOf(QUOTE, at);
    }
    const end = quote < 0 || quote > line ? line : quote;
    if (this.#state === DATA) this.#skipped += end - from;
    if (end === bytes.length) {
      this.#escaped = slashesBefore(bytes, clear, end) % 2 === 1;
      return end;
    }
    if (this.#state === DATA) this.#from = end;
    this.#close();
    return end + 1;
  }

  /** The string is over. */
  #close(): void {
    if (this.#state === DATA) this.#out.push(Buffer.from(`(${this.#skipped} bytes)`));
    this.#skipped = 0;
    this.#state = OUTSIDE;
  }
}

/** Backslashes that stand directly before `end`, and not before `from`. */
function slashesBefore(bytes: Uint8Array, from: number, end: number): number {
  let at = end;
  while (at > from && bytes[at - 1] === BACKSLASH) at--;
  return end - at;
}

/** A whole JSON body without its media. */
export function withoutMedia(bytes: Uint8Array): Uint8Array {
  const filter = new MediaFilter();
  return Buffer.concat([filter.push(bytes), filter.end()]);
}

const BINARY = /^(?:audio|image|video)\/|^application\/(?:octet-stream|x-tar|zip)\b/i;

/** Receives the bytes of an answer as they pass, and hands on what may be recorded. */
export class MediaTap {
  readonly #type: string;
  readonly #filter: MediaFilter | undefined;
  #bytes = 0;

  constructor(
    headers: ReadonlyHeaders,
    private readonly record: (bytes: Uint8Array) => void,
  ) {
    this.#type = headers.get('content-type') ?? '';
    this.#filter = BINARY.test(this.#type) ? undefined : new MediaFilter();
  }

  chunk(chunk: Uint8Array): void {
    this.#bytes += chunk.length;
    const kept = this.#filter?.push(chunk);
    if (kept !== undefined && kept.length > 0) this.record(kept);
  }

  /** The answer is over. */
  end(): void {
    const rest =
      this.#filter?.end() ??
      Buffer.from(JSON.stringify({ media: { content_type: this.#type, bytes: this.#bytes } }));
    if (rest.length > 0) this.record(rest);
  }
}
