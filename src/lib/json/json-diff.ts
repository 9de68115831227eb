/** Compares two JSON values by structure: what was added, removed and changed, and where. */

import { runAtOnce, type Steps } from '../loop/steps.ts';
import { isObject, type Json } from './json.ts';
import { memberOf } from './json-members.ts';
import { type Path, pointerOf } from './pointer.ts';

/** `at` leads into the first value (removed, changed) or the second (added); `to` into the second. */
export interface Change {
  readonly kind: 'added' | 'removed' | 'changed';
  readonly at: string;
  readonly to?: string;
  readonly before?: Json;
  readonly after?: Json;
}

/**
 * The changes from `a` to `b`, in document order. Members are compared by key. Elements of arrays are first paired
 * with equal ones, so that a removed element is one change and not a shift of all later ones; elements between two
 * pairs are compared one by one.
 */
export const diffJson = (a: Json, b: Json): readonly Change[] => runAtOnce(diffSteps(a, b));

/** {@link diffJson} in steps. */
export function* diffSteps(a: Json, b: Json): Steps<readonly Change[]> {
  const work: DiffState = { changes: [], cells: CELLS };
  yield* compare(a, b, [], [], work);
  return work.changes;
}

/** Values deeper than this are compared as a whole. */
const MAX_DEPTH = 64;
/** The most cells in the tables for pairing equal elements, over all lists; beyond it lists are compared index by index. */
const CELLS = 4_000_000;

interface DiffState {
  readonly changes: Change[];
  /** What is left of {@link CELLS}. */
  cells: number;
}

function* compare(a: Json, b: Json, at: Path, to: Path, work: DiffState): Steps<void> {
  const deep = at.length < MAX_DEPTH && to.length < MAX_DEPTH;
  if (deep && Array.isArray(a) && Array.isArray(b)) yield* compareLists(a, b, at, to, work);
  else if (deep && isObject(a) && isObject(b)) {
    for (const key of Object.keys(a)) {
      const now = memberOf(b, key);
      if (now === undefined) removed(a[key]!, [...at, key], work);
      else if (a[key] !== now) yield* compare(a[key]!, now, [...at, key], [...to, key], work);
    }
    for (const key of Object.keys(b)) {
      if (memberOf(a, key) === undefined && b[key] !== undefined) added(b[key], [...to, key], work);
    }
  } else if (JSON.stringify(a) !== JSON.stringify(b)) {
    const from = pointerOf(at);
    const now = pointerOf(to);
    const moved = now !== from && { to: now };
    work.changes.push({ kind: 'changed', at: from, ...moved, before: a, after: b });
  }
}

const removed = (before: Json, at: Path, { changes }: DiffState) =>
  changes.push({ kind: 'removed', at: pointerOf(at), before });
const added = (after: Json, at: Path, { changes }: DiffState) =>
  changes.push({ kind: 'added', at: pointerOf(at), after });

function* compareLists(
  a: readonly Json[],
  b: readonly Json[],
  at: Path,
  to: Path,
  work: DiffState,
): Steps<void> {
  // Numbers for texts: those are compared a few million times.
  const numbers = new Map<string, number>();
  const numberOf = (value: Json): number => {
    const text = JSON.stringify(value);
    const known = numbers.get(text);
    if (known !== undefined) return known;
    numbers.set(text, numbers.size);
    return numbers.size - 1;
  };
  const x = yield* numbered(a, numberOf);
  const y = yield* numbered(b, numberOf);
  const pairs = yield* equalPairs(x, y, work);
  let i = 0;
  let j = 0;
  for (const [nextI, nextJ] of [...pairs, [a.length, b.length] as const]) {
    if (nextI % ITEMS_A_STEP === 0) yield;
    // Between two equal pairs: as many as both have are changed, the others added or removed.
    for (; i < nextI && j < nextJ; i++, j++) {
      if (comparable(a[i]!, b[j]!)) yield* compare(a[i]!, b[j]!, [...at, i], [...to, j], work);
      else {
        removed(a[i]!, [...at, i], work);
        added(b[j]!, [...to, j], work);
      }
    }
    for (; i < nextI; i++) removed(a[i]!, [...at, i], work);
    for (; j < nextJ; j++) added(b[j]!, [...to, j], work);
    i = nextI + 1;
    j = nextJ + 1;
  }
}

const ITEMS_A_STEP = 64;

function* numbered(list: readonly Json[], numberOf: (value: Json) => number): Steps<number[]> {
  const numbers: number[] = [];
  for (const value of list) {
    if (numbers.push(numberOf(value)) % ITEMS_A_STEP === 0) yield;
  }
  return numbers;
}

/** Whether to compare two values inside: both of one kind, with the same role and type if they have one. */
function comparable(a: Json, b: Json): boolean {
  if (isObject(a) && isObject(b)) return a.role === b.role && a.type === b.type;
  return Array.isArray(a) === Array.isArray(b) && isObject(a) === isObject(b);
}

/** Indexes of a longest common subsequence, in order. */
function* equalPairs(
  x: readonly number[],
  y: readonly number[],
  work: DiffState,
): Steps<readonly (readonly [number, number])[]> {
  let head = 0;
  while (head < x.length && head < y.length && x[head] === y[head]) head++;
  let tail = 0;
  const most = Math.min(x.length, y.length) - head;
  while (tail < most && x[x.length - 1 - tail] === y[y.length - 1 - tail]) tail++;
  const rows = x.length - head - tail;
  const columns = y.length - head - tail;
  const pairs: (readonly [number, number])[] = [];
  for (let i = 0; i < head; i++) pairs.push([i, i]);
  if (rows * columns <= work.cells) {
    work.cells -= rows * columns;
    for (const pair of yield* middlePairs(x, y, head, rows, columns)) pairs.push(pair);
  }
  for (let i = tail; i > 0; i--) pairs.push([x.length - i, y.length - i]);
  return pairs;
}

function* middlePairs(
  x: readonly number[],
  y: readonly number[],
  head: number,
  rows: number,
  columns: number,
): Steps<(readonly [number, number])[]> {
  const width = columns + 1;
  const table = new Uint32Array((rows + 1) * width);
  for (let i = rows - 1; i >= 0; i--) {
    for (let j = columns - 1; j >= 0; j--) {
      table[i * width + j] =
        x[head + i] === y[head + j]
          ? table[(i + 1) * width + j + 1]! + 1
          : Math.max(table[(i + 1) * width + j]!, table[i * width + j + 1]!);
    }
    if (i % ITEMS_A_STEP === 0) yield;
  }
  const pairs: (readonly [number, number])[] = [];
  for (let i = 0, j = 0; i < rows && j < columns; ) {
    if (x[head + i] === y[head + j]) pairs.push([head + i++, head + j++]);
    else if (table[(i + 1) * width + j]! >= table[i * width + j + 1]!) i++;
    else j++;
  }
  return pairs;
}
