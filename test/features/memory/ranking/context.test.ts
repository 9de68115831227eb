/** What an event gains from those around it. */

import { expect, test } from 'bun:test';
import { contextOf, type Placed } from '../../../../src/features/memory/ranking/rank.ts';

const TERM = { term: 'boat', hashes: [1], worth: 1, share: 0.01, isHint: false };
const MINUTE = 60_000;

const placed = (source: string, at: number, own: number, beside: Partial<Placed>): Placed => ({
  time: at * MINUTE,
  shares: Float64Array.of(own),
  own,
  kind: 'statement',
  source,
  before: undefined,
  after: undefined,
  ...beside,
});

/** What the second of two events gains from the first, which has the words of the question. */
const gained = (...[first, second]: readonly [string, string]) =>
  contextOf([placed(first, 0, 1, { after: 1 }), placed(second, 1, 0, { before: 0 })], [TERM])[1]!;

test('an event gains half as much from its neighbours where one source speaks alone', () => {
  expect(gained('Ann', 'Bob')).toBeGreaterThan(0);
  expect(gained('Ann', 'Ann')).toBeCloseTo(gained('Ann', 'Bob') / 2);
});
