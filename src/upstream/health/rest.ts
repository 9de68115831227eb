/** A rest: how long a key or a model of an upstream is not used after a failure, and how it is probed again. */

/**
 * - `rate_limit`: too many requests for a key and a model
 * - `overloaded`: the vendor has no capacity for a model, whichever key asks
 * - `key_refused`: the vendor does not accept the key, or does not allow it this
 * - `quota`: the key's plan or balance is used up
 * - `failures`: server errors, no connection, or no answer in time
 */
export type RestReason = 'rate_limit' | 'overloaded' | 'key_refused' | 'quota' | 'failures';

/** In the order of preference. */
export const AWAKE = 0;
/** The rest is over and not yet proved needless: one request may try. */
export const DUE = 1;
/** It rests, or another request is trying. */
export const RESTING = 2;
export type Standing = typeof AWAKE | typeof DUE | typeof RESTING;

/** After a rest the share of the traffic grows from nothing to all of it over this time. */
export const RAMP_MS = 10_000;

// The first rest and the longest one, each next one in a row being twice as long.
const BACKOFF: Readonly<Record<RestReason, readonly [number, number]>> = {
  rate_limit: [2000, 60_000],
  overloaded: [2000, 60_000],
  key_refused: [60_000, 3_600_000],
  quota: [60_000, 3_600_000],
  failures: [5000, 300_000],
};

/** What another replica tells takes time to arrive: a rest that is known is not made longer by that. */
const MIN_NEWS_MS = 250;

/** Why something is to rest. */
export interface Cause {
  readonly reason: RestReason;
  /** The HTTP status of the answer; 0: there was none. */
  readonly status: number;
  /** Milliseconds that the vendor asked for. */
  readonly askedMs?: number | undefined;
}

/** The longest rests, in milliseconds. */
export interface RestLimits {
  /** That a vendor can ask for. */
  readonly askedMs: number;
  /** Of any kind. */
  readonly longestMs: number;
}

/** A request, as far as a rest must tell it from others. */
export interface Prober {
  /** {@link changesSoFar} when it set out. */
  readonly set: number;
}

let changes = 0;
/** Grows with each start and end of a rest, so that an outdated report can be recognized. */
export const changesSoFar = (): number => changes;

/** The state of one thing that may rest. Times are milliseconds of the clock of its places. */
export class Rest {
  /** When it is due; 0: it does not rest. */
  until = 0;
  since = 0;
  reason: RestReason | undefined;
  status = 0;
  /** When the last rest ended. */
  #backAt = Number.NEGATIVE_INFINITY;
  #inRow = 0;
  #changed = 0;
  #prober: Prober | undefined;

  standing(now: number): Standing {
    if (this.until === 0) return AWAKE;
    return now >= this.until && this.#prober === undefined ? DUE : RESTING;
  }

  /** The share of its usual traffic that it gets: 1, or less for a while after a rest. */
  share(now: number): number {
    const passed = now - this.#backAt;
    return passed >= RAMP_MS ? 1 : Math.max(0, passed) / RAMP_MS;
  }

  get probing(): boolean {
    return this.#prober !== undefined;
  }

  /** Something has changed since this request set out: its end says nothing about the state of now. */
  isOldNews(request: Prober): boolean {
    return this.#changed > request.set;
  }

  /** The one request that may try, where it is due. Other requests see it resting until {@link release}. */
  claim(request: Prober, now: number): void {
    if (this.standing(now) === DUE) this.#prober = request;
  }

  release(request: Prober): void {
    if (this.#prober === request) this.#prober = undefined;
  }

  /** Begins a rest or makes one longer. Returns whether it was awake before. */
  begin(cause: Cause, request: Prober, now: number, limits: RestLimits): boolean {
    const asked = cause.askedMs === undefined ? undefined : Math.min(cause.askedMs, limits.askedMs);
    if (this.isOldNews(request)) {
      // Of many requests on their way, each would make the rest twice as long.
      if (this.until !== 0 && asked !== undefined) this.until = Math.max(this.until, now + asked);
      return false;
    }
    const wasAwake = this.until === 0;
    const again = this.reason === cause.reason && (!wasAwake || now - this.#backAt < RAMP_MS);
    this.#inRow = again ? this.#inRow + 1 : 0;
    const [first, longest] = BACKOFF[cause.reason];
    const own = Math.min(first * 2 ** this.#inRow, longest, limits.longestMs);
    if (wasAwake) this.since = now;
    this.until = now + (asked ?? own);
    this.reason = cause.reason;
    this.status = cause.status;
    this.#changed = ++changes;
    return wasAwake;
  }

  /** Another replica has seen it begin, or last longer: it rests here, too. Returns whether that is news. */
  adopt({ reason, status }: Cause, until: number, now: number): boolean {
    if (until < this.until + MIN_NEWS_MS) return false;
    if (this.until === 0) this.since = now;
    this.until = until;
    this.reason = reason;
    this.status = status;
    this.#changed = ++changes;
    return true;
  }

  /** Another replica has had an answer. */
  wake(now: number): void {
    if (this.until === 0) return;
    this.until = 0;
    this.#prober = undefined;
    this.#backAt = now;
    this.#changed = ++changes;
  }

  /** The vendor answered. Returns whether this ended a rest. */
  end(request: Prober, now: number): boolean {
    if (this.until === 0 || this.isOldNews(request)) return false;
    this.until = 0;
    this.#prober = undefined;
    this.#backAt = now;
    this.#changed = ++changes;
    return true;
  }
}
