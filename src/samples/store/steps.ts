/** Long work over many samples in steps: all at once for a command, between everybody else's turns for a server. */

/** It yields wherever it may rest: every few hundred microseconds. */
export type Steps<T> = Generator<void, T, void>;

/** Milliseconds of work before everybody else has their turn. */
const SLICE_MS = 2;

/** All of it now. */
export function atOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}

/**
 * All of it, a few milliseconds at a time.
 * @param stopped asked between two slices; what is left is not done then
 * @returns undefined when it was stopped
 */
export async function inSlices<T>(
  steps: Steps<T>,
  stopped: () => boolean = () => false,
): Promise<T | undefined> {
  for (;;) {
    for (const until = performance.now() + SLICE_MS; performance.now() < until; ) {
      const { done, value } = steps.next();
      if (done === true) return value;
    }
    await new Promise((resolve) => setImmediate(resolve));
    if (stopped()) return undefined;
  }
}
