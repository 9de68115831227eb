/** Fisher's exact test and Wilson's interval against values from the literature and by counting. */

import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { fisherExact, wilson } from '../../../src/lib/text/fisher-exact-test.ts';

const p = (a: number, b: number, c: number, d: number) =>
  fisherExact({ failed: a, passed: b }, { failed: c, passed: d });

test('known tables', () => {
  // The lady tasting tea: three of four cups right, two-sided.
  expect(p(3, 1, 1, 3)).toBeCloseTo(0.4857, 4);
  expect(p(1, 9, 11, 3)).toBeCloseTo(0.002759, 6);
  expect(p(10, 0, 0, 10)).toBeCloseTo(2 / 184_756, 9);
  expect(p(5, 5, 5, 5)).toBe(1);
});

test('nothing to compare is no difference', () => {
  expect(p(0, 0, 3, 4)).toBe(1);
  expect(p(0, 10, 0, 10)).toBe(1);
  expect(p(10, 0, 10, 0)).toBe(1);
});

test('a probability, the same from both sides, and the sum over all tables is counted right', () => {
  const n = fc.nat(25);
  fc.assert(
    fc.property(n, n, n, n, (a, b, c, d) => {
      const value = p(a, b, c, d);
      expect(value).toBeGreaterThan(0);
      expect(value).toBeLessThanOrEqual(1);
      expect(p(c, d, a, b)).toBeCloseTo(value, 9);
      expect(p(b, a, d, c)).toBeCloseTo(value, 9);
    }),
  );
});

test('hundreds of runs do not overflow', () => {
  expect(p(900, 100, 100, 900)).toBeGreaterThanOrEqual(0);
  expect(p(500, 500, 501, 499)).toBeGreaterThan(0.9);
});

test('the interval of a rate', () => {
  const [low, high] = wilson({ failed: 6, passed: 4 });
  expect(low).toBeCloseTo(0.3127, 3);
  expect(high).toBeCloseTo(0.8318, 3);
  expect(wilson({ failed: 0, passed: 0 })).toEqual([0, 1]);
  expect(wilson({ failed: 0, passed: 5 })[0]).toBe(0);
});
