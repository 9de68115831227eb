/** Waits for what comes by itself, as long as a busy machine may take. */

/** Only what hangs is to fail by the clock. */
const PATIENCE_MS = 30_000;

/**
 * What `look` gives, once it is neither undefined nor false; asked every millisecond.
 * @param seen told when it never came: what there was instead
 * @throws Error that names what was waited for
 */
export async function until<T>(
  look: () => T | undefined | false | Promise<T | undefined | false>,
  seen: () => string = () => '',
): Promise<T> {
  const end = performance.now() + PATIENCE_MS;
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== false) return found;
    if (performance.now() > end) throw new Error(`it never came to ${look} ${seen()}`);
    await Bun.sleep(1);
  }
}
