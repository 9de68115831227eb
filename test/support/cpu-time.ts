/** What work costs, whoever else wants the machine meanwhile. */

/** Milliseconds of CPU that this process spends on it. */
export async function cpuTime(work: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}
