/** Rates and slots in memory. A rate: GCRA with a burst of one period's amount, and refunds that never let more through than the rate. */

import type { LimitState, LimitUsage, RateLimit, SlotsLimit } from './limits.ts';

/** More units than any request has; keeps every product within the safe integers. */
const MAX_UNITS = 1e11;
const MAX_DEBT = 2 ** 52;
/** Refunds are summed up to here, and then from 0 again. */
const WRAP = 2 ** 52;

/** A reservation at a rate. */
export interface RateHold {
  readonly units: number;
  /** Monotonic milliseconds. */
  readonly admittedAt: number;
  /** The debt that it found: its turn begins so long after `admittedAt`. */
  readonly offset: number;
  /** The sum of refunds then. */
  readonly refunded: number;
  readonly wraps: number;
}

/**
 * GCRA without its absolute time: the debt is `tat − now`, counted in units × milliseconds, so that everything is
 * an integer. `amount` of it drains with each millisecond, and a unit adds `periodMs`.
 */
export class RateState implements LimitState {
  isDropped = false;
  /** Tickets that are not settled. */
  open = 0;
  #at: number;
  #debt = 0;
  #refunded = 0;
  #wraps = 0;

  constructor(
    public limit: RateLimit,
    now: number,
  ) {
    this.#at = now;
  }

  /** The debt now, in units × milliseconds. */
  debt(now: number): number {
    const passed = now - this.#at;
    if (passed > 0) {
      this.#at = now;
      const { amount } = this.limit;
      // The product alone could leave the safe range.
      this.#debt = passed >= this.#debt / amount ? 0 : this.#debt - passed * amount;
    }
    return this.#debt;
  }

  /** Takes up what was written down: `debt` as it was `passed` milliseconds ago. */
  restore(debt: number, passed: number, now: number): void {
    this.#debt = Math.min(MAX_DEBT, Math.max(0, debt));
    this.#at = now - Math.max(0, passed);
    this.debt(now);
  }

  /** Milliseconds until so many units are admitted; 0: now. Infinity: more than a burst. */
  wait(units: number, now: number): number {
    const { amount, periodMs } = this.limit;
    const asked = Math.max(1, units);
    if (asked > amount) return Number.POSITIVE_INFINITY;
    const over = this.debt(now) + asked * periodMs - amount * periodMs;
    return over <= 0 ? 0 : Math.ceil(over / amount);
  }

  take(units: number, now: number): RateHold {
    this.open++;
    const offset = this.debt(now);
    this.owe(units, now);
    return {
      units,
      admittedAt: this.#at,
      offset,
      refunded: this.#refunded,
      wraps: this.#wraps,
    };
  }

  /**
   * Settles the actual amount. If it is larger, the difference is a debt, and later requests wait for it. If it is
   * smaller, the difference is refunded.
   */
  settle(hold: RateHold, used: number, now: number): void {
    this.open--;
    if (used >= hold.units) {
      this.owe(used - hold.units, now);
      return;
    }
    this.refund(hold, used, now);
  }

  /**
   * Units that were not used come back as far as the rate still holds them: the turn of the reservation began at
   * `s' = max(admittedAt, start − refunds since)`, and at most `s' + nT − max(now, s' + aT)` comes back. A larger refund
   * would fill a bucket that has drained meanwhile.
   */
  refund(hold: RateHold, used: number, now: number): void {
    const debt = this.debt(now);
    const { amount, periodMs } = this.limit;
    const since = (this.#wraps - hold.wraps) * WRAP + (this.#refunded - hold.refunded);
    const start = Math.max(0, hold.offset - since);
    const end = start + hold.units * periodMs;
    const passed = this.#at - hold.admittedAt;
    const drained = passed >= end / amount ? end : passed * amount;
    const refund = Math.min(debt, end - Math.max(drained, start + used * periodMs));
    if (refund <= 0) return;
    this.#debt = debt - refund;
    this.#refunded += refund;
    if (this.#refunded < WRAP) return;
    this.#refunded -= WRAP;
    this.#wraps++;
  }

  remaining(now: number): number {
    const { amount, periodMs } = this.limit;
    return Math.max(0, Math.floor((amount * periodMs - this.debt(now)) / periodMs));
  }

  usage(now: number): LimitUsage {
    const { limit } = this;
    const debt = this.debt(now);
    return {
      limit,
      used: Math.ceil(debt / limit.periodMs),
      held: 0,
      remaining: this.remaining(now),
      resetMs: Math.ceil(debt / limit.amount),
    };
  }

  /** Units that count whether they fit or not. */
  owe(units: number, now: number): void {
    this.debt(now);
    const more = Math.min(units, MAX_UNITS) * this.limit.periodMs;
    this.#debt = Math.min(MAX_DEBT, this.#debt + more);
  }

  isAsNew(now: number): boolean {
    return this.open === 0 && this.debt(now) === 0;
  }
}

/** The `retry-after` of a refusal: when a stream will end is not known. */
const LOOK_AGAIN_MS = 1000;

/** Slots: so many at a time. */
export class SlotsState implements LimitState {
  isDropped = false;
  /** Held by this process, and by its workers. */
  held = 0;
  /** Held by a process that hands over to this one. */
  others = 0;

  constructor(public limit: SlotsLimit) {}

  wait(slots: number): number {
    if (Math.max(1, slots) > this.limit.amount) return Number.POSITIVE_INFINITY;
    return Math.max(1, slots) <= this.remaining() ? 0 : LOOK_AGAIN_MS;
  }

  take(slots: number): undefined {
    this.held += slots;
  }

  settle(_hold: undefined, _used: number, _now: number, reserved: number): void {
    this.held -= reserved;
  }

  remaining(): number {
    return Math.max(0, this.limit.amount - this.held - this.others);
  }

  usage(): LimitUsage {
    const used = this.held + this.others;
    const remaining = this.remaining();
    return { limit: this.limit, used, held: used, remaining, resetMs: undefined };
  }

  isAsNew(): boolean {
    return this.held === 0;
  }
}
