/** A concurrency limit with a queue. */

const UNLIMITED = () => {};

export class ConcurrencyLimit {
  /** In the order in which they came. */
  readonly #waiting = new Set<() => void>();
  #busy = 0;

  /** `limit` of 0: no limit. */
  constructor(private limit: number) {}

  /** The next one would have to wait. */
  get full(): boolean {
    return this.limit !== 0 && this.#busy >= this.limit;
  }

  /**
   * Takes a slot, at once when one is free; resolves to the function that gives it back (safe to call
   * more than once). Rejects with the reason of the caller's signal if that fires first; the signal is not read
   * while a slot is free.
   */
  take(asker: { readonly signal: AbortSignal }): (() => void) | Promise<() => void> {
    if (this.limit === 0) return UNLIMITED;
    if (this.#busy < this.limit) {
      this.#busy++;
      return this.#release();
    }
    return this.#turn(asker.signal);
  }

  /** Resolves when one that came before leaves. */
  #turn(signal: AbortSignal): Promise<() => void> {
    return new Promise((resolve, reject) => {
      const enter = () => {
        signal.removeEventListener('abort', leave);
        resolve(this.#release());
      };
      const leave = () => {
        this.#waiting.delete(enter);
        reject(signal.reason);
      };
      signal.addEventListener('abort', leave, { once: true });
      this.#waiting.add(enter);
    });
  }

  /**
   * Another limit from now on (a reload). Those inside stay, and as many enter as there is room for; those
   * who came in while there was no limit were not counted.
   */
  resize(limit: number): void {
    this.limit = limit;
    while (this.#waiting.size > 0 && (limit === 0 || this.#busy < limit)) {
      this.#busy++;
      this.#next()?.();
    }
  }

  /** Who has waited longest; waits no more. */
  #next(): (() => void) | undefined {
    for (const enter of this.#waiting) {
      this.#waiting.delete(enter);
      return enter;
    }
    return undefined;
  }

  #release(): () => void {
    let given = false;
    return () => {
      if (given) return;
      given = true;
      // After a reload with a lower limit there may be more inside than there is room for.
      const crowded = this.limit !== 0 && this.#busy > this.limit;
      const next = crowded ? undefined : this.#next();
      if (next === undefined) this.#busy--;
      else next();
    };
  }
}
