/** Limits how often a report repeats, so that a fault of every request does not fill the log. */

export interface ThrottleOptions {
  /** A name that was reported is not reported again for so many milliseconds. */
  readonly everyMs: number;
  /** At most so many names are reported within that time. */
  readonly most: number;
  readonly now?: () => number;
}

export class Throttle {
  readonly #options: Required<ThrottleOptions>;
  /** When each name was reported, the oldest first. */
  readonly #reported = new Map<string, number>();

  constructor(options: ThrottleOptions) {
    this.#options = { now: () => performance.now(), ...options };
  }

  /** True: the caller may report it now. */
  allows(name: string): boolean {
    const { everyMs, most, now } = this.#options;
    const time = now();
    for (const [one, at] of this.#reported) {
      if (time - at < everyMs) break;
      this.#reported.delete(one);
    }
    if (this.#reported.has(name) || this.#reported.size >= most) return false;
    this.#reported.set(name, time);
    return true;
  }
}
