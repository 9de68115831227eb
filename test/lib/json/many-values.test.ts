/** Counting what a JSON text holds by its bytes agrees with parsing it, stops early, and lets others run. */

import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { holdsMoreValues } from '../../../src/lib/json/many-values.ts';
import { runAtOnce, runInSlices } from '../../../src/lib/loop/steps.ts';
import { expectLinear } from '../../support/growth.ts';
import { expectSlices } from '../../support/longest-turn.ts';

const holdsMore = (text: string, most: number) =>
  runAtOnce(holdsMoreValues([Buffer.from(text)], most));

/** Members, objects and lists: what the bytes are counted for. */
function count(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const inner = Object.values(value);
  const own = Array.isArray(value) ? 1 : 1 + inner.length;
  return inner.reduce((sum: number, one) => sum + count(one), own);
}

/** Names and values that are texts. */
function texts(value: unknown): number {
  if (typeof value === 'string') return 1;
  if (typeof value !== 'object' || value === null) return 0;
  const names = Array.isArray(value) ? 0 : Object.keys(value).length;
  return Object.values(value).reduce((sum: number, one) => sum + texts(one), names);
}

test('the number is that of the parsed value, whatever stands in its strings', () => {
  const words = fc.string({ unit: fc.constantFrom('"', '\\', ':', '{', '[', 'x', 'é', '\n') });
  const { value } = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      words,
      fc.integer(),
      fc.constant(null),
      fc.array(tie('value'), { maxLength: 4 }),
      fc.dictionary(words, tie('value'), { maxKeys: 4 }),
    ),
  }));
  fc.assert(
    fc.property(value, (made) => {
      const text = JSON.stringify(made);
      const expected = Math.max(count(made), Math.ceil(texts(made) / 2));
      expect(holdsMore(text, expected)).toBe(false);
      if (expected > 0) expect(holdsMore(text, expected - 1)).toBe(true);
    }),
    { numRuns: 500 },
  );
});

test('ten plain values, two texts and a number of 16 digits weigh as much as a member', () => {
  const list = (value: string, size: number) => `[${Array(size).fill(value).join()}]`;
  for (const value of ['1', 'null', '-0.5', '123456789012345']) {
    expect(holdsMore(list(value, 101), 10)).toBe(false);
    expect(holdsMore(list(value, 102), 10)).toBe(true);
  }
  expect(holdsMore(list('"x"', 20), 10)).toBe(false);
  expect(holdsMore(list('"x"', 21), 10)).toBe(true);
  for (const value of ['1234567890123456', '0.12345678901234567', '12345678901234567890']) {
    expect(holdsMore(list(value, 9), 10)).toBe(false);
    expect(holdsMore(list(value, 10), 10)).toBe(true);
  }
});

test('parts are counted together', () => {
  const parts = ['{"a":1}', '[[]]'].map((text) => Buffer.from(text));
  expect(runAtOnce(holdsMoreValues(parts, 4))).toBe(false);
  expect(runAtOnce(holdsMoreValues(parts, 3))).toBe(true);
});

test('what is no JSON has an answer, too', () => {
  for (const text of ['', '"', '"\\', '{', ':::']) holdsMore(text, 1);
});

const HOSTILE = ['"a":1,', '\\"', '\\\\', '1,', '12345678901234567,', '"",', '"\\\\"'];

test.each(HOSTILE)('%j again and again takes linear time, in slices', async (piece) => {
  const bytes = (size: number) => Buffer.from(`["${piece.repeat(Math.ceil(size / piece.length))}`);
  await expectLinear({
    name: piece,
    input: bytes,
    run: (input) => runAtOnce(holdsMoreValues([input], Number.POSITIVE_INFINITY)),
  });
  await expectSlices(piece, () =>
    runInSlices(holdsMoreValues([bytes(8_000_000)], Number.POSITIVE_INFINITY)),
  );
});
