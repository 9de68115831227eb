/** The cost of limits per request: admission and settlement, with 20,000 keys of seven limits each. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SYSTEM_CLOCK } from '../src/limits/limit-state.ts';
import type { Limit } from '../src/limits/limits.ts';
import { LimitsStore } from '../src/limits/limits-store.ts';
import { ProcessLimits } from '../src/limits/process-limits.ts';

const KEYS = 20_000;
const REQUESTS = 400_000;
const ONE_KEY = 15_000;
const GOAL_US = 10;

/** The limits of one key: what the configuration allows, with budgets of four periods. */
function keyLimitsOf(key: number): readonly Limit[] {
  const id = `key-${key}`;
  const minute = { kind: 'rate', periodMs: 60_000 } as const;
  const money = { kind: 'window', unit: 'nano_usd', timeZone: 'Europe/Berlin', marks: [] } as const;
  return [
    { ...minute, id: `requests:${id}`, unit: 'requests', amount: 1_000_000 },
    { kind: 'slots', id: `streams:${id}`, unit: 'exchanges', amount: 50 },
    { ...minute, id: `tokens:${id}`, unit: 'tokens', amount: 1_000_000_000 },
    { ...money, id: `hour:${id}`, per: 'hour', amount: 50e9 },
    { ...money, id: `day:${id}`, per: 'day', amount: 200e9 },
    { ...money, id: `month:${id}`, per: 'month', amount: 2000e9 },
    { ...money, id: 'shared', per: 'month', amount: 9e15 },
  ];
}

const folder = mkdtempSync(join(tmpdir(), 'hopgate-bench-limits-'));
const limits = new ProcessLimits({
  store: new LimitsStore({
    path: join(folder, 'limits.db'),
    clock: SYSTEM_CLOCK,
    onProblem: (message) => console.error(message),
  }),
  onReached: () => {},
});
const keys = Array.from({ length: KEYS }, (_, key) => keyLimitsOf(key));

/** Microseconds of CPU for each request, file and timers included. */
async function round(requests: number, keyOf: (request: number) => number): Promise<number> {
  const before = process.cpuUsage();
  for (let i = 0; i < requests; i++) {
    const [rate, slots, tokens, hour, day, month, shared] = keys[keyOf(i)]! as [
      Limit,
      Limit,
      Limit,
      Limit,
      Limit,
      Limit,
      Limit,
    ];
    const opening = limits.admit([
      { limit: rate, amount: 1 },
      { limit: slots, amount: 1 },
    ]);
    const trying = limits.admit([
      { limit: tokens, amount: 3000 },
      { limit: hour, amount: 4e6 },
      { limit: day, amount: 4e6 },
      { limit: month, amount: 4e6 },
      { limit: shared, amount: 4e6 },
    ]);
    if (opening instanceof Promise || trying instanceof Promise) throw new Error('it waits');
    if (!opening.admitted || !trying.admitted) throw new Error('a limit was reached');
    trying.settle([2500, 3e6, 3e6, 3e6, 3e6]);
    opening.settle([1, 1]);
    // As requests would, they let the timers run.
    if (i % 1000 === 0) await Bun.sleep(0);
  }
  const used = process.cpuUsage(before);
  return (used.user + used.system) / requests;
}

const first = await round(KEYS, (request) => request);
const later = await round(REQUESTS, () => Math.floor(Math.random() * KEYS));
const one = await round(ONE_KEY, () => 0);
await limits.close();
rmSync(folder, { recursive: true });
console.log(`${KEYS} keys × 7 limits, µs of CPU for admission and settlement of a request:`);
console.log(`  the first request of each key in a period  ${first.toFixed(2)}`);
console.log(`  requests of random keys after that         ${later.toFixed(2)}  (goal: ${GOAL_US})`);
console.log(`  requests of one key                        ${one.toFixed(2)}`);
process.exit(later <= GOAL_US ? 0 : 1);
