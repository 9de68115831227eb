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

export interface StringPosition {
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
export type StringVisitor = (
  from: number,
  to: number,
  place: StringPosition,
) => Steps<void> | undefined;

interface OpenValue extends StringPosition {
  readonly list: boolean;
  key: string;
}

/** Bytes between two looks at the clock. */
const STRIDE = 65_536;

/** Calls `visit` for every string that is no name of a member. Broken JSON is walked as far as it goes. */
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

/** Where the data of each event of a stream stands. */
export function* dataLines(bytes: Buffer): Generator<readonly [from: number, to: number]> {
  for (let at = 0; at < bytes.length; ) {
    const end = bytes.indexOf(0x0a, at);
    const stop = end < 0 ? bytes.length : end;
    if (bytes.toString('latin1', at, at + 5) === 'data:') yield [at + 5, stop];
    at = stop + 1;
  }
}
