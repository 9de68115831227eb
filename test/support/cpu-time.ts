/** Measures work in CPU time, independent of other load on the machine. */

/** Milliseconds of CPU that this process spends on the work. */
export async function cpuTime(work: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}
