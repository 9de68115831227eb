/** Recent erasures: what they cover, and that they are forgotten in time. */

import { expect, test } from 'bun:test';
import { ERASURES_KEPT_MS, RecentErasures } from '../../src/state/erasures.ts';

test('an erasure covers work that began before it or at its time, of its own key alone', () => {
  const erasures = new RecentErasures();
  erasures.add('a', 1000);
  expect([999, 1000, 1001].map((began) => erasures.hasSince('a', began))).toEqual([
    true,
    true,
    false,
  ]);
  expect(erasures.hasSince('b', 1)).toBe(false);
});

test('erasures are forgotten after a while, when another one comes', () => {
  const erasures = new RecentErasures();
  erasures.add('a', 1000);
  erasures.add('b', 1000 + ERASURES_KEPT_MS);
  expect(erasures.hasSince('a', 1)).toBe(true);
  erasures.add('b', 1001 + ERASURES_KEPT_MS);
  expect(erasures.hasSince('a', 1)).toBe(false);
});
