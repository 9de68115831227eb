/** Estimates the wait for the first byte, from recent peaks and from pending requests. */

const DECAY_MS = 10_000;
// A measurement that is older says nothing.
const FORGOTTEN_MS = 30_000;
const LEAVE_AT = 2;
const RETURN_AT = 1.5;
/** Below this no difference is worth the vendor's prompt cache, which a session leaves behind. */
const MIN_MS = 50;
/** A fast refusal must not look like a fast server: it would attract traffic. */
const FAILURE_MS = 5000;

/** Peak EWMA: a slower answer counts at once, faster ones pull the average down over ten seconds. */
export class Load {
  /** Requests that wait for their first byte. */
  waiting = 0;
  #average = 0;
  #at = Number.NEGATIVE_INFINITY;
  /** Sessions of this one go to the other, until it is no longer much slower. */
  #avoided = false;

  answered(ms: number, now: number): void {
    const age = now - this.#at;
    if (age > FORGOTTEN_MS || ms >= this.#average) this.#average = ms;
    else {
      const kept = Math.exp(-age / DECAY_MS);
      this.#average = this.#average * kept + ms * (1 - kept);
    }
    this.#at = now;
  }

  failed(ms: number, now: number): void {
    this.answered(Math.max(ms, FAILURE_MS), now);
  }

  /**
   * Is this one so much slower than the other that a session moves? From twice the load on, and back below 1.5
   * times; where one of them is unknown, no session moves.
   */
  isSlowerThan(other: Load, now: number): boolean {
    if (this.#isUnknown(now) || other.#isUnknown(now)) {
      this.#avoided = false;
    } else {
      const ratio = this.#expected / other.#expected;
      this.#avoided = ratio > (this.#avoided ? RETURN_AT : LEAVE_AT);
    }
    return this.#avoided;
  }

  get #expected(): number {
    return Math.max(MIN_MS, this.#average) * (this.waiting + 1);
  }

  #isUnknown(now: number): boolean {
    return now - this.#at > FORGOTTEN_MS;
  }
}
