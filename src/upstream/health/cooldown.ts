/** How long a key or a model of a vendor is left alone after refusals or failures, and how it is tried again. */

/**
 * - `rate_limit`: too many requests for a key and a model
 * - `overloaded`: the vendor has no capacity for a model, whichever key asks
 * - `key_refused`: the vendor does not accept the key, or does not allow it this
 * - `quota`: the key's plan or balance is used up
 * - `failures`: server errors, no connection, or no answer in time
 */
export type CooldownReason = 'rate_limit' | 'overloaded' | 'key_refused' | 'quota' | 'failures';

/** In the order of preference. */
export const AVAILABLE = 0;
/** The cooldown is over and not yet proved needless: one request may try. */
export const DUE = 1;
/** It cools down, or another request is trying. */
export const COOLING = 2;
export type Availability = typeof AVAILABLE | typeof DUE | typeof COOLING;

/** After a cooldown the share of the traffic grows from nothing to all of it over this time. */
const RAMP_MS = 10_000;

// The first cooldown and the longest one, each next one in a row being twice as long.
const BACKOFF: Readonly<Record<CooldownReason, readonly [number, number]>> = {
  rate_limit: [2000, 60_000],
  overloaded: [2000, 60_000],
  key_refused: [60_000, 3_600_000],
  quota: [60_000, 3_600_000],
  failures: [5000, 300_000],
};

/** A hint takes time to arrive: a cooldown that is known is not made longer by that. */
const MIN_NEWS_MS = 250;

export interface Cause {
  readonly reason: CooldownReason;
  /** The HTTP status of the answer; 0: there was none. */
  readonly status: number;
  /** Milliseconds that the vendor asked for. */
  readonly askedMs?: number | undefined;
}

/** In milliseconds. */
export interface CooldownLimits {
  /** That a vendor can ask for. */
  readonly askedMs: number;
  /** Of any kind. */
  readonly longestMs: number;
}

let changes = 0;
/** Grows with each start and end of a cooldown, so that an outdated report can be recognized. */
export const changesSoFar = (): number => changes;

/** Of one key, one model, or one key with one model. Times are milliseconds of the clock of the key ring. */
export class Cooldown {
  /** When it is due; 0: it is available. */
  until = 0;
  since = 0;
  reason: CooldownReason | undefined;
  status = 0;
  /** When the last cooldown ended. */
  #endedAt = Number.NEGATIVE_INFINITY;
  #inRow = 0;
  /** {@link changesSoFar} with its last change. */
  #changed = 0;
  /** The one request that tries whether it is over. */
  #prober: object | undefined;

  availability(now: number): Availability {
    if (this.until === 0) return AVAILABLE;
    return now >= this.until && this.#prober === undefined ? DUE : COOLING;
  }

  /** The share of its usual traffic that it gets: 1, or less for a while after a cooldown. */
  share(now: number): number {
    const passed = now - this.#endedAt;
    return passed >= RAMP_MS ? 1 : Math.max(0, passed) / RAMP_MS;
  }

  get probing(): boolean {
    return this.#prober !== undefined;
  }

  /** The one request that may try, where it is due. Others see it cooling down until {@link release}. */
  claim(request: object, now: number): void {
    if (this.availability(now) === DUE) this.#prober = request;
  }

  release(request: object): void {
    if (this.#prober === request) this.#prober = undefined;
  }

  /** It has changed since a request set out: the end of that one says nothing about the state of now. */
  hasChangedSince(set: number): boolean {
    return this.#changed > set;
  }

  /**
   * The vendor has refused a request, or failed too often.
   * @param set {@link changesSoFar} when the request set out
   */
  refused(
    cause: Cause,
    set: number,
    now: number,
    limits: CooldownLimits,
  ): 'began' | 'longer' | undefined {
    const { until } = this;
    const asked = cause.askedMs === undefined ? undefined : Math.min(cause.askedMs, limits.askedMs);
    if (this.hasChangedSince(set)) {
      // Of many requests on their way, each would make it twice as long.
      if (until !== 0 && asked !== undefined) this.until = Math.max(until, now + asked);
    } else {
      const isRepeated = until !== 0 || now - this.#endedAt < RAMP_MS;
      this.#inRow = isRepeated && this.reason === cause.reason ? this.#inRow + 1 : 0;
      const [first, longest] = BACKOFF[cause.reason];
      const own = Math.min(first * 2 ** this.#inRow, longest, limits.longestMs);
      this.#cool(cause, now + (asked ?? own), now);
      if (until === 0) return 'began';
    }
    return this.until > until ? 'longer' : undefined;
  }

  /** The vendor has answered a request that set out then. @returns whether this ended a cooldown */
  answered(set: number, now: number): boolean {
    if (this.until === 0 || this.hasChangedSince(set)) return false;
    this.end(now);
    return true;
  }

  /** Another replica has seen it begin, or last longer. */
  adopt(cause: Cause, until: number, now: number): void {
    if (until >= this.until + MIN_NEWS_MS) this.#cool(cause, until, now);
  }

  /** The vendor has answered, here or another replica. */
  end(now: number): void {
    if (this.until === 0) return;
    this.until = 0;
    this.#prober = undefined;
    this.#endedAt = now;
    this.#changed = ++changes;
  }

  #cool({ reason, status }: Cause, until: number, now: number): void {
    if (this.until === 0) this.since = now;
    this.until = until;
    this.reason = reason;
    this.status = status;
    this.#changed = ++changes;
  }
}

const SECONDS = 30;
const MAX_IN_ROW = 5;
const MIN_COUNTED = 10;

/** When something happened last, by whom, and when by anybody else. */
class LastTimes {
  #owner = '';
  #at = Number.NEGATIVE_INFINITY;
  #othersAt = Number.NEGATIVE_INFINITY;

  note(owner: string, now: number): void {
    if (owner !== this.#owner) {
      this.#othersAt = this.#at;
      this.#owner = owner;
    }
    this.#at = now;
  }

  /** Within the last half minute, by somebody else. */
  byOthersThan(owner: string, now: number): boolean {
    const at = owner === this.#owner ? this.#othersAt : this.#at;
    return now - at < SECONDS * 1000;
  }
}

/** Answers and failures of the last half minute, by whole seconds. */
export class FailureWindow {
  // For each second the number of all, then the number of failures.
  readonly #counts = new Uint32Array(2 * SECONDS);
  #second = 0;
  #inRow = 0;
  readonly #answers = new LastTimes();
  readonly #failures = new LastTimes();
  #all = 0;
  #failed = 0;
  /** When the last answer came. */
  answeredAt = Number.NEGATIVE_INFINITY;

  answered(now: number, owner = ''): void {
    this.#inRow = 0;
    this.#answers.note(owner, now);
    this.answeredAt = now;
    this.#count(now, 0);
  }

  /**
   * @returns whether there are too many: 5 in a row, or more than half of at least 10 in 30 seconds. The failures of one
   * owner alone do not count while others get answers: the server may fail at that owner's requests only.
   */
  failed(now: number, owner = ''): boolean {
    this.#inRow++;
    this.#count(now, 1);
    this.#failures.note(owner, now);
    const isAlone = !this.#failures.byOthersThan(owner, now);
    if (isAlone && this.#answers.byOthersThan(owner, now)) return false;
    return this.#inRow >= MAX_IN_ROW || (this.#all >= MIN_COUNTED && this.#failed * 2 > this.#all);
  }

  clear(): void {
    this.#counts.fill(0);
    this.#inRow = 0;
    this.#all = 0;
    this.#failed = 0;
  }

  #count(now: number, failures: number): void {
    const second = Math.floor(now / 1000);
    if (second !== this.#second) this.#forgetBefore(second);
    const at = 2 * (second % SECONDS);
    this.#counts[at]!++;
    this.#counts[at + 1]! += failures;
    this.#all++;
    this.#failed += failures;
  }

  #forgetBefore(second: number): void {
    const first = Math.max(this.#second + 1, second - SECONDS + 1);
    for (let one = first; one <= second; one++) {
      const at = 2 * (one % SECONDS);
      this.#all -= this.#counts[at]!;
      this.#failed -= this.#counts[at + 1]!;
      this.#counts.fill(0, at, at + 2);
    }
    this.#second = second;
  }
}
