/** Measures work in CPU time of this thread, independent of other load and of the garbage collector's threads. */

const TRIES = 8;

/** Milliseconds of CPU that this thread spends on the work. */
export async function cpuTime(work: () => unknown): Promise<number> {
  const before = process.threadCpuUsage();
  await work();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}

/**
 * Throws when the work takes `limit` milliseconds of CPU or more. The limit is far above what good work takes and far
 * below what bad work takes. A bad measurement is repeated: other load makes it longer and never shorter.
 */
export async function expectCpuBelow(limit: number, work: () => unknown): Promise<void> {
  let least = Number.POSITIVE_INFINITY;
  for (let i = 0; i < TRIES && least >= limit; i++) least = Math.min(least, await cpuTime(work));
  if (least >= limit)
    throw new Error(`takes ${least.toFixed(0)} ms of CPU, and not below ${limit} ms`);
}
