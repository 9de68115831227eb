/** Random names are of the asked length; those that must not be guessed come from the system's generator. */

import { expect, spyOn, test } from 'bun:test';
import fc from 'fast-check';
import { randomBase36, requestId, secretBase36 } from '../../../src/lib/text/ids.ts';

test('a random name of any length is of that length, and of 0-9a-z', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 60 }), (length) => {
      for (const make of [randomBase36, secretBase36]) {
        expect(make(length)).toMatch(new RegExp(`^[0-9a-z]{${length}}$`));
      }
    }),
  );
});

test('a number near its end or its beginning makes no shorter or longer name', () => {
  const random = spyOn(Math, 'random');
  for (const value of [0, 2 ** -52, 1 - 2 ** -53]) {
    random.mockReturnValue(value);
    for (const length of [1, 6, 10, 11, 32]) expect(randomBase36(length)).toHaveLength(length);
  }
  random.mockRestore();
});

test('what must not be guessed does not hang on the fast generator', () => {
  const random = spyOn(Math, 'random').mockReturnValue(0.5);
  const keys = new Set(Array.from({ length: 100 }, () => secretBase36(32)));
  random.mockRestore();
  expect(keys.size).toBe(100);
});

test('no character of a secret is likelier than another', () => {
  const counts = new Map<string, number>();
  for (const character of secretBase36(36_000)) {
    counts.set(character, (counts.get(character) ?? 0) + 1);
  }
  expect(counts.size).toBe(36);
  // 1,000 of each on average; seven standard deviations.
  for (const count of counts.values()) expect(Math.abs(count - 1000)).toBeLessThan(220);
});

test('ids of exchanges do not repeat within a millisecond', () => {
  // Of 3,656,158,440,062,976 possible ones; with a millionth of them some would repeat.
  const ids = new Set(Array.from({ length: 200_000 }, () => requestId(1)));
  expect(ids.size).toBe(200_000);
  expect([...ids][0]).toMatch(/^req_1_[0-9a-z]{10}$/);
});
