/** Limits: laws that must admit what is asked before it is done, and what it really was afterwards. */

/**
 * - `rate`: GCRA, refills evenly over `periodMs` (requests, tokens)
 * - `window`: so much in one calendar period (nano-USD)
 * - `slots`: so many at a time (exchanges)
 *
 * Two laws with the same id are the same law; the newest definition counts.
 */
export type Law = RateLaw | WindowLaw | SlotsLaw;

export interface RateLaw {
  readonly kind: 'rate';
  readonly id: string;
  readonly unit: 'requests' | 'tokens';
  /** Units for each period; also the most that is admitted at once. */
  readonly amount: number;
  readonly periodMs: number;
}

export type WindowPeriod = 'minute' | 'hour' | 'day' | 'week' | 'month' | 'total';

export interface WindowLaw {
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

export interface SlotsLaw {
  readonly kind: 'slots';
  readonly id: string;
  readonly unit: 'exchanges';
  readonly amount: number;
  /** Of the budget whose tries it counts; left out: the exchanges of a key. */
  readonly name?: string;
}

/** Units of the law, a non-negative integer. 0 takes nothing, and is admitted where one unit would be. */
export interface Charge {
  readonly law: Law;
  readonly amount: number;
  /** It counts and never refuses: a budget that only warns, or one whose route the exchange takes already. */
  readonly soft?: boolean;
  /** Where it does not fit, less is asked for: a refusal of it does not say that a budget is used up. */
  readonly tentative?: boolean;
}

/** What was admitted. One of the methods is called, once; later calls do nothing. */
export interface Ticket {
  readonly admitted: true;
  /** What it really was, in the order of the charges. What is not a number counts as it was reserved. */
  settle(used: readonly number[]): void;
  /** Nothing was done: everything is given back. */
  abandon(): void;
  /**
   * How the laws stand, in the order of the charges; in a worker as of the admission, less what was abandoned.
   * @param count of the first so many charges alone; left out: of all
   */
  standings(count?: number): readonly Standing[];
}

export interface Refusal {
  readonly admitted: false;
  /** The law that refuses; with several, the one that refuses longest. */
  readonly law: Law;
  /** Milliseconds until the same charge could be admitted; undefined: never (it is larger than the law's amount). */
  readonly retryAfterMs: number | undefined;
  readonly standing: Standing;
  /** What the law was asked for. */
  readonly asked: number;
  /** Every law that refuses, in the order of the charges. */
  readonly refusedBy: readonly Law[];
  /** As {@link Ticket.standings}; in a worker as of the refusal. */
  standings(): readonly Standing[];
}

/** How a law stands now. */
export interface Standing {
  readonly law: Law;
  /** Units that are used or reserved in this period. */
  readonly used: number;
  /** Of these, what is reserved by requests that have not ended. */
  readonly held: number;
  readonly remaining: number;
  /** Milliseconds until all of it is free again; undefined: never (`total`), or slots. */
  readonly resetMs: number | undefined;
  /** Of a window: when its next period begins, in milliseconds since 1970; left out: never, or no window. */
  readonly resetAt?: number;
}

export type Admission = Ticket | Refusal;

/**
 * All or nothing, exact under concurrency; each law at most once in a call. A promise only where another process
 * must be asked; it is rejected with a GatewayError where that process does not answer.
 */
export interface Limits {
  admit(charges: readonly Charge[]): Admission | Promise<Admission>;
  standing(laws: readonly Law[]): readonly Standing[] | Promise<readonly Standing[]>;
}

/** The limits of the process that holds them: it asks no other. */
export interface OwnLimits extends Limits {
  admit(charges: readonly Charge[]): Admission;
  standing(laws: readonly Law[]): readonly Standing[];
}
