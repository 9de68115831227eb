/** Lets a report through once in a while: what every request meets is told once. */

export interface ThrottleOptions {
  /** Milliseconds for which a name that was told is not told again. */
  readonly everyMs: number;
  /** Names told within that time; further ones are not told. */
  readonly most: number;
  readonly now?: () => number;
}

export class Throttle {
  readonly #options: Required<ThrottleOptions>;
  /** When each name was told, the longest ago first. */
  readonly #told = new Map<string, number>();

  constructor(options: ThrottleOptions) {
    this.#options = { now: () => performance.now(), ...options };
  }

  /** True: the caller tells it now. */
  allows(name: string): boolean {
    const { everyMs, most, now } = this.#options;
    const time = now();
    for (const [one, at] of this.#told) {
      if (time - at < everyMs) break;
      this.#told.delete(one);
    }
    if (this.#told.has(name) || this.#told.size >= most) return false;
    this.#told.set(name, time);
    return true;
  }
}
