/** Times of a replica as times of the database: in doubt earlier, so that an erasure holds on every machine. */

import { expect, test } from 'bun:test';
import { DatabaseClock } from '../../../../src/features/memory/store/database-clock.ts';
import { preciseNow } from '../../../../src/lib/loop/precise-time.ts';

const HOUR = 3_600_000;

test.each([-HOUR, 0, HOUR])('a replica whose clock is off by %i ms', (off) => {
  const clock = new DatabaseClock();
  expect(clock.isKnown).toBe(false);
  const began = preciseNow();
  // The answer takes 40 ms and 5 ms: what is known is never ahead of the truth.
  clock.measured(preciseNow() + off - 40);
  clock.measured(preciseNow() + off - 5);
  clock.measured(preciseNow() + off - 60);
  expect(clock.isKnown).toBe(true);
  for (const instant of [began, preciseNow()]) {
    expect(clock.aheadAt(instant) - off).toBeLessThanOrEqual(0);
    expect(clock.aheadAt(instant) - off).toBeGreaterThan(-10);
  }
});

test('a turn that began before the machine was suspended stays before it', () => {
  const clock = new DatabaseClock();
  clock.measured(preciseNow());
  const began = preciseNow();
  // The process's clock stood still for an hour.
  while (preciseNow() === began);
  clock.measured(preciseNow() + HOUR);
  expect(clock.aheadAt(began)).toBeLessThan(1000);
  expect(clock.aheadAt(preciseNow())).toBeGreaterThan(HOUR - 1000);
});
