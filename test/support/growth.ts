/** Tells whether work grows linearly with its input: it compares CPU times at two sizes, never a time with a limit. */

import { SHORTEST_MS, threadTime } from './thread-time.ts';

/** One kind of hostile input, for one function that reads what a client or a vendor sent. */
export interface GrowthCase<T> {
  readonly name: string;
  /** An input of about `size` characters or bytes. Its construction is not measured. */
  readonly input: (size: number) => T;
  /** The work. */
  readonly run: (input: T) => unknown;
  /** The largest input, in characters; 4 MiB by default. */
  readonly most?: number;
  /**
   * Linear work on the same input that asks as much of the memory, such as `JSON.parse`: a hundred thousand strings
   * cost more each than ten thousand. What it grows by beyond its input does not count against `run`.
   */
  readonly linear?: (input: T) => unknown;
}

export interface Growth {
  /** Characters of the smaller and the larger input. */
  readonly sizes: readonly [number, number];
  /** CPU milliseconds of this thread, the lowest of several runs. */
  readonly times: readonly [number, number];
  /** The exponent e in time ~ size^e; 1 is linear, 2 quadratic. 0 if even the largest input costs next to nothing. */
  readonly exponent: number;
}

const MIN = 1024;
const MAX = 4 * 1024 * 1024;
/** The ratio of the larger size to the smaller. */
const STEP = 8;
/** The larger input takes at least `STEP` times this, else only noise is measured. */
const MIN_MS = 1;
/** Where even the largest input takes no longer, nothing is measured. */
const NEGLIGIBLE_MS = 4;
const MAX_TIMES = 60;
/** The smaller size is measured until so many runs in a row brought no lower time, and at most so often. */
const SETTLED = 3;
const MAX_RUNS = 12;
/** Linear work measures up to 1.2 on a busy machine, n log n up to 1.3, quadratic work 1.7 and more. */
const LIMIT = 1.5;
/** No cache makes linear work look like this. */
const CLEARLY_MORE = 1.8;

async function milliseconds<T>(one: GrowthCase<T>, size: number): Promise<number> {
  let sum = 0;
  let times = 0;
  for (; sum < SHORTEST_MS && times < MAX_TIMES; times++) {
    const input = one.input(size);
    const before = threadTime();
    await one.run(input);
    sum += threadTime() - before;
  }
  return sum / times;
}

/** The lowest of several times: other load and code that is not compiled yet make one longer, nothing makes it shorter. */
async function leastOf<T>(one: GrowthCase<T>, size: number): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let runs = 0, same = 0; runs < MAX_RUNS && same < SETTLED; runs++) {
    const time = await milliseconds(one, size);
    same = time < least * 0.95 ? 0 : same + 1;
    least = Math.min(least, time);
  }
  return least;
}

/** Measures the growth of one case. @param limit the exponent that is good enough not to measure again */
export async function growthOf<T>(one: GrowthCase<T>, limit = LIMIT): Promise<Growth> {
  const most = one.most ?? MAX;
  let size = Math.min(MIN, most);
  for (;;) {
    let large = await milliseconds(one, size * STEP);
    // Code that is not compiled yet takes many times as long: the first run may only have seemed long enough.
    if (large >= STEP * MIN_MS) large = Math.min(large, await milliseconds(one, size * STEP));
    if (large >= STEP * MIN_MS) {
      // Of work that is more than linear the smaller size may still be too short to be measured.
      const isLong = (await milliseconds(one, size)) >= MIN_MS / 2;
      if (isLong || size * STEP * 2 > most) return growthAt(one, size, limit);
      size *= 2;
      continue;
    }
    if (size * STEP * 2 > most) {
      if (large >= NEGLIGIBLE_MS) return growthAt(one, size, limit);
      return { sizes: [size, size * STEP], times: [large, large], exponent: 0 };
    }
    // Far from the time that counts, a step may be wide: even quadratic work does not reach far beyond it.
    size *= large < MIN_MS / 2 && size * STEP * 4 <= most ? 4 : 2;
  }
}

/** The same from this size on. */
async function growthAt<T>(one: GrowthCase<T>, size: number, limit = LIMIT): Promise<Growth> {
  const small = await leastOf(one, size);
  let large = await milliseconds(one, size * STEP);
  // Other load makes it longer, and never shorter: one good measurement is enough.
  for (let i = 1; i < MAX_RUNS && exponentOf(small, large) > limit; i++) {
    large = Math.min(large, await milliseconds(one, size * STEP));
  }
  const sizes = [size, size * STEP] as const;
  return { sizes, times: [small, large], exponent: exponentOf(small, large) };
}

function exponentOf(small: number, large: number): number {
  if (large < NEGLIGIBLE_MS) return 0;
  return Math.log(large / Math.max(small, MIN_MS / 4)) / Math.log(STEP);
}

/**
 * Throws when the work of `one` grows faster than its input. A bad measurement is repeated, since other load can spoil
 * one, but not three in a row.
 */
export async function expectLinear<T>(one: GrowthCase<T>): Promise<void> {
  let growth = await growthOf(one);
  for (let i = 0; i < 2 && growth.exponent > LIMIT; i++) growth = await growthOf(one);
  if (growth.exponent <= LIMIT) return;
  // Where a larger input leaves the processor's cache behind, each byte costs more, once: the next step decides.
  const [, next] = growth.sizes;
  if (growth.exponent < CLEARLY_MORE && next * STEP <= (one.most ?? MAX)) {
    const further = await growthAt(one, next);
    if (further.exponent <= LIMIT) return;
    growth = further;
  }
  if (one.linear !== undefined) {
    const memory = await growthAt({ ...one, run: one.linear }, growth.sizes[0]);
    if (growth.exponent - Math.max(0, memory.exponent - 1) <= LIMIT) return;
  }
  const [small, large] = growth.sizes;
  const [first, second] = growth.times;
  throw new Error(
    `${one.name}: ${small} characters take ${first.toFixed(1)} ms, ${large} take ${second.toFixed(1)} ms: ` +
      `that is size to the power of ${growth.exponent.toFixed(2)}, and more than linear`,
  );
}
