/** Reads chunks that differ from an earlier one only in their text and in numbers, without parsing them. */

import type {
  DecodedTextTemplate,
  TextRun,
  TextTemplate,
} from '../../../conversation/fast-text.ts';
import { isObject, type JsonObject } from '../../../lib/json/json.ts';
import { list, object } from '../wire.ts';

/** Members whose value is read at the end, or in the first chunk only. All others must be empty in a chunk that is learned. */
const CHUNK_NOISE: ReadonlySet<string> = new Set([
  'candidates',
  'usageMetadata',
  'modelVersion',
  'responseId',
  'createTime',
]);
const CANDIDATE_NOISE: ReadonlySet<string> = new Set(['content', 'safetyRatings']);

/** Characters that are escaped in a JSON string. */
const SPECIAL = /["\\\p{Cc}]/u;
const PROBE = 'probe';
const DIGITS = /\d+/g;
/** Numbers and characters behind the text. Vendors send about ten and 500. */
const MOST_NUMBERS = 64;
const MOST_TAIL = 8192;
/** Longer numbers are no counts. */
const MOST_DIGITS = 15;
const NUL = 0x30;
const NINE = 0x39;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SPACE = 0x20;
// After so many learned chunks that matched no other, learning stops.
const MOST_MISSES = 4;

/**
 * Google sends the same JSON around every piece of text, but for the counts of the usage so far. What stands before the
 * text of one chunk is stored, and what stands behind it, split at its numbers. By the grammar of JSON, a chunk with the
 * same around a valid string, and with other numbers at the places of numbers, has the same value but for these.
 */
export class TextSplice {
  #before = '';
  /** Behind the text: what stands between the numbers, and the numbers of the learned chunk. */
  #between: readonly string[] = [];
  #numbers: readonly string[] = [];
  #counts = false;
  #tail: string | undefined;
  #misses = 0;
  #seen = false;
  #frame: TextTemplate | undefined;
  #template: DecodedTextTemplate | undefined;

  /** The text of a chunk like the learned one; undefined if the chunk must be parsed. */
  read(data: string): string | undefined {
    if (this.#before === '' || !data.startsWith(this.#before)) return undefined;
    const end = contentEnd(data, this.#before.length);
    if (end < 0 || !this.#isTail(data, end, data.length)) return undefined;
    const content = textOf(data.slice(this.#before.length, end));
    if (content === undefined) return undefined;
    if (this.#counts) this.#tail = data.slice(end);
    this.#misses = 0;
    return content;
  }

  /**
   * The texts of all frames from `at` on that are like the learned one, as one piece of the block `index`; undefined if
   * there are none.
   */
  run(frames: string, at: number, index: number): TextRun | undefined {
    if (this.#before === '') return undefined;
    const head = `data: ${this.#before}`;
    let content = '';
    let to = at;
    let tail = '';
    while (frames.startsWith(head, to)) {
      const from = to + head.length;
      const end = contentEnd(frames, from);
      const blank = end < 0 ? -1 : frames.indexOf('\n\n', end);
      if (blank < 0 || !this.#isTail(frames, end, blank)) break;
      const piece = textOf(frames.slice(from, end));
      if (piece === undefined) break;
      content += piece;
      tail = frames.slice(end, blank);
      to = blank + 2;
    }
    if (content === '') return undefined;
    if (this.#counts) this.#tail = tail;
    return { event: { type: 'delta', index, text: content }, to };
  }

  /** The last chunk that was read here, without its text; once. Undefined: nothing in it counts. */
  takeLast(): JsonObject | undefined {
    const tail = this.#tail;
    this.#tail = undefined;
    const chunk = tail === undefined ? undefined : parsed(this.#before + tail);
    return isObject(chunk) ? chunk : undefined;
  }

  /** The text around the content of a frame, where it is the same in all frames. */
  template(index: number): DecodedTextTemplate | undefined {
    const frame = this.#frame;
    if (frame === undefined) return undefined;
    const last = this.#template;
    if (last?.head !== frame.head || last.foot !== frame.foot || last.index !== index) {
      this.#template = { ...frame, index };
    }
    return this.#template;
  }

  /** Learns a parsed chunk if it holds text and nothing else. */
  learn(data: string, event: string, chunk: JsonObject): void {
    if (this.#misses >= MOST_MISSES || event !== '') return;
    const content = onlyText(chunk);
    if (content === undefined || content === '' || content === PROBE) return;
    if (!this.#seen) {
      // Not on the first chunk with text: passthrough reads no further than that chunk.
      this.#seen = true;
      return;
    }
    this.#misses++;
    const mark = data.includes('"text":"') ? '"text":"' : '"text": "';
    const at = data.indexOf(mark);
    if (at < 0) return;
    const from = at + mark.length;
    const to = contentEnd(data, from);
    if (to < 0) return;
    const before = data.slice(0, from);
    const behind = data.slice(to);
    // An escape may hold digits, and a line break would end a frame.
    if (behind.includes('\\') || behind.includes('\n')) return;
    // Another string at this position changes the text, so it is the text's position.
    if (onlyText(parsed(before + PROBE + behind)) !== PROBE) return;
    const tail = splitAtCounts(before + PROBE, behind);
    if (tail === undefined) return;
    this.#before = before;
    this.#between = tail.between;
    this.#numbers = tail.numbers;
    this.#counts = chunk.usageMetadata !== undefined;
    this.#frame = this.#counts ? undefined : { head: `data: ${before}`, foot: `${behind}\n\n` };
  }

  /** Is this what stands behind the text, but for the numbers? */
  #isTail(text: string, start: number, end: number): boolean {
    const between = this.#between;
    let at = start;
    for (let i = 0; i < between.length; i++) {
      if (!text.startsWith(between[i]!, at)) return false;
      at += between[i]!.length;
      if (i === between.length - 1) break;
      const number = at;
      while (at < end && isDigit(text.charCodeAt(at))) at++;
      const length = at - number;
      if (length === 0 || length > MOST_DIGITS) return false;
      // JSON has no numbers with a zero before other digits; strings and fractions may.
      if (length > 1 && text.charCodeAt(number) === NUL) {
        const learned = this.#numbers[i]!;
        if (learned.length !== length || learned.charCodeAt(0) !== NUL) return false;
      }
    }
    return at === end;
  }
}

/**
 * Splits what stands behind the text at the numbers that may change. A number that decides what the chunk is, such as
 * the index of the candidate, is no such number. Undefined where there are too many of them.
 */
function splitAtCounts(
  before: string,
  behind: string,
): { readonly between: readonly string[]; readonly numbers: readonly string[] } | undefined {
  const found = [...behind.matchAll(DIGITS)];
  if (found.length > MOST_NUMBERS || behind.length > MOST_TAIL) return undefined;
  const between: string[] = [];
  const numbers: string[] = [];
  let from = 0;
  for (const { 0: digits, index } of found) {
    const end = index + digits.length;
    const other = (Number(digits.at(-1)) + 1) % 10;
    const changed = behind.slice(0, end - 1) + other + behind.slice(end);
    if (onlyText(parsed(before + changed)) !== PROBE) continue;
    between.push(behind.slice(from, index));
    numbers.push(digits);
    from = end;
  }
  return { between: [...between, behind.slice(from)], numbers };
}

const isDigit = (code: number): boolean => code >= NUL && code <= NINE;

/** The closing quote of the string that begins at `from`; -1 where there is none, or a control character. */
function contentEnd(text: string, from: number): number {
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) return at;
    if (code === BACKSLASH) at++;
    else if (code < SPACE) return -1;
  }
  return -1;
}

/** The value of a JSON string given without its quotes; undefined if it is not valid. */
function textOf(inner: string): string | undefined {
  if (!SPECIAL.test(inner)) return inner;
  const value = parsed(`"${inner}"`);
  return typeof value === 'string' ? value : undefined;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The text of a chunk that holds nothing else. */
function onlyText(chunk: unknown): string | undefined {
  if (!isObject(chunk)) return undefined;
  const candidates = list(chunk.candidates);
  const candidate = candidates?.length === 1 ? object(candidates[0]) : undefined;
  const content = object(candidate?.content);
  const parts = list(content?.parts);
  const part = parts?.length === 1 ? object(parts[0]) : undefined;
  if (candidate === undefined || content === undefined || part === undefined) return undefined;
  for (const key in chunk) if (!CHUNK_NOISE.has(key) && chunk[key]) return undefined;
  for (const key in candidate) {
    if (CANDIDATE_NOISE.has(key) || !candidate[key]) continue;
    const isEmpty = isObject(candidate[key]) && Object.keys(candidate[key]).length === 0;
    if (key !== 'groundingMetadata' || !isEmpty) return undefined;
  }
  for (const key in content) if (key !== 'parts' && key !== 'role') return undefined;
  for (const key in part) if (key !== 'text') return undefined;
  return typeof part.text === 'string' ? part.text : undefined;
}
