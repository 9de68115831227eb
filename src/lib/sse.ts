/** Server-sent events: bytes in, frames out, each with the bytes it came from; and the reverse. */

/**
 * One event: `data` lines joined with a newline, `event` the last event line (empty when there was
 * none), `raw` a view of the bytes it came from, its blank line included. A frame without data
 * (comments, keep-alives) has `data === undefined`.
 * @see https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
 */
export interface SseFrame {
  readonly event: string;
  readonly data: string | undefined;
  readonly raw: Uint8Array;
}

const LF = 0x0a;
const CR = 0x0d;

const utf8 = new TextDecoder('utf-8', { ignoreBOM: true });

/** Splits a byte stream into frames, whatever the chunk boundaries; LF, CRLF and CR lines. */
export class SseParser {
  #tail: Uint8Array | undefined;
  #searched = 0;

  /** Frames completed by this chunk, in order. The chunk is kept by reference. */
  push(chunk: Uint8Array): SseFrame[] {
    const tail = this.#tail;
    const bytes = tail === undefined ? chunk : join(tail, chunk);
    const frames: SseFrame[] = [];
    let start = 0;
    // Two bytes back: a blank line may straddle the border of the chunks.
    let from = tail === undefined ? 0 : Math.max(0, this.#searched - 3);
    for (;;) {
      const end = blankLineEnd(bytes, from);
      if (end < 0) break;
      frames.push(parseFrame(bytes.subarray(start, end)));
      start = end;
      from = end;
    }
    this.#tail = start === bytes.length ? undefined : bytes.subarray(start);
    this.#searched = this.#tail === undefined ? 0 : this.#tail.length;
    return frames;
  }

  /**
   * What stands behind the last blank line when the stream ends. The standard drops it; some vendors
   * end without a blank line, so a remainder that holds a data line counts as a frame.
   */
  end(): SseFrame[] {
    const tail = this.#tail;
    this.#tail = undefined;
    if (tail === undefined) return [];
    const frame = parseFrame(tail);
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

function parseFrame(raw: Uint8Array): SseFrame {
  const text = utf8.decode(raw);
  // Nearly every frame is `data: …` or `event: …` + `data: …` with LF: cut those without a regex.
  let event = '';
  let data: string | undefined;
  let at = text.charCodeAt(0) === 0xfeff ? 1 : 0;
  const crlf = text.includes('\r');
  while (at < text.length) {
    let end = text.indexOf('\n', at);
    let next: number;
    if (crlf) {
      const cr = text.indexOf('\r', at);
      if (cr >= 0 && (end < 0 || cr < end)) {
        next = text.charCodeAt(cr + 1) === LF ? cr + 2 : cr + 1;
        end = cr;
      } else next = end < 0 ? text.length : end + 1;
    } else next = end < 0 ? text.length : end + 1;
    if (end < 0) end = text.length;
    if (text.startsWith('data:', at)) {
      const value = text.slice(text.charCodeAt(at + 5) === 0x20 ? at + 6 : at + 5, end);
      data = data === undefined ? value : `${data}\n${value}`;
    } else if (text.startsWith('event:', at)) {
      event = text.slice(text.charCodeAt(at + 6) === 0x20 ? at + 7 : at + 6, end);
    }
    at = next;
  }
  return { event, data, raw };
}

/** One event as text; `data` must not hold a line break (JSON does not). */
export function sseEvent(event: string, data: string): string {
  return event === '' ? `data: ${data}\n\n` : `event: ${event}\ndata: ${data}\n\n`;
}

/** A comment, which every client skips: the keep-alive where the protocol has no ping. */
export function sseComment(text: string): string {
  return `: ${text}\n\n`;
}
