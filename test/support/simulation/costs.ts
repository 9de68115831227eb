/** How the costs of streams can be spread, for simulations of budgets. */

import type { Costs } from './replicas.ts';

const UNIT = 1_000_000;
/** What is reserved is an estimate from above: a stream costs a part of it. */
const part = (reserved: number, random: () => number) => ({
  reserved,
  cost: Math.floor(reserved * random()),
});

export const COSTS: Readonly<Record<string, Costs>> = {
  equal: () => ({ reserved: UNIT, cost: UNIT }),
  uniform: (random) => part(1 + Math.floor(random() * 2 * UNIT), random),
  'one in a hundred costs a thousand times as much': (random) =>
    part(random() < 0.01 ? 1000 * UNIT : UNIT, random),
  'heavy tail (Pareto 1.2)': (random) =>
    part(Math.min(10_000 * UNIT, Math.ceil(UNIT / (1 - random()) ** (1 / 1.2))), random),
};
