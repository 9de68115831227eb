/** Blanks the texts and images of a body in place: structure and length stay, the content is gone. */

import type { Steps } from '../../lib/loop/steps.ts';
import { wordSet } from '../../lib/text/words.ts';

/** Members whose strings are texts of people or models, at any depth; the last three say them again beside `logprobs`. */
const TEXTS = wordSet(`
  text content arguments output output_text partial_json thinking reasoning reasoning_content
  refusal instructions system description server_description delta input query title cited_text
  prompt signature encrypted_content filename stdout stderr logs diff command commands queries
  document_title transcript lines tool_plan failed_generation stringValue webSearchQueries
  renderedContent retrievedUrl citations thoughtSignature thought_signature encrypted_index
  token tokens bytes
`);
/**
 * Members that hold a text, or a name, which is one word: a program or an error's code, a summary or the kind that is
 * asked for, an address or a kind of source.
 */
const TEXTS_OR_NAMES = new Set(['code', 'summary', 'source']);
const MEDIA = wordSet(`
  data url image_url file_data b64_json file_url fileUri file_uri uri document_url
  partial_image_b64
`);

/** Kinds of content that can be blanked. */
export type BlankedContent = 'texts' | 'images';

/** Blanks JSON, or the data lines of an event stream, in place and in steps. */
export function* blankBodyInSteps(
  out: Buffer,
  sse: boolean,
  what: readonly BlankedContent[],
): Steps<Buffer> {
  const visit: StringVisitor = (from, to, place) => blankString(out, from, to, place, what);
  if (!sse) yield* eachString(out, 0, out.length, visit);
  else {
    for (const [from, to] of dataLines(out)) {
      yield* eachString(out, from, to, visit);
      yield;
    }
  }
  return out;
}

function blankString(
  bytes: Buffer,
  from: number,
  to: number,
  { key, tree, schema }: StringPosition,
  what: readonly BlankedContent[],
): Steps<void> | undefined {
  if (schema && key !== 'description') return undefined;
  // A document can be plain text, and an address says what was read.
  if (MEDIA.has(key) && !isProse(bytes, from, to)) {
    const blanks = what.includes('images') || isAddress(bytes, from);
    return blanks ? blankMedia(bytes, from, to) : undefined;
  }
  const isText =
    tree ||
    TEXTS.has(key) ||
    MEDIA.has(key) ||
    (TEXTS_OR_NAMES.has(key) && !isWord(bytes, from, to));
  const texts = what.includes('texts') && isText;
  return texts ? blankText(bytes, from, to) : undefined;
}

/** Base64 and addresses have no spaces, nor escapes. */
const isProse = (bytes: Buffer, from: number, to: number) =>
  /[\s\\]/.test(bytes.toString('latin1', from, Math.min(to, from + 1000)));

const isAddress = (bytes: Buffer, from: number) =>
  /^https?:/.test(bytes.toString('latin1', from, from + 6));

function isWord(bytes: Buffer, from: number, to: number): boolean {
  for (let at = from; at < to; at++)
    if (!/[\w.-]/.test(String.fromCharCode(bytes[at]!))) return false;
  return true;
}

/** An image of one pixel, so that a decoder still finds an image. */
const PNG =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJg';

/** Base64 becomes zeros, or a tiny image padded with zeros; a URL loses its letters and digits. */
function blankMedia(bytes: Buffer, from: number, to: number): Steps<void> | undefined {
  const head = bytes.toString('latin1', from, Math.min(to, from + 100));
  const prefix = /^data:[^,]*,/.exec(head)?.[0].length ?? 0;
  const start = from + prefix;
  if (isAddress(bytes, from)) return blankText(bytes, from + head.indexOf(':') + 3, to);
  let end = to;
  while (end > start && bytes[end - 1] === 0x3d) end--;
  const png = head.startsWith('iVBOR', prefix) ? PNG.slice(0, end - start) : '';
  bytes.fill(0x41, start, end);
  bytes.write(png, start, 'latin1');
  return undefined;
}

/** Bytes between two yields. */
const STRIDE = 65_536;

const BACKSLASH = 0x5c;
const QUOTE = 0x22;
const X = 0x78;
const ONE = 0x31;

const isLetter = (byte: number) => (byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x7a;
const isDigit = (byte: number) => byte >= 0x30 && byte <= 0x39;

/**
 * Letters become `x`, digits `1`, bytes of other scripts `x`; spaces, punctuation and escapes stay. In a
 * string that holds JSON, member names and literals (true, null) stay as well.
 * @param from first byte after the opening quote
 * @param to the closing quote
 */
export function* blankText(bytes: Buffer, from: number, to: number): Steps<void> {
  const json = looksLikeJson(bytes, from, to);
  let inner = !json;
  // The end of an inner string is searched once per byte, however broken the JSON is.
  let known = from;
  let rest = from + STRIDE;
  for (let i = from; i < to; i++) {
    if (i >= rest) {
      rest = i + STRIDE;
      yield;
    }
    const byte = bytes[i]!;
    if (byte === BACKSLASH) {
      if (bytes[i + 1] === 0x75) {
        // \u0041 becomes another escaped letter.
        bytes.write('0078', i + 2, 'latin1');
        i += 5;
        continue;
      }
      // \" opens or closes a string of the inner JSON; \\\" is inside one.
      if (json && bytes[i + 1] === QUOTE) {
        inner = !inner;
        const end = inner && i >= known ? innerEnd(bytes, i + 2, to) : -1;
        if (inner && i >= known) known = end < 0 ? to : end;
        if (end >= 0 && isKey(bytes, end + 2, to)) {
          i = end + 1;
          inner = false;
          continue;
        }
      } else if (json && bytes[i + 1] === BACKSLASH) {
        i = innerEscape(bytes, i, to);
        continue;
      }
      i++;
    } else if (byte > 0x7f) bytes[i] = X;
    else if (isDigit(byte)) bytes[i] = ONE;
    else if (isLetter(byte)) {
      const kept = inner ? 0 : literalLength(bytes, i, to);
      if (kept === 0) bytes[i] = X;
      else i += kept - 1;
    }
  }
}

const LITERALS = ['true', 'false', 'null'].map((word) => Buffer.from(word));

/** Length of the literal, or of the sign of an exponent, that stands there between two values of JSON; 0 for any other word. */
function literalLength(bytes: Buffer, at: number, to: number): number {
  const isWord = (i: number) => i >= 0 && i < to && (isLetter(bytes[i]!) || isDigit(bytes[i]!));
  if (isExponent(bytes, at)) return 1;
  if (isWord(at - 1)) return 0;
  for (const { length } of LITERALS.filter((word) => stands(word, bytes, at, to))) {
    if (!isWord(at + length)) return length;
  }
  return 0;
}

const stands = (word: Buffer, bytes: Buffer, at: number, to: number): boolean =>
  at + word.length <= to && word.every((byte, i) => bytes[at + i] === byte);

const isExponent = (bytes: Buffer, at: number): boolean =>
  (bytes[at]! | 0x20) === 0x65 &&
  isDigit(bytes[at - 1]!) &&
  /[-+\d]/.test(String.fromCharCode(bytes[at + 1] ?? 0));

/** Where the inner string that began before `from` ends: at its `\"`, or -1. */
function innerEnd(bytes: Buffer, from: number, to: number): number {
  for (let i = from; i < to; i++) {
    if (bytes[i] !== BACKSLASH) continue;
    if (bytes[i + 1] === QUOTE) return i;
    i += bytes[i + 1] === BACKSLASH ? (bytes[i + 2] === BACKSLASH ? 3 : 2) : 1;
  }
  return -1;
}

/** Member names are structure and stay. */
function isKey(bytes: Buffer, from: number, to: number): boolean {
  let at = from;
  while (at < to && bytes[at] === 0x20) at++;
  return bytes[at] === 0x3a;
}

/** Skips an escape of the inner JSON (`\\n`, `\\\"`, `\\u0041`) and returns its last byte. */
function innerEscape(bytes: Buffer, at: number, to: number): number {
  const next = bytes[at + 2];
  if (next === BACKSLASH) return Math.min(at + 3, to - 1);
  if (next === 0x75) {
    bytes.write('0078', at + 3, Math.min(4, Math.max(0, to - at - 3)), 'latin1');
    return Math.min(at + 6, to - 1);
  }
  return Math.min(at + 2, to - 1);
}

function looksLikeJson(bytes: Buffer, from: number, to: number): boolean {
  let at = from;
  while (at < to && (bytes[at] === 0x20 || (bytes[at] === BACKSLASH && bytes[at + 1] === 0x6e))) {
    at += bytes[at] === 0x20 ? 1 : 2;
  }
  return bytes[at] === 0x7b || bytes[at] === 0x5b;
}

/** Longer than any member name that is looked for. */
const MAX_KEY = 64;

/** Members whose strings are all texts, at any depth: arguments of calls, and results of Gemini's functions. */
const TREES = new Set(['input', 'arguments', 'args', 'response']);
/** Members that hold schemas, in which names are data. */
const SCHEMAS = new Set(['parameters', 'input_schema', 'schema', 'properties']);

export interface StringPosition {
  /** The member that holds the string, directly or in a list. */
  readonly key: string;
  /** Inside the arguments of a call. */
  readonly tree: boolean;
  /** Inside a schema. */
  readonly schema: boolean;
}

/**
 * Receives the position of a string: the byte after its opening quote, and its closing quote. Returned steps
 * run before the walk continues.
 */
export type StringVisitor = (
  from: number,
  to: number,
  place: StringPosition,
) => Steps<void> | undefined;

interface OpenValue extends StringPosition {
  readonly list: boolean;
  key: string;
}

/** A list in which a text stands as numbers: the UTF-8 bytes of a token, beside `logprobs`. */
const BYTES = 'bytes';

/**
 * Calls `visit` for every string except member names, and for what a list named `bytes` holds. Broken JSON is walked
 * as far as possible.
 */
export function* eachString(
  bytes: Buffer,
  from: number,
  to: number,
  visit: StringVisitor,
): Steps<void> {
  const levels: OpenValue[] = [];
  let expectsKey = false;
  let rest = from + STRIDE;
  for (let i = from; i < to; i++) {
    if (i >= rest) {
      rest = i + STRIDE;
      yield;
    }
    const byte = bytes[i]!;
    const level = levels.at(-1);
    if (byte === QUOTE) {
      let end = i + 1;
      for (; end < to && bytes[end] !== QUOTE; end++) {
        if (bytes[end] === BACKSLASH) end++;
        if (end < rest) continue;
        rest = end + STRIDE;
        yield;
      }
      end = Math.min(end, to);
      if (level !== undefined && !level.list && expectsKey) {
        level.key = bytes.toString('latin1', i + 1, Math.min(end, i + 1 + MAX_KEY));
        expectsKey = false;
      } else if (level !== undefined) {
        const work = visit(i + 1, end, level);
        if (work !== undefined) yield* work;
      }
      i = end;
    } else if (byte === 0x7b || byte === 0x5b) {
      const key = level?.key ?? '';
      // At the top level, `input` is the history of a Responses request, and `response` an event's answer.
      const deep = levels.length > 1 && level?.list === false;
      if (byte === 0x5b && key === BYTES && level !== undefined) {
        const work = visit(i + 1, numbersEnd(bytes, i + 1, to), level);
        if (work !== undefined) yield* work;
      }
      levels.push({
        list: byte === 0x5b,
        key: byte === 0x5b ? key : '',
        tree: level?.tree === true || (deep && TREES.has(key)),
        schema: level?.schema === true || SCHEMAS.has(key),
      });
      expectsKey = byte === 0x7b;
    } else if (byte === 0x7d || byte === 0x5d) {
      levels.pop();
      expectsKey = false;
    } else if (byte === 0x2c) expectsKey = level !== undefined && !level.list;
  }
}

function numbersEnd(bytes: Buffer, from: number, to: number): number {
  let at = from;
  while (at < to && (isDigit(bytes[at]!) || bytes[at] === 0x2c || bytes[at] === 0x20)) at++;
  return at;
}

const DATA = Buffer.from('data:');
const DATA_AFTER_LF = Buffer.from('\ndata:');

/** The positions of the data lines of an event stream. What lies between them is passed in one search. */
export function* dataLines(bytes: Buffer): Generator<readonly [from: number, to: number]> {
  let from = bytes.subarray(0, DATA.length).equals(DATA) ? DATA.length : next(bytes, 0);
  while (from > 0) {
    const end = bytes.indexOf(0x0a, from);
    const to = end < 0 ? bytes.length : end;
    yield [from, to];
    from = next(bytes, to);
  }
}

/** Index behind the next line's `data:`, or 0. */
function next(bytes: Buffer, at: number): number {
  const found = bytes.indexOf(DATA_AFTER_LF, at);
  return found < 0 ? 0 : found + DATA_AFTER_LF.length;
}
