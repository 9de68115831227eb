/** Finds the strings of a JSON text and their members in its bytes, without parsing it. */

import type { Steps } from '../../lib/loop/steps.ts';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
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

/** Bytes between two yields. */
const STRIDE = 65_536;

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

const isDigit = (byte: number) => byte >= 0x30 && byte <= 0x39;

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
