/** Limits: laws that must admit what is asked before it is done, and what it really was afterwards. */

/**
 * - `rate`: GCRA, refills evenly over `periodMs` (requests, tokens)
 * - `window`: so much in one calendar period (nano-USD, tokens)
 * - `slots`: so many at a time (streams)
 *
 * Two laws with the same id are the same law; the newest definition counts.
 */
export type Law =
  | {
      readonly kind: 'rate';
      readonly id: string;
      readonly unit: 'requests' | 'tokens';
      /** Units for each period. */
      readonly amount: number;
      readonly periodMs: number;
    }
  | {
      readonly kind: 'window';
      readonly id: string;
      readonly unit: 'nano_usd' | 'tokens';
      readonly amount: number;
      readonly per: 'minute' | 'hour' | 'day' | 'week' | 'month' | 'total';
      readonly timeZone: string;
    }
  | {
      readonly kind: 'slots';
      readonly id: string;
      readonly unit: 'streams';
      readonly amount: number;
    };

/** Units of the law, a non-negative integer. */
export interface Charge {
  readonly law: Law;
  readonly amount: number;
}

/** What was admitted. One of the methods is called, once; later calls do nothing. */
export interface Ticket {
  readonly admitted: true;
  /** What it really was, in the order of the charges. */
  settle(used: readonly number[]): void;
  /** Nothing was done: everything is given back. */
  abandon(): void;
}

export interface Refusal {
  readonly admitted: false;
  /** The law that refuses; with several, the one that refuses longest. */
  readonly law: Law;
  /** Milliseconds until the same charge could be admitted; undefined: never (it is larger than the law's amount). */
  readonly retryAfterMs: number | undefined;
  readonly standing: Standing;
}

/** How a law stands now. */
export interface Standing {
  readonly law: Law;
  /** Units that are used or reserved in this period. */
  readonly used: number;
  readonly remaining: number;
  /** Milliseconds until all of it is free again; undefined: never (`total`), or slots. */
  readonly resetMs: number | undefined;
}

export type Admission = Ticket | Refusal;

/** All or nothing, exact under concurrency. A promise only where another process must be asked. */
export interface Limits {
  admit(charges: readonly Charge[]): Admission | Promise<Admission>;
  standing(laws: readonly Law[]): readonly Standing[] | Promise<readonly Standing[]>;
}
