/** For a process whose files cannot grow: windows of many keys, each of which admits once and then refuses. */

import { SYSTEM_CLOCK } from '../../src/limits/limit-state.ts';
import { LocalKeptLimits as KeptLimits } from '../support/local-limits.ts';

const problems: string[] = [];
const limits = new KeptLimits({
  path: process.argv[2]!,
  // The file is tried again some times while this runs.
  clock: { wall: SYSTEM_CLOCK.wall, monotonic: () => SYSTEM_CLOCK.monotonic() * 20 },
  onProblem: (message) => problems.push(message),
  onReached: () => {},
});
let admitted = 0;
let refused = 0;
for (let i = 0; i < 1500; i++) {
  const limit = {
    kind: 'window',
    id: `a budget with a name of some length, number ${i}`,
    unit: 'nano_usd',
    amount: 10,
    per: 'month',
    timeZone: 'UTC',
  } as const;
  if (limits.admit([{ limit, amount: 10 }]).admitted) admitted++;
  if (!limits.admit([{ limit, amount: 1 }]).admitted) refused++;
}
console.log(JSON.stringify({ admitted, refused, problems }));
process.exit(0);
