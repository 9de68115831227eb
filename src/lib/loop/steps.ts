/** Long work in steps: run at once by a command or for a small input, in short slices by a server. */

/** Yields every few hundred microseconds, where the event loop may continue with other work. */
export type Steps<T> = Generator<void, T, void>;

/** Milliseconds of work between two yields to the event loop. */
const SLICE_MS = 2;

/** Runs all steps at once. */
export function runAtOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}

/**
 * Runs all steps, a few milliseconds at a time.
 * @param stopped checked between two slices; true ends the work
 * @returns undefined when the work was stopped
 */
export function runInSlices<T>(steps: Steps<T>): Promise<T>;
export function runInSlices<T>(steps: Steps<T>, stopped: () => boolean): Promise<T | undefined>;
export async function runInSlices<T>(
  steps: Steps<T>,
  stopped: () => boolean = () => false,
): Promise<T | undefined> {
  for (;;) {
    for (const until = performance.now() + SLICE_MS; performance.now() < until; ) {
      const { done, value } = steps.next();
      if (done === true) return value;
    }
    await othersTurn();
    if (stopped()) return undefined;
  }
}

/** Turns of the event loop between pieces of work that are mostly short. */
export class Rests {
  #since = performance.now();

  /** Lets other work have a turn where the last one is half a slice ago. */
  readonly rest = (): Promise<void> | undefined => {
    if (performance.now() - this.#since < SLICE_MS / 2) return undefined;
    return othersTurn().then(() => {
      this.#since = performance.now();
    });
  };
}

// The page's types do not have it; what the page uses of this file runs at once.
declare function setImmediate(resolve: () => void): void;

/** Other work has a turn of the event loop first: for long work, between its slices. */
export const othersTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
