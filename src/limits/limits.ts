/** Limits admit the charges of a request before it runs, and count its real use afterwards. */

/**
 * - `rate`: GCRA, refills evenly over `periodMs` (requests, tokens)
 * - `window`: so much in one calendar period (nano-USD)
 * - `slots`: so many at a time (exchanges)
 *
 * Two limits with the same id are the same limit; the newest definition counts.
 */
export type Limit = RateLimit | WindowLimit | SlotsLimit;

export interface RateLimit {
  readonly kind: 'rate';
  readonly id: string;
  readonly unit: 'requests' | 'tokens';
  /** Units for each period; also the most that is admitted at once. */
  readonly amount: number;
  readonly periodMs: number;
}

export type WindowPeriod = 'minute' | 'hour' | 'day' | 'week' | 'month' | 'total';

export interface WindowLimit {
  readonly kind: 'window';
  readonly id: string;
  readonly unit: 'nano_usd';
  readonly amount: number;
  readonly per: WindowPeriod;
  readonly timeZone: string;
  /** Units, ascending: each is reported once a period when so much is spent. */
  readonly marks?: readonly number[];
  /** For reports. */
  readonly name?: string;
  /** Where reports are sent. */
  readonly webhook?: string;
}

export interface SlotsLimit {
  readonly kind: 'slots';
  readonly id: string;
  readonly unit: 'exchanges';
  readonly amount: number;
  /** Name of the budget whose tries it counts; if omitted, it counts the exchanges of a key. */
  readonly name?: string;
}

export interface Charge {
  readonly limit: Limit;
  /** Units of the limit, a non-negative integer. 0 takes nothing, and is admitted where one unit would be. */
  readonly amount: number;
  /** It takes nothing and is not settled: it only refuses where one unit would be refused. */
  readonly checks?: boolean;
  /** It counts and never refuses: a budget that only warns, or whose route the exchange takes already. */
  readonly soft?: boolean;
  /**
   * It settles what was counted at this time (milliseconds since 1970). If that was too much, it is settled with less than
   * 0, and a window whose period has not ended since gets the difference back.
   */
  readonly countedAt?: number | undefined;
}

export interface Clock {
  /** Milliseconds since 1970 by the system clock, which can be changed. Calendar periods use it. */
  wall(): number;
  /** Milliseconds of a monotonic clock, which changes of the system time do not affect. Rates use it. */
  monotonic(): number;
}

/** The part of a limit that a request holds until it ends. */
export type Hold = object | undefined;

/** `now` is monotonic, `wall` the time of day. */
export interface LimitState {
  limit: Limit;
  /** It has left the memory: another one counts from now on. */
  isDropped: boolean;
  /**
   * Milliseconds until so many units can be admitted, as far as it is known here; 0: now; Infinity: never; or -1: it must be
   * asked for. 0 units are admitted where one would be.
   */
  wait(units: number, now: number, wall: number): number;
  /** Takes them, whether they fit or not. */
  take(units: number, now: number, wall: number, soft: boolean): Hold;
  settle(hold: Hold, used: number, now: number, reserved: number): void;
  /** Whether a count of this time belongs to the period of this hold. Left out: nothing comes back late. */
  isSamePeriod?(hold: Hold, wall: number): boolean;
  remaining(now: number, wall: number): number;
  /** @param most the upper bound of what remains, where it is known */
  usage(now: number, wall: number, most?: number): LimitUsage;
  /** Nothing changes for anybody if it leaves the memory now. */
  isAsNew(now: number, wall: number): boolean;
}

export const MAX_UNITS = Number.MAX_SAFE_INTEGER;

/** A number of units. Another value counts as reserved, so that a mistake makes nothing free. */
export function wholeUnits(used: number | undefined, reserved: number): number {
  if (used === undefined || Number.isNaN(used)) return reserved;
  return Math.min(MAX_UNITS, Math.max(0, Math.ceil(used)));
}

/** An admission. It is settled or abandoned once; later calls do nothing. */
export class Ticket {
  readonly admitted = true;
  #isOver = false;

  /** All lists are in the order of the charges. */
  constructor(
    private readonly clock: Clock,
    private readonly charges: readonly Charge[],
    private readonly amounts: readonly number[],
    private readonly states: readonly LimitState[],
    private readonly holds: readonly Hold[],
  ) {}

  /** @param used in the order of the charges; left out: as reserved, as is a value that is not a number */
  settle(used: readonly number[] = this.amounts): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const now = this.clock.monotonic();
    for (let i = 0; i < this.states.length; i++) {
      const { checks, countedAt } = this.charges[i]!;
      const hold = this.holds[i];
      if (checks === true && hold === undefined) continue;
      const state = this.states[i]!;
      const amount = this.amounts[i]!;
      const units = used[i]!;
      const comesBack =
        units < 0 && countedAt !== undefined && state.isSamePeriod?.(hold, countedAt) === true;
      state.settle(
        hold,
        comesBack ? -wholeUnits(-units, 0) : wholeUnits(units, amount),
        now,
        amount,
      );
    }
  }

  /** Nothing was done: everything is given back. */
  abandon(): void {
    this.settle(this.amounts.map(() => 0));
  }

  /** Usage of each limit, in the order of the charges. */
  usages(): readonly LimitUsage[] {
    return usagesOf(this.clock, this.states);
  }

  /** An answer's headers need no more: usage of each rate, and of the budget of which least is left. */
  told(): readonly LimitUsage[] {
    const wall = this.clock.wall();
    const now = this.clock.monotonic();
    const usages: LimitUsage[] = [];
    let budget: LimitState | undefined;
    let least = Number.POSITIVE_INFINITY;
    for (const state of this.states) {
      if (state.limit.kind === 'rate') usages.push(state.usage(now, wall));
      else if (state.limit.kind === 'window') {
        const remaining = state.remaining(now, wall);
        if (remaining < least) budget = state;
        least = Math.min(least, remaining);
      }
    }
    if (budget !== undefined) usages.push(budget.usage(now, wall));
    return usages;
  }
}

export function usagesOf(clock: Clock, states: readonly LimitState[]): readonly LimitUsage[] {
  const wall = clock.wall();
  const now = clock.monotonic();
  return states.map((state) => state.usage(now, wall));
}

export interface Refusal {
  readonly admitted: false;
  /** The limit that refuses; with several, the one that refuses longest. */
  readonly limit: Limit;
  /** Milliseconds until the same charge could be admitted; undefined: never (it is larger than the limit's amount). */
  readonly retryAfterMs: number | undefined;
  readonly usage: LimitUsage;
  /** Units that were asked for. */
  readonly asked: number;
  /** Every limit that refuses, in the order of the charges. */
  readonly refusedBy: readonly Limit[];
  /** As {@link Ticket.usages}. */
  usages(): readonly LimitUsage[];
}

export interface LimitUsage {
  readonly limit: Limit;
  /** Units that are used or reserved in this period. */
  readonly used: number;
  /** The part of `used` that requests which have not ended have reserved. */
  readonly held: number;
  readonly remaining: number;
  /** Milliseconds until all of it is free again; undefined: never (`total`), or slots. */
  readonly resetMs: number | undefined;
  /** Beginning of a window's next period, in milliseconds since 1970; left out: never, or no window. */
  readonly resetAt?: number;
}

export type Admission = Ticket | Refusal;

/**
 * All or nothing, exact under concurrency; each limit at most once in a call. A promise only where another process
 * must be asked; it is rejected with a GatewayError where that process does not answer.
 */
export interface Limits {
  /**
   * @param charges the same list each time finds its limits without a search
   * @param amounts in place of those of the charges, in their order
   * @param tentative where it does not fit, less is asked for: a refusal does not say that a budget is used up
   */
  admit(
    charges: readonly Charge[],
    amounts?: readonly number[],
    tentative?: boolean,
  ): Admission | Promise<Admission>;
  usage(limits: readonly Limit[]): readonly LimitUsage[] | Promise<readonly LimitUsage[]>;
}

/** Expected or real use of a try. `nanoUsd` undefined: no price is known. */
export interface TryAmounts {
  readonly tokens: number;
  readonly nanoUsd: number | undefined;
  /** The greatest cost that the request allows; by default `nanoUsd`. */
  readonly mostNanoUsd?: number | undefined;
  /** Answers that it asks for at once; left out: one. */
  readonly choices?: number | undefined;
  /** It is owed already: it counts, and is never refused. */
  readonly owed?: boolean;
  /** It corrects a count of this time, so it may be settled with less than 0. */
  readonly countedAt?: number | undefined;
}
