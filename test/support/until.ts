/** Waits for a condition, as long as a busy machine may need. */

/** The limit catches only what hangs. */
const PATIENCE_MS = 30_000;
/** Polling leaves the processor to what is waited for. */
const MAX_PAUSE_MS = 40;

/**
 * The value of `look` once it is neither undefined nor false; polled after 1 ms, then ever more slowly. @param seen describes the
 * state for the error @throws Error that names the awaited condition
 */
export async function until<T>(
  look: () => T | undefined | false | Promise<T | undefined | false>,
  describe: () => string = () => '',
): Promise<T> {
  const end = performance.now() + PATIENCE_MS;
  for (let pause = 1; ; pause = Math.min(pause * 1.2, MAX_PAUSE_MS)) {
    const found = await look();
    if (found !== undefined && found !== false) return found;
    if (performance.now() > end) throw new Error(`it never came to ${look} ${describe()}`);
    await Bun.sleep(pause);
  }
}
