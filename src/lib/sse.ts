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
  /** Nobody asks for the frames' bytes: they have none. */
  readonly raw?: false;
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
  #tail: Uint8Array | undefined;
  #searched = 0;

  constructor(options: SseOptions = {}) {
    this.#raw = options.raw ?? true;
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
    const end = lastPlainEnd(bytes);
    if (end > 0) {
      this.#keep(bytes, end);
      this.#plain(bytes, end, reader);
      return;
    }
    const frames: SseFrame[] = [];
    this.#cut(bytes, (frame) => {
      frames.push(frame);
      return false;
    });
    for (const frame of frames) reader.frame(frame);
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
      const next = text.indexOf('\n\n', at) + 2;
      if (next < 2) {
        // An odd line feed behind a blank line belongs to what comes next.
        this.#keep(bytes, end - (text.length - at));
        return;
      }
      const to = ascii ? next : this.#raw ? blankLineEnd(bytes, from) : 0;
      const frame = parseFrame(text, at, next, raw, from, to);
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
    this.#cut(this.#joined(chunk), stop);
  }

  #joined(chunk: Uint8Array): Uint8Array {
    return this.#tail === undefined ? chunk : join(this.#tail, chunk);
  }

  #cut(bytes: Uint8Array, stop: (frame: SseFrame) => boolean): void {
    let start = 0;
    // Two bytes back: a blank line may straddle the border of the chunks.
    let from = Math.max(0, this.#searched - 3);
    for (;;) {
      const end = blankLineEnd(bytes, from);
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
      from = end;
      if (stop(frame)) break;
    }
    this.#keep(bytes, start);
  }

  #keep(bytes: Uint8Array, from: number): void {
    this.#tail = from === bytes.length ? undefined : from === 0 ? bytes : bytes.subarray(from);
    this.#searched = this.#tail === undefined ? 0 : this.#tail.length;
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

function join(a: Uint8Array, b: Uint8Array): Uint8Array {
  const out = new Uint8Array(a.length + b.length);
  out.set(a);
  out.set(b, a.length);
  return out;
}

/** Index just behind the first blank line at or after `from`, or -1. */
function blankLineEnd(bytes: Uint8Array, from: number): number {
  for (let i = bytes.indexOf(LF, from); i >= 0; i = bytes.indexOf(LF, i + 1)) {
    const next = bytes[i + 1];
    if (next === LF) return i + 2;
    if (next === CR && bytes[i + 2] === LF) return i + 3;
  }
  // Lines that end in a lone CR: allowed by the standard, sent by nobody seen so far.
  for (let i = bytes.indexOf(CR, from); i >= 0; i = bytes.indexOf(CR, i + 1)) {
    if (bytes[i + 1] === CR) return i + 2;
  }
  return -1;
}

/**
 * Index behind the last blank line where all lines end in LF, else -1. Without a carriage return a
 * blank line is two line feeds and nothing else, in bytes as in text.
 */
function lastPlainEnd(bytes: Uint8Array): number {
  if (bytes.indexOf(CR) >= 0) return -1;
  for (let i = bytes.lastIndexOf(LF); i > 0; i = bytes.lastIndexOf(LF, i - 1)) {
    if (bytes[i - 1] === LF) return i + 1;
  }
  return -1;
}

/** The frame that stands in `text` from `start` to `stop`. */
function parseFrame(
  text: string,
  start: number,
  stop: number,
  bytes: Uint8Array,
  from: number,
  to: number,
): SseFrame {
  // Nearly every frame is `data: …` or `event: …` + `data: …` with LF: cut those without a regex.
  let event = '';
  let data: string | undefined;
  let at = text.charCodeAt(start) === 0xfeff ? start + 1 : start;
  // Without bytes, frames stand in a longer text that is known to hold no carriage return.
  const crlf = start === 0 && stop === text.length && text.includes('\r');
  while (at < stop) {
    let end = text.indexOf('\n', at);
    let next: number;
    if (crlf) {
      const cr = text.indexOf('\r', at);
      if (cr >= 0 && (end < 0 || cr < end)) {
        next = text.charCodeAt(cr + 1) === LF ? cr + 2 : cr + 1;
        end = cr;
      } else next = end < 0 ? stop : end + 1;
    } else next = end < 0 ? stop : end + 1;
    if (end < 0) end = stop;
    if (text.startsWith('data:', at)) {
      const value = text.slice(text.charCodeAt(at + 5) === 0x20 ? at + 6 : at + 5, end);
      data = data === undefined ? value : `${data}\n${value}`;
    } else if (text.startsWith('event:', at)) {
      event = text.slice(text.charCodeAt(at + 6) === 0x20 ? at + 7 : at + 6, end);
    }
    at = next;
  }
  return { event, data, bytes, from, to };
}

/** One event as text; `data` must not hold a line break (JSON does not). */
export function sseEvent(event: string, data: string): string {
  return event === '' ? `data: ${data}\n\n` : `event: ${event}\ndata: ${data}\n\n`;
}

/** A comment, which every client skips: the keep-alive where the protocol has no ping. */
export function sseComment(text: string): string {
  return `: ${text}\n\n`;
}
