/** What a replica has taken of one rate or of one law of slots, used or not, and what the cache is to be told of it. */

import type { RateLaw, SlotsLaw, Standing } from '../limits.ts';

/** What is taken ahead of use is for so long. */
export const AHEAD_MS = 2000;

export type CountedLaw = RateLaw | SlotsLaw;

/** Units of a rate that were taken together. */
interface Chunk {
  readonly taken: number;
  left: number;
  /** As the cache answered them. */
  readonly at: number;
  readonly offset: number;
  readonly refunded: number;
  /** Monotonic milliseconds. */
  readonly until: number;
}

/** Changes to send to the cache with the next call. */
interface News {
  readonly debt: number;
  readonly refunds: readonly Refund[];
  readonly given: number;
}

/** A part of a chunk, given back or settled. */
type Refund = readonly [units: number, used: number, at: number, offset: number, refunded: number];

export interface Slice {
  readonly chunk: Chunk;
  /** Units of the chunk that went before. */
  readonly before: number;
}

/** What a request was granted and does not use yet: other answers that come meanwhile leave it alone. */
export interface Held {
  readonly slice: Slice;
  readonly units: number;
}

export class LawState {
  law: CountedLaw;
  chunk: Chunk | undefined;
  /** Slots that this replica has in the cache, used or not. */
  leased = 0;
  used = 0;
  /** Calls under way that may change the slots. */
  calls = 0;
  /** For the next call. */
  debt = 0;
  given = 0;
  #refunds: Refund[] = [];
  /** Units of the refunds. */
  #refunding = 0;
  /** As last heard. */
  remaining: number;
  refusedAt = Number.NEGATIVE_INFINITY;
  refusedUnits = 0;
  refusedWait = 0;
  lastUse = 0;
  /** Units used in this span and in the one before, for what is taken ahead. */
  spanStart = 0;
  spanUnits = 0;
  lastSpanUnits = 0;

  constructor(law: CountedLaw) {
    this.law = law;
    this.remaining = law.amount;
  }

  get hasNews(): boolean {
    return this.debt > 0 || this.#refunds.length > 0 || this.given > 0;
  }

  takeNews(): News {
    const { debt, given } = this;
    const refunds = this.#refunds;
    this.debt = 0;
    this.given = 0;
    this.#refunds = [];
    this.#refunding = 0;
    return { debt, refunds, given };
  }

  /** They could not be told. If the answer alone was lost, a debt counts twice: never too little. */
  tellAgain({ debt, refunds, given }: News): void {
    this.debt += debt;
    this.given += given;
    if (refunds.length < 1000) for (const refund of refunds) this.#giveBack(refund);
  }

  #giveBack(refund: Refund): void {
    this.#refunds.push(refund);
    this.#refunding += refund[0] - refund[1];
  }

  count(units: number, now: number): void {
    this.lastUse = now;
    const passed = now - this.spanStart;
    if (passed >= AHEAD_MS) {
      this.lastSpanUnits = passed >= 2 * AHEAD_MS ? 0 : this.spanUnits;
      this.spanUnits = 0;
      this.spanStart = now;
    }
    this.spanUnits += units;
  }

  /** What is worth having beyond the present need. */
  get ahead(): number {
    return Math.max(this.lastSpanUnits, this.spanUnits);
  }

  has(units: number, now: number): boolean {
    if (this.law.kind === 'slots') return this.leased - this.used >= units;
    const { chunk } = this;
    return chunk !== undefined && chunk.left >= units && now < chunk.until;
  }

  /** What is left of the chunk goes back. */
  dropChunk(): void {
    const { chunk } = this;
    this.chunk = undefined;
    if (chunk === undefined || chunk.left === 0) return;
    this.#giveBack(this.#refund({ chunk, before: chunk.taken - chunk.left }, chunk.left, 0));
    chunk.left = 0;
  }

  #refund({ chunk, before }: Slice, units: number, used: number): Refund {
    const { periodMs } = this.law as RateLaw;
    return [units, used, chunk.at, chunk.offset + before * periodMs, chunk.refunded];
  }

  settleRate(slice: Slice, units: number, used: number): void {
    if (used > units) this.debt += used - units;
    else if (used < units) this.#giveBack(this.#refund(slice, units, used));
  }

  /** @param most the upper bound of `remaining`: other answers may have arrived since the request was refused */
  standing(most = Number.POSITIVE_INFINITY): Standing {
    const { law } = this;
    const own =
      law.kind === 'slots'
        ? this.leased - this.used
        : (this.chunk?.left ?? 0) + this.#refunding - this.debt;
    const remaining = Math.max(0, Math.min(law.amount, this.remaining + own, most));
    const used = law.amount - remaining;
    return law.kind === 'slots'
      ? { law, used, held: used, remaining, resetMs: undefined }
      : { law, used, held: 0, remaining, resetMs: Math.ceil((used * law.periodMs) / law.amount) };
  }
}
