/** How a window stands: a budget of one process and a lease of many replicas say the same of the same numbers. */

import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { WindowState } from '../../../src/limits/engine/window.ts';
import type { WindowLaw } from '../../../src/limits/limits.ts';
import { Lease } from '../../../src/limits/shared/bank-session.ts';

const law = (per: WindowLaw['per'], amount = 100): WindowLaw => ({
  id: 'b',
  kind: 'window',
  name: 'b',
  unit: 'nano_usd',
  amount,
  per,
  timeZone: 'UTC',
});
const units = fc.integer({ min: 0, max: 10 ** 12 });
const PERIODS = ['hour', 'day', 'month', 'total'] as const;

test('a budget and a lease with the same numbers stand the same', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...PERIODS),
      fc.array(units, { minLength: 4, maxLength: 4 }),
      fc.integer({ min: 0, max: 4 * 10 ** 12 }),
      (per, [amount, spent, held, others], wall) => {
        const window = new WindowState(law(per, amount), 0);
        const period = window.at(wall);
        Object.assign(period, { spent, held, others });
        const lease = new Lease(window.law, period.start, period.end);
        // What other replicas have settled is in what is spent of all.
        Object.assign(lease, { spent: others, used: spent, reserved: held });
        expect(lease.standing(wall)).toEqual(window.standing(wall));
      },
    ),
  );
});

test('what is left is never below 0, nor is the wait of a lease whose window is over', () => {
  const lease = new Lease(law('day'), 0, 86_400_000);
  Object.assign(lease, { spent: 70, others: 20, reserved: 15 });
  const stands = { law: lease.law, used: 105, held: 35, remaining: 0, resetAt: 86_400_000 };
  expect(lease.standing(86_399_000)).toEqual({ ...stands, resetMs: 1000 });
  expect(lease.standing(86_401_000)).toEqual({ ...stands, resetMs: 0 });
});

test('a window that never ends has no end to tell', () => {
  const standing = new WindowState(law('total'), 0).standing(5);
  expect(standing.resetMs).toBeUndefined();
  expect('resetAt' in standing).toBe(false);
});
