/** Counts answers and failures of the last half minute, and decides when there are too many failures. */

const SECONDS = 30;
const MAX_IN_ROW = 5;
const MIN_COUNTED = 10;

/** Counts by whole seconds, in bounded memory. */
export class FailureWindow {
  // For each second the number of all, then the number of failures.
  readonly #counts = new Uint32Array(2 * SECONDS);
  #second = 0;
  #inRow = 0;
  /** When the last answer came. */
  answeredAt = Number.NEGATIVE_INFINITY;
  #all = 0;
  #failed = 0;

  answered(now: number): void {
    this.#inRow = 0;
    this.answeredAt = now;
    this.#count(now, 0);
  }

  /** Returns whether there are too many: 5 in a row, or more than half of at least 10 in 30 seconds. */
  failed(now: number): boolean {
    this.#inRow++;
    this.#count(now, 1);
    if (this.#inRow >= MAX_IN_ROW) return true;
    return this.#all >= MIN_COUNTED && this.#failed * 2 > this.#all;
  }

  clear(): void {
    this.#counts.fill(0);
    this.#inRow = 0;
    this.#all = 0;
    this.#failed = 0;
  }

  #count(now: number, failures: number): void {
    const second = Math.floor(now / 1000);
    if (second !== this.#second) this.#forget(second);
    const at = 2 * (second % SECONDS);
    this.#counts[at]!++;
    this.#counts[at + 1]! += failures;
    this.#all++;
    this.#failed += failures;
  }

  /** The seconds that are no longer among the last ones. */
  #forget(second: number): void {
    const counts = this.#counts;
    const first = Math.max(this.#second + 1, second - SECONDS + 1);
    for (let one = first; one <= second; one++) {
      const at = 2 * (one % SECONDS);
      this.#all -= counts[at]!;
      this.#failed -= counts[at + 1]!;
      counts[at] = 0;
      counts[at + 1] = 0;
    }
    this.#second = second;
  }
}
