/** Budgets of the configuration: what they say, and what is refused by name. */

import { describe, expect, test } from 'bun:test';
import { bad, PROVIDER, parse } from '../../support.ts';

const shared = (budget: object) => `${PROVIDER}budgets: ${JSON.stringify([budget])}\n`;
const BUDGET = { name: 'web', usd: 200, per: 'month' };

describe('a budget', () => {
  test('has its amount in nano-USD, its defaults and its webhook', () => {
    const loaded = parse(shared({ ...BUDGET, usd: 0.1, webhook: 'http://10.0.0.7:9000/hook' }));
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
    expect(loaded.config.budgets).toEqual([
      {
        id: 'budget:web',
        name: 'web',
        keys: {},
        nanoUsd: 100_000_000,
        per: 'month',
        timeZone: 'UTC',
        warn: [0.5, 0.8],
        over: { action: 'refuse' },
        webhook: 'http://10.0.0.7:9000/hook',
      },
    ]);
  });

  test.each([
    [{ webhook: 'ftp://example.com/hook' }, 'budgets[0].webhook'],
    [{ webhook: 'example.com/hook' }, 'budgets[0].webhook'],
    [{ time_zone: 'Europe/Atlantis' }, 'budgets[0].time_zone'],
    [{ per: 'decade' }, 'budgets[0].per'],
    [{ usd: -1 }, 'budgets[0].usd'],
    [{ usd: 1e10 }, 'budgets[0].usd'],
    [{ warn: [1.5] }, 'budgets[0].warn[0]'],
    [{ over: 'no-such-route' }, 'budgets[0].over'],
    [{ limit: 5 }, 'budgets[0].limit'],
  ])('is refused with %j', (wrong, path) => {
    expect(bad(shared({ ...BUDGET, ...wrong })).map((problem) => problem.path)).toEqual([path]);
  });
});
