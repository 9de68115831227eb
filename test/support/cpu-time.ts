/** Measures work in CPU time of this thread, independent of other load and of the garbage collector's threads. */

import { threadTime } from './thread-time.ts';

/** Milliseconds of CPU that this thread spends on the work. */
export async function cpuTime(work: () => unknown): Promise<number> {
  const before = threadTime();
  await work();
  return threadTime() - before;
}

/** A fixed piece of work, and the milliseconds that it takes on the machine for which limits are given. */
const YARDSTICK = JSON.stringify(Array.from({ length: 20_000 }, (_, n) => ({ n, text: `t${n}` })));
const YARDSTICK_MS = 4;
const TRIES = 8;

/** How many times as long as there the same work takes here at the moment; at least 1. */
async function slowness(): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let i = 0; i < 3; i++) {
    least = Math.min(least, await cpuTime(() => JSON.stringify(JSON.parse(YARDSTICK))));
  }
  return Math.max(1, least / YARDSTICK_MS);
}

/**
 * Throws when the work takes `limit` milliseconds of CPU or more, on a slower machine so many times as long. A bad
 * measurement is repeated: other load makes it longer and never shorter.
 */
export async function expectCpuBelow(limit: number, work: () => unknown): Promise<void> {
  let least = Number.POSITIVE_INFINITY;
  for (let i = 0; i < TRIES && least >= limit; i++) {
    const slow = await slowness();
    least = Math.min(least, (await cpuTime(work)) / slow);
  }
  if (least >= limit)
    throw new Error(`takes ${least.toFixed(0)} ms of CPU, and not below ${limit} ms`);
}
