/** Reads HTTP/1.1 answers from bytes as they come: heads, lengths, chunks, bodies until the close (RFC 9112). */

import { FlatHeaders, type ReadonlyHeaders } from '../../lib/http/headers.ts';

/** The bytes are no HTTP/1.1 answer; the connection cannot be used again. */
export class MalformedReply extends Error {
  readonly code = 'malformed HTTP';
}

export interface ReplyHead {
  readonly status: number;
  readonly headers: ReadonlyHeaders;
}

/** How large the head of an answer may be. */
export interface HeadLimits {
  /** Of all heads of one answer together, those of informational answers and trailers included. */
  readonly headerBytes: number;
  /** Header lines of one head. */
  readonly headers: number;
}

// Vendors send a few KB; a vendor that sends more than this will not stop.
export const USUAL_LIMITS: HeadLimits = { headerBytes: 64 * 1024, headers: 256 };
const MAX_SIZE_DIGITS = 16;
const MAX_CHUNK_LINE = 4096;
const MAX_CHUNK_BYTES = 2 ** 40;

const LF = 0x0a;
const CR = 0x0d;
const SEMICOLON = 0x3b;
const SPACE = 0x20;
const TAB = 0x09;
const COLON = 0x3a;
// Lines, and characters of a name.
const MAX_USUAL = 64;
const END_OF_HEAD = Buffer.from('\n\r\n');
const BARE_END_OF_HEAD = '\n\n';
// biome-ignore lint/suspicious/noControlCharactersInRegex: the same
export const EACH_CONTROL = /[\x01-\x08\x0b\x0c\x0e-\x1f\x7f]/g;
// As far back as an end of a head may begin.
const OVERLAP = 2;
// No value may hold one (RFC 9110 §5.5). NUL, and what ends lines, is refused elsewhere.
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
export const CONTROLS = /[\x01-\x08\x0b\x0c\x0e-\x1f\x7f]/;

// A view of memory makes an object of that memory: so few bytes are copied in less time, and the engine
// keeps them among its own objects.
const SMALL_BYTES = 1000;
const copied = Uint8Array.prototype.slice;

// Where the next byte belongs. Numbers: strings cost more to tell apart than a small chunk to read.
const HEAD = 0;
const LENGTH = 1;
const SIZE = 2;
const EXTENSION = 3;
const CHUNK = 4;
const CHUNK_END = 5;
const TRAILER = 6;
const UNTIL_CLOSE = 7;
const DONE = 8;

/** The answer to one request. Informational answers (1xx) before it are passed over. */
export class ResponseParser {
  /** Known once it has come whole. */
  head: ReplyHead | undefined;
  /** The fault of the bytes; nothing behind them is read. */
  malformed: MalformedReply | undefined;
  #state = HEAD;
  /** Of a head that has not come whole: its bytes, in memory that may be longer, and how many have been searched. */
  #partial: Buffer | undefined;
  #partialBytes = 0;
  /** Of all heads so far. */
  #headBytes = 0;
  /** Bytes of the body, or of the chunk under way, that are still to come. */
  #left = 0;
  #digits = 0;
  /** Bytes of the current line: a chunk's size, or a trailer. */
  #lineBytes = 0;
  #reusable = true;

  constructor(private readonly limits: HeadLimits = USUAL_LIMITS) {}

  /** The answer is complete. */
  get done(): boolean {
    return this.#state === DONE;
  }

  /** Another request may follow on the connection. Only once `done`. */
  get reusable(): boolean {
    return this.#reusable;
  }

  /**
   * The body's bytes among these, as one piece, of `bytes` or a copy: where chunks of the transfer
   * encoding lie between, they are moved together within `bytes`, which is the parser's from here on. Ask
   * `malformed` afterwards: what stood before the trouble is still given.
   */
  push(bytes: Buffer): Buffer | undefined {
    if (this.malformed !== undefined) return undefined;
    const input = this.#partial === undefined ? bytes : this.#withPartial(this.#partial, bytes);
    const { length } = input;
    let start = -1;
    let to = 0;
    let i = 0;
    try {
      while (i < length) {
        switch (this.#state) {
          case HEAD:
            i = this.#readHead(input, i);
            break;
          case LENGTH:
          case CHUNK:
          case UNTIL_CLOSE: {
            const rest = length - i;
            const size = this.#state === UNTIL_CLOSE || this.#left > rest ? rest : this.#left;
            if (start < 0) {
              start = i;
              to = i;
            } else {
              input.copyWithin(to, i, i + size);
            }
            to += size;
            i += size;
            if (this.#state === UNTIL_CLOSE) break;
            this.#left -= size;
            if (this.#left === 0) this.#state = this.#state === LENGTH ? DONE : CHUNK_END;
            break;
          }
          case CHUNK_END:
            // The CR is let go by; only a line's end may stand here.
            if (input[i] === LF) this.#startSize();
            else if (input[i] !== CR || ++this.#lineBytes > 1) {
              throw new MalformedReply('a chunk is longer than its size');
            }
            i++;
            break;
          case SIZE:
            i = this.#readSize(input, i);
            break;
          case EXTENSION:
            i = this.#skipExtension(input, i);
            break;
          case TRAILER:
            i = this.#readTrailer(input, i);
            break;
          case DONE:
            // No request is open: whatever this answers, it is not our next request.
            this.#reusable = false;
            i = length;
            break;
        }
      }
    } catch (thrown) {
      if (!(thrown instanceof MalformedReply)) throw thrown;
      this.malformed = thrown;
    }
    if (start < 0) return undefined;
    if (to - start > SMALL_BYTES) return input.subarray(start, to);
    return copied.call(input, start, to) as Buffer;
  }

  /** The connection has closed: whether that is how this answer ends. */
  closed(): boolean {
    if (this.#state === UNTIL_CLOSE) this.#state = DONE;
    return this.#state === DONE;
  }

  /** What has come of the head and this behind it; each byte is moved a bounded number of times. */
  #withPartial(partial: Buffer, bytes: Buffer): Buffer {
    const length = this.#partialBytes + bytes.length;
    let room = partial;
    if (room.length < length) {
      room = Buffer.allocUnsafeSlow(length * 2);
      partial.copy(room, 0, 0, this.#partialBytes);
    }
    bytes.copy(room, this.#partialBytes);
    this.#partial = room;
    return room.subarray(0, length);
  }

  #readHead(input: Buffer, from: number): number {
    const known = this.#partial === undefined ? 0 : this.#partialBytes;
    const searched = from + Math.max(0, known - OVERLAP);
    const end = input.indexOf(END_OF_HEAD, searched);
    // Some small servers end their lines without CR (RFC 9112 §2.2 lets a reader take them).
    let text: string | undefined;
    let bare: number;
    if (known === 0 && end >= 0) {
      text = input.toString('latin1', from, end + 1);
      bare = text.indexOf(BARE_END_OF_HEAD);
    } else
      bare = input.subarray(searched, end < 0 ? input.length : end + 1).indexOf(BARE_END_OF_HEAD);
    const stop = bare >= 0 ? searched + bare : end < 0 ? input.length : end;
    this.#headBytes += stop - from - known;
    const { headerBytes } = this.limits;
    if (this.#headBytes > headerBytes) {
      throw new MalformedReply(`more than ${headerBytes} bytes of headers (limits.header_bytes)`);
    }
    if (bare < 0 && end < 0) {
      if (this.#partial === undefined) this.#partial = from === 0 ? input : input.subarray(from);
      this.#partialBytes = input.length - from;
      const begin = input.toString('latin1', from, Math.min(input.length, from + 7));
      if (!plausible(begin)) throw new MalformedReply(isHttp2(begin) ? HTTP2 : NO_STATUS);
      return input.length;
    }
    this.#partial = undefined;
    this.#take(text?.slice(0, stop - from) ?? input.toString('latin1', from, stop));
    return stop + (bare >= 0 ? BARE_END_OF_HEAD.length : END_OF_HEAD.length);
  }

  #take(text: string): void {
    const { status, http10 } = statusOf(text);
    const framing: Framing = { length: undefined, coding: undefined, connection: undefined };
    const headers = headersOf(text, framing, this.limits.headers);
    if (status === 101) throw new MalformedReply('an unrequested switch of protocols');
    if (status < 200) return;
    this.head = { status, headers: soundLength(headers, framing) };
    const connection = framing.connection?.toLowerCase() ?? '';
    if (http10 ? !connection.includes('keep-alive') : connection.includes('close')) {
      this.#reusable = false;
    }
    if (status === 204 || status === 304) {
      this.#state = DONE;
    } else if (framing.coding !== undefined) {
      if (framing.coding.trim().toLowerCase() !== 'chunked') {
        throw new MalformedReply(`unknown transfer encoding '${framing.coding.slice(0, 40)}'`);
      }
      // Both at once is how answers are smuggled (RFC 9112 §6.3): read once, and never again from there.
      if (framing.length !== undefined) this.#reusable = false;
      this.#startSize();
    } else if (framing.length !== undefined) {
      this.#left = lengthOf(framing.length);
      this.#state = this.#left === 0 ? DONE : LENGTH;
    } else {
      this.#reusable = false;
      this.#state = UNTIL_CLOSE;
    }
  }

  #startSize(): void {
    this.#state = SIZE;
    this.#left = 0;
    this.#digits = 0;
    this.#lineBytes = 0;
  }

  #readSize(input: Buffer, from: number): number {
    let i = from;
    while (i < input.length) {
      const byte = input[i++]!;
      const digit = hexDigit(byte);
      if (digit >= 0) {
        if (++this.#digits > MAX_SIZE_DIGITS) throw new MalformedReply('a chunk size without end');
        this.#left = this.#left * 16 + digit;
        if (this.#left > MAX_CHUNK_BYTES) throw new MalformedReply('a chunk without end');
      } else if (this.#digits === 0) {
        throw new MalformedReply('a chunk without a size');
      } else if (byte === LF || (byte === CR && input[i] === LF)) {
        this.#startChunk();
        return byte === LF ? i : i + 1;
      } else if (byte === SEMICOLON || byte === SPACE || byte === TAB || byte === CR) {
        this.#state = EXTENSION;
        return i;
      } else {
        throw new MalformedReply('a chunk whose size is no number');
      }
    }
    return i;
  }

  #skipExtension(input: Buffer, from: number): number {
    const at = input.indexOf(LF, from);
    const end = at < 0 ? input.length : at;
    this.#lineBytes += end - from;
    if (this.#lineBytes > MAX_CHUNK_LINE) throw new MalformedReply('a chunk extension without end');
    if (at < 0) return end;
    this.#startChunk();
    return at + 1;
  }

  #startChunk(): void {
    this.#state = this.#left === 0 ? TRAILER : CHUNK;
    this.#lineBytes = 0;
  }

  /** Trailer fields, which are not used, up to the empty line. */
  #readTrailer(input: Buffer, from: number): number {
    let i = from;
    while (i < input.length) {
      const byte = input[i++]!;
      if (byte === LF) {
        if (this.#lineBytes === 0) {
          this.#state = DONE;
          return i;
        }
        this.#lineBytes = 0;
      } else {
        if (byte !== CR) this.#lineBytes++;
        if (++this.#headBytes > this.limits.headerBytes) {
          throw new MalformedReply('endless trailers (limits.header_bytes)');
        }
      }
    }
    return i;
  }
}

interface Framing {
  length: string | undefined;
  coding: string | undefined;
  connection: string | undefined;
}

const NO_STATUS = 'no HTTP/1 status line';
/** A short frame of settings, with which HTTP/2 begins (RFC 9113 §3.4, §6.5). */
const isHttp2 = (head: string) => head.startsWith('\0\0') && head[3] === '\x04';
const HTTP2 = 'HTTP/2 without TLS, which is not supported; use https:// and http2: true';

/** Does this begin as an answer does? A TLS port, or another protocol, does not. */
const plausible = (head: string) => 'HTTP/1.'.startsWith(head.slice(0, 7));

const OK = { status: 200, http10: false };

function statusOf(text: string): { status: number; http10: boolean } {
  if (text.startsWith('HTTP/1.1 200 ')) return OK;
  const found = /^HTTP\/1\.([01])[ \t]+(\d{3})(?![^\s])/.exec(text);
  if (found === null) throw new MalformedReply(NO_STATUS);
  const status = Number(found[2]);
  if (status < 100 || status > 599) throw new MalformedReply(`an unknown status, ${status}`);
  return { status, http10: found[1] === '0' };
}

// A server says the same fields in the same order: a name that stands where it stood is not cut out again.
const usual: string[] = [];

function nameAt(text: string, from: number, stop: number, line: number): string {
  const guess = usual[line];
  if (guess !== undefined && text.startsWith(guess, from)) {
    if (text.charCodeAt(from + guess.length) === COLON) return guess;
  }
  const colon = text.indexOf(':', from);
  if (colon < 0 || colon >= stop) throw new MalformedReply('a header line without a colon');
  const name = text.slice(from, colon);
  if (line < MAX_USUAL && name.length < MAX_USUAL) usual[line] = name;
  return name;
}

/** Readers of the length find one number, and none where chunks frame the body (RFC 9112 §6.3). */
function soundLength(headers: FlatHeaders, { length, coding }: Framing): FlatHeaders {
  if (length === undefined) return headers;
  if (coding !== undefined) return headers.where((name) => name !== 'content-length');
  if (length.includes(',')) headers.set('content-length', String(lengthOf(length)));
  return headers;
}

/** The header lines behind the status line; what frames the body is noted on the way. */
function headersOf(head: string, framing: Framing, most: number): FlatHeaders {
  const folded = head.includes('\n ') || head.includes('\n\t');
  // Folded lines are obsolete, but a reader has to take them (RFC 9112 §5.2).
  const text = folded ? head.replace(/\r?\n[ \t]+/g, ' ') : head;
  const headers = new FlatHeaders();
  const clean = !CONTROLS.test(text);
  for (let from = text.indexOf('\n') + 1, line = 0; from > 0; line++) {
    if (line === most) throw new MalformedReply(`more than ${most} headers (limits.headers)`);
    const end = text.indexOf('\n', from);
    const stop = end < 0 ? text.length : end;
    const cut = nameAt(text, from, stop, line);
    const raw = text.slice(from + cut.length + 1, stop).trim();
    // A reader may put a space in a control character's place (RFC 9110 §5.5).
    const value = clean ? raw : raw.replace(EACH_CONTROL, ' ');
    const name = cut.trimEnd();
    try {
      headers.append(name, value);
    } catch (thrown) {
      throw new MalformedReply('a header that is none', { cause: thrown });
    }
    if (name.length === 14 || name.length === 17 || name.length === 10) note(framing, name, value);
    from = end + 1;
  }
  return headers;
}

function note(framing: Framing, name: string, value: string): void {
  switch (name.toLowerCase()) {
    case 'content-length':
      framing.length = joined(framing.length, value);
      break;
    case 'transfer-encoding':
      framing.coding = joined(framing.coding, value);
      break;
    case 'connection':
      framing.connection = joined(framing.connection, value);
      break;
  }
}

const joined = (before: string | undefined, value: string): string =>
  before === undefined ? value : `${before}, ${value}`;

/** Repeated, it must be the same each time (RFC 9112 §6.3). */
function lengthOf(text: string): number {
  const length = text.includes(',') ? soleValue(text) : text;
  if (length === undefined || !/^\d{1,15}$/.test(length)) {
    throw new MalformedReply(`a content-length of '${text.slice(0, 40)}'`);
  }
  return Number(length);
}

function soleValue(text: string): string | undefined {
  const values = new Set(text.split(',').map((part) => part.trim()));
  return values.size === 1 ? [...values][0] : undefined;
}

function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}
