/** The strings of a JSON text and the members they stand in, found in its bytes without a parse. */

import type { Steps } from '../store/steps.ts';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** No name that anybody asks for is longer. */
const LONGEST_KEY = 64;

/** Members that hold words in all their strings, however deep: arguments of calls. */
const TREES = new Set(['input', 'arguments']);
/** Under these a name is data and not a word: schemas. */
const SCHEMAS = new Set(['parameters', 'input_schema', 'schema', 'properties']);

export interface StringPlace {
  /** The member that it stands in, or in whose list it stands. */
  readonly key: string;
  /** Somewhere in the arguments of a call. */
  readonly tree: boolean;
  /** Somewhere in a schema. */
  readonly schema: boolean;
}

/**
 * Told where the string is: behind its opening quote, and its closing quote. What it gives back is work
 * with that string, done before the walk goes on.
 */
export type Visit = (from: number, to: number, place: StringPlace) => Steps<void> | undefined;

interface Level extends StringPlace {
  readonly list: boolean;
  key: string;
}

/** Bytes between two looks at the clock. */
const STRIDE = 65_536;

/** Calls `visit` for every string that is no name of a member. Broken JSON is walked as far as it goes. */
export function* eachString(bytes: Buffer, from: number, to: number, visit: Visit): Steps<void> {
  const levels: Level[] = [];
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
        level.key = bytes.toString('latin1', i + 1, Math.min(end, i + 1 + LONGEST_KEY));
        expectsKey = false;
      } else if (level !== undefined) {
        const work = visit(i + 1, end, level);
        if (work !== undefined) yield* work;
      }
      i = end;
    } else if (byte === 0x7b || byte === 0x5b) {
      const key = level?.key ?? '';
      // The history of Responses is called `input` as well: it stands at the top.
      const deep = levels.length > 1 && level?.list === false;
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

const DATA = Buffer.from('data:');
const DATA_BEHIND = Buffer.from('\ndata:');

/** Where the data of each event of a stream stands. What lies between is passed in one search. */
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
  const found = bytes.indexOf(DATA_BEHIND, at);
  return found < 0 ? 0 : found + DATA_BEHIND.length;
}
