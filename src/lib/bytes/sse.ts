/** Server-sent events: bytes in, frames out, each with the bytes it came from; and the reverse. */

/**
 * One event: `data` lines joined with a newline, `event` the last event line (empty when there was
 * none). It came from `bytes`, `from` up to `to`, its blank line included. A frame without data
 * (comments, keep-alives) has `data === undefined`.
 * @see https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
 */
export interface SseFrame {
  readonly event: string;
  readonly data: string | undefined;
  readonly bytes: Uint8Array;
  readonly from: number;
  readonly to: number;
}

const LF = 0x0a;
const CR = 0x0d;

const utf8 = new TextDecoder('utf-8', { ignoreBOM: true });

const NO_BYTES = new Uint8Array(0);

export interface SseOptions {
  /** The frames carry no bytes, as the caller does not need them. */
  readonly raw?: false;
  /** How large a frame may be. */
  readonly limit?: FrameLimit;
}

export interface FrameLimit {
  /** A frame that is larger is not waited for. */
  readonly bytes: number;
  /** What is thrown instead. */
  error(): Error;
}

/** Takes frames as they are found. */
export interface FrameReader {
  frame(frame: SseFrame): void;
  /**
   * Asked before a frame is taken apart: where a run of frames ends that begins at `at` of `text` and
   * can be dealt with as one; `at` when there is none. The run comes to `frame` next, without `data`.
   * `text` holds whole frames with LF lines, blank lines included.
   */
  run?(text: string, at: number): number;
}

/** Splits a byte stream into frames, whatever the chunk boundaries; LF, CRLF and CR lines. */
export class SseParser {
  readonly #raw: boolean;
  readonly #limit: FrameLimit | undefined;
  #tail: Uint8Array | undefined;
  #searched = 0;
  /** There is a carriage return in what has been searched. */
  #returns = false;
  /** The memory that `#tail` begins, where more may be written behind it. */
  #room: Uint8Array | undefined;
  /** The tail has been joined and still holds no whole frame: more pieces are to be expected. */
  #grows = false;

  constructor(options: SseOptions = {}) {
    this.#raw = options.raw ?? true;
    this.#limit = options.limit;
  }

  /** Frames completed by this chunk, in order. The chunk is kept by reference. */
  push(chunk: Uint8Array): SseFrame[] {
    const frames: SseFrame[] = [];
    this.read(chunk, { frame: (frame) => frames.push(frame) });
    return frames;
  }

  /** Gives them to the reader, as {@link push} does in a list; should it throw, the chunk counts as read. */
  read(chunk: Uint8Array, reader: FrameReader): void {
    const bytes = this.#joined(chunk);
    const end = this.#returns ? -1 : this.#lastPlainEnd(bytes);
    if (end > 0) {
      this.#keep(bytes, end);
      this.#plain(bytes, end, reader);
      this.#check();
      return;
    }
    const frames: SseFrame[] = [];
    this.#cut(bytes, (frame) => {
      frames.push(frame);
      return false;
    });
    for (const frame of frames) reader.frame(frame);
    this.#check();
  }

  /** Frames with LF lines, up to `end`. */
  #plain(bytes: Uint8Array, end: number, reader: FrameReader): void {
    const raw = this.#raw ? bytes : NO_BYTES;
    // One decoding for all of them costs a fraction of one for each.
    const text = utf8.decode(end === bytes.length ? bytes : bytes.subarray(0, end));
    // As many characters as bytes: pure ASCII, and what stands where in one stands there in the other.
    const ascii = text.length === end;
    for (let at = 0, from = 0; at < text.length; ) {
      const run = reader.run?.(text, at) ?? at;
      if (run > at) {
        const to = from + (ascii ? run - at : Buffer.byteLength(text.slice(at, run)));
        reader.frame({ event: '', data: undefined, bytes: raw, from, to });
        at = run;
        from = to;
        continue;
      }
      // Most frames are one line: its end is that of the frame.
      const line = text.indexOf('\n', at);
      const next =
        text.charCodeAt(line + 1) === LF ? line + 2 : line < 0 ? 0 : text.indexOf('\n\n', line) + 2;
      if (next < 2) {
        // An odd line feed behind a blank line belongs to what comes next.
        this.#keep(bytes, end - (text.length - at));
        return;
      }
      const to = ascii ? next : this.#raw ? blankLineEnd(bytes, from) : 0;
      const frame = parseFrame(text, at, next, raw, from, to, line);
      at = next;
      from = to;
      reader.frame(frame);
    }
  }

  /**
   * Gives the frames one by one until `stop` says true. What stands behind the last one given, frames
   * and pieces of one, is then {@link pending}.
   */
  pushUntil(chunk: Uint8Array, stop: (frame: SseFrame) => boolean): void {
    if (!this.#cut(this.#joined(chunk), stop)) this.#check();
  }

  /** What has been kept and this behind it. Each byte is moved a bounded number of times, however small the pieces. */
  #joined(chunk: Uint8Array): Uint8Array {
    const tail = this.#tail;
    if (tail === undefined) return chunk;
    const length = tail.length + chunk.length;
    let room = this.#room;
    if (room === undefined || room.length < length) {
      // A frame in two pieces needs no more than its own bytes.
      room = new Uint8Array(this.#grows ? length * 2 : length);
      room.set(tail);
    }
    room.set(chunk, tail.length);
    this.#room = room;
    this.#grows = true;
    return room.length === length ? room : room.subarray(0, length);
  }

  /** True if `stop` ended the reading. */
  #cut(bytes: Uint8Array, stop: (frame: SseFrame) => boolean): boolean {
    let start = 0;
    let stopped = false;
    // Some bytes back: a blank line may be split between two chunks.
    const ends = new BlankLines(bytes, Math.max(0, this.#searched - 3));
    for (;;) {
      const end = ends.next();
      if (end < 0) break;
      const text = utf8.decode(bytes.subarray(start, end));
      const raw = this.#raw ? bytes : NO_BYTES;
      const frame = parseFrame(
        text,
        0,
        text.length,
        raw,
        this.#raw ? start : 0,
        this.#raw ? end : 0,
      );
      start = end;
      stopped = stop(frame);
      if (stopped) break;
    }
    this.#keep(bytes, start);
    return stopped;
  }

  #keep(bytes: Uint8Array, from: number): void {
    if (from > 0) {
      this.#room = undefined;
      this.#grows = false;
      this.#returns &&= bytes.indexOf(CR, from) >= 0;
    }
    this.#tail = from === bytes.length ? undefined : from === 0 ? bytes : bytes.subarray(from);
    this.#searched = this.#tail === undefined ? 0 : this.#tail.length;
  }

  /**
   * Index behind the last blank line where all lines end in LF, else -1. Without a carriage return a
   * blank line is two line feeds and nothing else, in bytes as in text. What has been searched is not
   * searched again.
   */
  #lastPlainEnd(bytes: Uint8Array): number {
    const from = this.#searched;
    if (bytes.indexOf(CR, from) >= 0) {
      this.#returns = true;
      return -1;
    }
    const fresh = from === 0 ? bytes : bytes.subarray(from);
    for (let i = fresh.lastIndexOf(LF); i >= 0; i = fresh.lastIndexOf(LF, i - 1)) {
      if (bytes[from + i - 1] === LF) return from + i + 1;
      if (i === 0) break;
    }
    return -1;
  }

  /** @throws what the limit says where the frame under way is larger */
  #check(): void {
    const limit = this.#limit;
    if (limit === undefined || this.#tail === undefined) return;
    if (this.#tail.length <= limit.bytes) return;
    this.#tail = undefined;
    this.#room = undefined;
    throw limit.error();
  }

  /**
   * What stands behind the last blank line when the stream ends. The standard drops it; some vendors
   * end without a blank line, so a remainder that holds a data line counts as a frame.
   */
  end(): SseFrame[] {
    const tail = this.#tail;
    this.#tail = undefined;
    if (tail === undefined) return [];
    const text = utf8.decode(tail);
    const raw = this.#raw ? tail : NO_BYTES;
    const frame = parseFrame(text, 0, text.length, raw, 0, raw.length);
    return frame.data === undefined && frame.event === '' ? [] : [frame];
  }

  /** Bytes held back because no blank line has closed them yet. */
  get pending(): Uint8Array | undefined {
    return this.#tail;
  }
}

/** Finds blank lines, one after the other, looking at each byte a bounded number of times. */
class BlankLines {
  /** The next LF that has not been looked at; the length where there is none. */
  #lf: number;
  /** Before it stands no CR that has not been looked at. */
  #cr: number;

  constructor(
    private readonly bytes: Uint8Array,
    from: number,
  ) {
    this.#lf = at(bytes, LF, from);
    this.#cr = nearCr(bytes, from);
  }

  /** Index just behind the next blank line, or -1. */
  next(): number {
    const bytes = this.bytes;
    const { length } = bytes;
    while (this.#lf < length || this.#cr < length) {
      let end = -1;
      if (this.#lf < this.#cr) {
        const next = bytes[this.#lf + 1];
        if (next === LF) end = this.#lf + 2;
        else if (next === CR && bytes[this.#lf + 2] === LF) end = this.#lf + 3;
        this.#lf = at(bytes, LF, end < 0 ? this.#lf + 1 : end);
      } else if (bytes[this.#cr] !== CR) {
        this.#cr = nearCr(bytes, this.#cr);
      } else {
        // The standard allows lines that end in a lone CR; no known vendor sends them.
        if (bytes[this.#cr + 1] === CR) end = this.#cr + 2;
        this.#cr = nearCr(bytes, end < 0 ? this.#cr + 1 : end);
      }
      if (end < 0) continue;
      if (this.#lf < end) this.#lf = at(bytes, LF, end);
      if (this.#cr < end) this.#cr = nearCr(bytes, end);
      return end;
    }
    return -1;
  }
}

function at(bytes: Uint8Array, byte: number, from: number): number {
  const found = bytes.indexOf(byte, from);
  return found < 0 ? bytes.length : found;
}

// Few streams have a CR, and often only the first frames of a long chunk are looked for.
const CR_BYTES = 8 * 1024;

/** The next CR where it is near, else where the search goes on. */
function nearCr(bytes: Uint8Array, from: number): number {
  const to = from + CR_BYTES;
  if (to >= bytes.length) return at(bytes, CR, from);
  const found = bytes.subarray(from, to).indexOf(CR);
  return found < 0 ? to : from + found;
}

/** Index just behind the first blank line at or after `from` where all lines end in LF, or -1. */
function blankLineEnd(bytes: Uint8Array, from: number): number {
  for (let i = bytes.indexOf(LF, from); i >= 0; i = bytes.indexOf(LF, i + 1)) {
    if (bytes[i + 1] === LF) return i + 2;
  }
  return -1;
}

/** The event of a line `error: …`, and of an error that stands in the stream as bare JSON: the standard knows neither. */
export const ERROR_LINE = 'error:';

// No field whose name is shorter is read.
const MIN_LINE = 'data:'.length;

/** The frame that stands in `text` from `start` to `stop`; its first line feed, where that is known. */
function parseFrame(
  text: string,
  start: number,
  stop: number,
  bytes: Uint8Array,
  from: number,
  to: number,
  firstLf = -1,
): SseFrame {
  // Nearly every frame is `data: …` or `event: …` + `data: …` with LF: cut those without a regex.
  let event = '';
  let data: string | undefined;
  let at = text.charCodeAt(start) === 0xfeff ? start + 1 : start;
  // Without bytes, frames stand in a longer text that is known to hold no carriage return.
  const crlf = start === 0 && stop === text.length && text.includes('\r');
  // The next of each, not looked for again before it is reached.
  let lf = firstLf;
  let cr = -1;
  while (at + MIN_LINE <= stop) {
    if (lf < at) lf = indexIn(text, '\n', at);
    let end = lf;
    let next = end + 1;
    if (crlf) {
      if (cr < at) cr = indexIn(text, '\r', at);
      if (cr < lf) {
        next = text.charCodeAt(cr + 1) === LF ? cr + 2 : cr + 1;
        end = cr;
      }
    }
    if (end >= stop) {
      end = stop;
      next = stop;
    }
    if (text.startsWith('data:', at)) {
      const value = text.slice(text.charCodeAt(at + 5) === 0x20 ? at + 6 : at + 5, end);
      data = data === undefined ? value : `${data}\n${value}`;
    } else if (text.startsWith('event:', at)) {
      event = text.slice(text.charCodeAt(at + 6) === 0x20 ? at + 7 : at + 6, end);
    } else if (text.startsWith('error:', at)) {
      // llama.cpp
      event = ERROR_LINE;
      data = text.slice(text.charCodeAt(at + 6) === 0x20 ? at + 7 : at + 6, end);
    }
    at = next;
  }
  if (data === undefined && event === '') {
    // Google, and relays whose stream has begun.
    const bare = text.slice(start, stop).trim();
    if (/^[{[]/.test(bare) && bare.includes('"error"')) {
      return { event: ERROR_LINE, data: bare, bytes, from, to };
    }
  }
  return { event, data, bytes, from, to };
}

function indexIn(text: string, character: string, from: number): number {
  const found = text.indexOf(character, from);
  return found < 0 ? text.length : found;
}

/** One event as text; `data` must not hold a line break (JSON does not). */
export function sseEvent(event: string, data: string): string {
  return event === '' ? `data: ${data}\n\n` : `event: ${event}\ndata: ${data}\n\n`;
}

/** A comment, which every client skips: the keep-alive where the protocol has no ping. */
export function sseComment(text: string): string {
  return `: ${text}\n\n`;
}

const KEEP_ALIVE = /^(?::|\[?(?:ping|pong|heartbeat|keep[-_ ]?alive)\]?$|(?:null|"")$)/i;

/**
 * Is the data of a frame, which is no JSON object, a keep-alive? Relays write comments as data (Vertex AI's partner models:
 * anomalyco/opencode#50871; OpenRouter's, through others: mnfst/llm-gateway#2053), or a word.
 */
export const isKeepAlive = (data: string): boolean => KEEP_ALIVE.test(data.trim());

const FIELD = /^(?:event|id|retry)\b/m;

/** No frame that says nothing has more bytes. */
export const MAX_SILENT = 48;

/**
 * Has the frame nothing to read for a client, which may throw all the same: a name, an id or a time to wait without data
 * (openai/openai-python#3833, earendil-works/pi#8430), empty data, or a keep-alive as data? Comments, which clients skip,
 * are no such frames.
 */
export function isSilent({ data, bytes, from, to }: SseFrame): boolean {
  if (to - from > MAX_SILENT) return false;
  if (data !== undefined) return data.trim() === '' || isKeepAlive(data);
  return FIELD.test(utf8.decode(bytes.subarray(from, to)));
}
