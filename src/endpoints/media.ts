/** Takes media out of what is recorded: base64 in JSON and event streams becomes its length, binary answers too. */

import type { ReadonlyHeaders } from '../lib/http/headers.ts';

/** A string of so many bytes without a space is data, not words. */
const LONGEST_WORD = 1024;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SLASH = 0x2f;

/** Printable ASCII but for the space: what base64, data URLs and hexadecimal digits are made of. */
const isDense = (byte: number) => byte > 0x20 && byte < 0x7f && byte !== BACKSLASH;

/**
 * Copies JSON, or an event stream of JSON, and writes `(N bytes)` for each string of more than 1024 bytes that is
 * one long word. Holds no more than the beginning of one string.
 */
export class MediaFilter {
  #out: Buffer = Buffer.alloc(0);
  #length = 0;
  #inString = false;
  #escaped = false;
  /** The beginning of a string that may be data; undefined: it has words. */
  #held: number[] | undefined;
  /** Bytes of the string that was found to be data; 0: none. */
  #skipped = 0;

  /** What can be recorded of the bytes so far. */
  push(chunk: Uint8Array): Uint8Array {
    this.#out = Buffer.allocUnsafe(chunk.length + LONGEST_WORD + 64);
    this.#length = 0;
    for (let i = 0; i < chunk.length; i++) this.#read(chunk[i]!);
    return this.#out.subarray(0, this.#length);
  }

  /** What was held at the end. */
  end(): Uint8Array {
    this.#out = Buffer.allocUnsafe(LONGEST_WORD + 64);
    this.#length = 0;
    this.#closeString();
    return this.#out.subarray(0, this.#length);
  }

  #read(byte: number): void {
    if (!this.#inString) {
      this.#write(byte);
      if (byte === QUOTE) {
        this.#inString = true;
        this.#held = [];
      }
      return;
    }
    // No JSON has a line break in a string: what began it was none.
    if ((byte === QUOTE && !this.#escaped) || byte === 0x0a) {
      this.#closeString();
      this.#write(byte);
      return;
    }
    const escapedSlash = this.#escaped && byte === SLASH;
    const dense = isDense(byte) || byte === BACKSLASH;
    this.#escaped = byte === BACKSLASH && !this.#escaped;
    if (this.#skipped > 0) {
      this.#skipped++;
      return;
    }
    if (this.#held === undefined) {
      this.#write(byte);
      return;
    }
    const before = this.#held.at(-1);
    this.#held.push(byte);
    if (!dense || (before === BACKSLASH && !escapedSlash)) this.#release();
    else if (this.#held.length > LONGEST_WORD) {
      this.#skipped = this.#held.length;
      this.#held = undefined;
    }
  }

  #release(): void {
    for (const byte of this.#held ?? []) this.#write(byte);
    this.#held = undefined;
  }

  #closeString(): void {
    this.#release();
    if (this.#skipped > 0) {
      for (const byte of Buffer.from(`(${this.#skipped} bytes)`)) this.#write(byte);
    }
    this.#skipped = 0;
    this.#inString = false;
    this.#escaped = false;
  }

  #write(byte: number): void {
    if (this.#length === this.#out.length) {
      const larger = Buffer.allocUnsafe(2 * this.#out.length);
      this.#out.copy(larger);
      this.#out = larger;
    }
    this.#out[this.#length++] = byte;
  }
}

/** A whole JSON body without its media. */
export function withoutMedia(bytes: Uint8Array): Uint8Array {
  const filter = new MediaFilter();
  return Buffer.concat([filter.push(bytes), filter.end()]);
}

const BINARY = /^(?:audio|image|video)\/|^application\/(?:octet-stream|x-tar|zip)\b/i;

/** Receives the bytes of an answer as they pass, and hands on what may be recorded. */
export class MediaTap {
  readonly #record: (bytes: Uint8Array) => void;
  readonly #type: string;
  readonly #filter: MediaFilter | undefined;
  #bytes = 0;

  constructor(headers: ReadonlyHeaders, record: (bytes: Uint8Array) => void) {
    this.#record = record;
    this.#type = headers.get('content-type') ?? '';
    this.#filter = BINARY.test(this.#type) ? undefined : new MediaFilter();
  }

  chunk(chunk: Uint8Array): void {
    this.#bytes += chunk.length;
    const kept = this.#filter?.push(chunk);
    if (kept !== undefined && kept.length > 0) this.#record(kept);
  }

  /** The answer is over. */
  end(): void {
    const rest =
      this.#filter?.end() ??
      Buffer.from(JSON.stringify({ media: { content_type: this.#type, bytes: this.#bytes } }));
    if (rest.length > 0) this.#record(rest);
  }
}
