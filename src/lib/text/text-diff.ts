/** Compares two texts word by word: equal, removed and added parts, in nearly linear time. */

import { runAtOnce, type Steps } from '../loop/steps.ts';

export interface TextPart {
  readonly kind: 'same' | 'removed' | 'added';
  readonly text: string;
}

/** Most pairs of words that are compared with each other in all; what is beyond is told as removed and added. */
const PAIRS = 4_000_000;
/** How often a gap between anchors is divided again. */
const MAX_DEPTH = 12;

/** Scripts without spaces are compared character by character. */
const WORD =
  /\s+|[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]|(?:(?![\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}])[\p{L}\p{N}\p{M}_])+|[^\s\p{L}\p{N}_]/gu;

const wordsOf = (text: string): readonly string[] => text.match(WORD) ?? [];

/** A part of both lists of words: from (inclusive) and to (exclusive). */
interface Range {
  readonly x: readonly [from: number, to: number];
  readonly y: readonly [from: number, to: number];
}

interface DiffWork {
  readonly x: readonly string[];
  readonly y: readonly string[];
  /** Word of the other text that a word of the first is equal to; -1: none. */
  readonly pairs: Int32Array;
  budget: number;
}

/** The parts in reading order; neighbours of one kind are one part. */
export function diffText(a: string, b: string): readonly TextPart[] {
  if (a === b) return a === '' ? [] : [{ kind: 'same', text: a }];
  const [x, y] = [wordsOf(a), wordsOf(b)];
  return partsOf(x, y, runAtOnce(pairEqual(x, y)));
}

/** For each item of `x` the place of an equal one in `y`, in the same order on both sides; -1: none. */
export function* pairEqual(x: readonly string[], y: readonly string[]): Steps<Int32Array> {
  const pairs = new Int32Array(x.length).fill(-1);
  yield* pairUp({ x: [0, x.length], y: [0, y.length] }, 0, { x, y, pairs, budget: PAIRS });
  return pairs;
}

/**
 * Pairs the equal ends of a range. What is left is compared word with word where it is small; a larger one is
 * divided at words that occur once on each side.
 */
function* pairUp({ x: [x0, x1], y: [y0, y1] }: Range, depth: number, work: DiffWork): Steps<void> {
  const { x, y, pairs } = work;
  while (x0 < x1 && y0 < y1 && x[x0] === y[y0]) pairs[x0++] = y0++;
  while (x0 < x1 && y0 < y1 && x[x1 - 1] === y[y1 - 1]) pairs[--x1] = --y1;
  if (x0 === x1 || y0 === y1) return;
  const rest: Range = { x: [x0, x1], y: [y0, y1] };
  const size = (x1 - x0) * (y1 - y0);
  if (size <= SMALL && size <= work.budget) {
    work.budget -= size;
    yield* byLongestCommon(rest, work);
    return;
  }
  yield;
  const anchors = depth < MAX_DEPTH ? anchorsOf(rest, work) : [];
  if (anchors.length === 0) {
    if (size > work.budget) return;
    work.budget -= size;
    yield* byLongestCommon(rest, work);
    return;
  }
  let [fromX, fromY] = [x0, y0];
  for (const [i, j] of anchors) {
    yield* pairUp({ x: [fromX, i], y: [fromY, j] }, depth + 1, work);
    pairs[i] = j;
    [fromX, fromY] = [i + 1, j + 1];
  }
  yield* pairUp({ x: [fromX, x1], y: [fromY, y1] }, depth + 1, work);
}

/** Gaps of at most so many pairs are compared word with word at once. */
const SMALL = 10_000;
const ROWS_A_STEP = 32;

/** Words that occur once on each side and stand in the same order on both: the longest such row. */
function anchorsOf(
  { x: [x0, x1], y: [y0, y1] }: Range,
  { x, y }: DiffWork,
): readonly (readonly [number, number])[] {
  const once = (words: readonly string[], from: number, to: number) => {
    const places = new Map<string, number>();
    // A word that occurs again gets no place.
    for (let i = from; i < to; i++) places.set(words[i]!, places.has(words[i]!) ? -1 : i);
    return places;
  };
  const right = once(y, y0, y1);
  const both: (readonly [number, number])[] = [];
  for (const [word, i] of once(x, x0, x1)) {
    const j = right.get(word) ?? -1;
    if (i >= 0 && j >= 0) both.push([i, j]);
  }
  both.sort(([a], [b]) => a - b);
  // Patience sorting: the last pair of the best row of each length, and its predecessor.
  const ends: number[] = [];
  const before = new Int32Array(both.length).fill(-1);
  both.forEach(([, j], at) => {
    let low = 0;
    let high = ends.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (both[ends[middle]!]![1] < j) low = middle + 1;
      else high = middle;
    }
    if (low > 0) before[at] = ends[low - 1]!;
    ends[low] = at;
  });
  const row: (readonly [number, number])[] = [];
  for (let at = ends.at(-1) ?? -1; at >= 0; at = before[at]!) row.push(both[at]!);
  return row.reverse();
}

/** Pairs the words of a longest common subsequence. */
function* byLongestCommon(
  { x: [x0, x1], y: [y0, y1] }: Range,
  { x, y, pairs }: DiffWork,
): Steps<void> {
  const width = y1 - y0 + 1;
  const table = new Uint32Array((x1 - x0 + 1) * width);
  const at = (i: number, j: number) => (i - x0) * width + (j - y0);
  for (let i = x1 - 1; i >= x0; i--) {
    for (let j = y1 - 1; j >= y0; j--) {
      table[at(i, j)] =
        x[i] === y[j]
          ? table[at(i + 1, j + 1)]! + 1
          : Math.max(table[at(i + 1, j)]!, table[at(i, j + 1)]!);
    }
    if (i % ROWS_A_STEP === 0) yield;
  }
  for (let [i, j] = [x0, y0]; i < x1 && j < y1; ) {
    if (x[i] === y[j]) pairs[i++] = j++;
    else if (table[at(i + 1, j)]! >= table[at(i, j + 1)]!) i++;
    else j++;
  }
}

/** Neighbours of one kind are one part. */
function partsOf(
  x: readonly string[],
  y: readonly string[],
  pairs: Int32Array,
): readonly TextPart[] {
  const parts: { kind: TextPart['kind']; words: string[] }[] = [];
  for (const [kind, word] of inOrder(x, y, pairs)) {
    const last = parts.at(-1);
    if (last?.kind === kind) last.words.push(word);
    else parts.push({ kind, words: [word] });
  }
  return parts.map(({ kind, words }) => ({ kind, text: words.join('') }));
}

/** The items of both lists; of what was replaced, those that are gone come first. @param pairs as of {@link pairEqual} */
export function* inOrder(
  x: readonly string[],
  y: readonly string[],
  pairs: Int32Array,
): Generator<readonly [kind: TextPart['kind'], item: string]> {
  let j = 0;
  for (const [i, item] of x.entries()) {
    const pair = pairs[i]!;
    while (j < pair) yield ['added', y[j++]!];
    yield [pair < 0 ? 'removed' : 'same', item];
    if (pair >= 0) j++;
  }
  while (j < y.length) yield ['added', y[j++]!];
}
