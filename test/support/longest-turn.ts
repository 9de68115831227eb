/** How long one turn of the event loop takes at most, by the CPU time of its thread. */

/** The most CPU time (ms) that one turn of the event loop takes until `work` is done. */
export async function longestTurn(work: () => Promise<unknown>): Promise<number> {
  let over = false;
  let longest = 0;
  const watch = (async () => {
    while (!over) {
      const before = process.threadCpuUsage();
      await new Promise((resolve) => setImmediate(resolve));
      const { user, system } = process.threadCpuUsage(before);
      longest = Math.max(longest, (user + system) / 1000);
    }
  })();
  await work();
  over = true;
  await watch;
  return longest;
}
