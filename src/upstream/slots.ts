/** At most so many at a time; the others wait in line. */

const UNLIMITED = () => {};

export class Slots {
  readonly #limit: number;
  readonly #waiting: (() => void)[] = [];
  #busy = 0;

  /** `limit` of 0: no limit. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /**
   * Takes a slot, at once when one is free; resolves to the function that gives it back (safe to call
   * more than once). Rejects with the reason of the asker's signal when that fires first; nobody reads
   * the signal where there is room.
   */
  take(asker: { readonly signal: AbortSignal }): (() => void) | Promise<() => void> {
    if (this.#limit === 0) return UNLIMITED;
    if (this.#busy < this.#limit) {
      this.#busy++;
      return this.#release();
    }
    const { signal } = asker;
    return new Promise((resolve, reject) => {
      const enter = () => {
        signal.removeEventListener('abort', leave);
        resolve(this.#release());
      };
      const leave = () => {
        const at = this.#waiting.indexOf(enter);
        if (at >= 0) this.#waiting.splice(at, 1);
        reject(signal.reason);
      };
      signal.addEventListener('abort', leave, { once: true });
      this.#waiting.push(enter);
    });
  }

  #release(): () => void {
    let given = false;
    return () => {
      if (given) return;
      given = true;
      const next = this.#waiting.shift();
      if (next === undefined) this.#busy--;
      else next();
    };
  }
}
