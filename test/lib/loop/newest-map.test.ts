/** A bounded map keeps the entries that were set last. */

import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { NewestMap } from '../../../src/lib/loop/newest-map.ts';

test('it never has more entries than it may, and those that were set last stay', () => {
  const keys = fc.array(fc.integer({ min: 0, max: 20 }));
  fc.assert(
    fc.property(keys, fc.integer({ min: 1, max: 8 }), (set, most) => {
      const map = new NewestMap<number, number>(most);
      for (const [at, key] of set.entries()) map.set(key, at);
      const last = [...new Set(set.toReversed())].slice(0, most).toReversed();
      expect([...map]).toEqual(last.map((key) => [key, set.lastIndexOf(key)]));
    }),
  );
});
