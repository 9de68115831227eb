/** How a window stands, from what is spent, held by others, and reserved here. */

import { expect, test } from 'bun:test';
import { type Bank, OwnBank } from '../../src/limits/bank.ts';
import { Lease } from '../../src/limits/lease.ts';
import { Leases, Window } from '../../src/limits/leases.ts';
import { SYSTEM_CLOCK } from '../../src/limits/limit-state.ts';
import type { WindowLimit } from '../../src/limits/limits.ts';
import { ProcessLimits } from '../../src/limits/process-limits.ts';

const limit = (per: WindowLimit['per'], amount = 100): WindowLimit => ({
  id: 'b',
  kind: 'window',
  name: 'b',
  unit: 'nano_usd',
  amount,
  per,
  timeZone: 'UTC',
});
const leases = new Leases({ bank: new OwnBank(), process: 'p', clock: SYSTEM_CLOCK });

test('what is left is never below 0, nor is the wait of a lease whose window is over', () => {
  const lease = new Lease(limit('day'), leases.session, 0, 86_400_000);
  Object.assign(lease, { spent: 70, others: 20, reserved: 15 });
  const stands = { limit: lease.limit, used: 105, held: 35, remaining: 0, resetAt: 86_400_000 };
  expect(lease.usage(86_399_000)).toEqual({ ...stands, resetMs: 1000 });
  expect(lease.usage(86_401_000)).toEqual({ ...stands, resetMs: 0 });
});

test('a window that never ends has no end to tell', () => {
  const usage = new Window(limit('total'), leases).usage(0, 5);
  expect(usage.resetMs).toBeUndefined();
  expect('resetAt' in usage).toBe(false);
});

test('a request that asks the bank at the end of a period is not refused for the next one, which has nothing yet', async () => {
  let wall = 59_999;
  const own = new OwnBank();
  const bank: Bank = {
    distance: 'far',
    sessionMs: 60_000,
    async draw(draw) {
      const drawn = own.draw(draw);
      wall = 60_001;
      return drawn;
    },
    isNew: () => false,
    hasOthers: () => true,
  };
  const limits = new ProcessLimits({ bank, clock: { wall: () => wall, monotonic: () => 0 } });
  const admission = await limits.admit([{ limit: limit('minute'), amount: 1 }]);
  expect(admission.admitted).toBe(true);
  await limits.close();
});
