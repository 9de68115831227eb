/** Measures how evenly work is spread over turns of the event loop, in CPU time of its thread. */

import { threadTime } from './thread-time.ts';

interface Turns {
  /** Milliseconds of CPU of the longest turn. */
  readonly longest: number;
  /** Milliseconds of CPU of all turns. */
  readonly total: number;
}

/** Work with less CPU time in all (ms) may take one turn. */
const SMALL = 60;
/** No turn takes more than this share of the whole. Work in one turn has a share of 1. */
const SHARE = 0.4;
const TRIES = 3;

/** Measures the turns of the event loop until `work` is done. */
export async function turnsOf(work: () => Promise<unknown>): Promise<Turns> {
  let over = false;
  let longest = 0;
  let total = 0;
  const watch = (async () => {
    while (!over) {
      const before = threadTime();
      await new Promise((resolve) => setImmediate(resolve));
      const took = threadTime() - before;
      longest = Math.max(longest, took);
      total += took;
    }
  })();
  await work();
  over = true;
  await watch;
  return { longest, total };
}

const uneven = ({ longest, total }: Turns) => total > SMALL && longest > SHARE * total;

/**
 * Throws when one turn of `work` takes a large share of the whole and so blocks other work. It compares times of the
 * same run. A bad measurement is repeated; `prepare` runs before each and is not measured.
 */
export async function expectSlices(
  name: string,
  work: () => Promise<unknown>,
  prepare: () => unknown = () => {},
): Promise<void> {
  const measure = async () => {
    await prepare();
    return turnsOf(work);
  };
  let turns = await measure();
  for (let i = 1; i < TRIES && uneven(turns); i++) turns = await measure();
  if (process.env.GROWTH_TIMES !== undefined)
    console.log(`${turns.longest.toFixed(1)} of ${turns.total.toFixed(1)} ms ${name}`);
  if (!uneven(turns)) return;
  throw new Error(
    `${name}: one turn of the event loop takes ${turns.longest.toFixed(1)} ms of ${turns.total.toFixed(1)} ms in all`,
  );
}
