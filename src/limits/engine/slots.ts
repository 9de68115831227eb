/** Slots: so many at a time. */

import type { SlotsLaw, Standing } from '../limits.ts';

/** The `retry-after` of a refusal: when a stream will end is not known. */
const LOOK_AGAIN_MS = 1000;

export class SlotsState {
  law: SlotsLaw;
  /** Held by this process. */
  held = 0;
  /** Held by a process that hands over to this one. */
  others = 0;

  constructor(law: SlotsLaw) {
    this.law = law;
  }

  /** Milliseconds until it is worth asking again; 0: admitted. Infinity: never. */
  wait(slots: number): number {
    const asked = Math.max(1, slots);
    if (asked > this.law.amount) return Number.POSITIVE_INFINITY;
    return this.held + this.others + asked <= this.law.amount ? 0 : LOOK_AGAIN_MS;
  }

  standing(): Standing {
    const used = this.held + this.others;
    const remaining = Math.max(0, this.law.amount - used);
    return { law: this.law, used, held: used, remaining, resetMs: undefined };
  }
}
