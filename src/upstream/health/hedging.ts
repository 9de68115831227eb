/** When a second request may be sent beside a slow first one: after an unusual wait, and for few requests. */

// Of the latest streams of a model, and from how many on they tell what is usual.
const KEPT = 64;
const MIN = 20;
const MAX_MODELS = 200;

/** The times to the first content of a model's latest streams. */
class FirstContents {
  readonly #times = new Float64Array(KEPT);
  #count = 0;
  #p95: number | undefined;

  add(ms: number): void {
    this.#times[this.#count++ % KEPT] = ms;
    this.#p95 = undefined;
  }

  /** Milliseconds in which 95 of 100 streams begin; undefined while there are too few. */
  get p95(): number | undefined {
    if (this.#count < MIN) return undefined;
    if (this.#p95 === undefined) {
      const sorted = this.#times.slice(0, Math.min(this.#count, KEPT)).sort();
      this.#p95 = sorted[Math.ceil(0.95 * sorted.length) - 1]!;
    }
    return this.#p95;
  }
}

// One second request for twenty: five in a hundred.
const COST = 20;
const MAX_SAVED = 10 * COST;

/** What one provider needs for hedging. */
export class Hedging {
  readonly #models = new Map<string, FirstContents>();
  #saved = 0;

  /** A stream of this model began after so many milliseconds. */
  began(model: string, ms: number): void {
    let times = this.#models.get(model);
    if (times === undefined) {
      if (this.#models.size >= MAX_MODELS) this.#models.clear();
      times = new FirstContents();
      this.#models.set(model, times);
    }
    times.add(ms);
  }

  /** A request is sent: after how many milliseconds a second one may be; undefined: never. */
  waitFor(model: string): number | undefined {
    this.#saved = Math.min(this.#saved + 1, MAX_SAVED);
    return this.#models.get(model)?.p95;
  }

  /** Takes the right to one second request, where there is one. */
  take(): boolean {
    if (this.#saved < COST) return false;
    this.#saved -= COST;
    return true;
  }
}
