/** A window: so much in one calendar period, spent and reserved, with a part that is drawn from the file ahead of use. */

import type { Standing, WindowLaw } from '../limits.ts';
import { boundsAt } from './calendar.ts';

/** One period of a law, as this process counts it. */
export class Period {
  readonly id: string;
  readonly start: number;
  readonly end: number;
  /** Settled by this process. */
  spent = 0;
  /** Reserved by requests of this process that have not ended. */
  held = 0;
  /** What the file counts for this process: all that is used, and a part that is not used yet. */
  drawn: number;
  /** What the file counts for others: processes before this one, or beside it. */
  others = 0;
  /** Tickets that are not settled. */
  open = 0;
  /** The highest mark that is reported, in units. */
  reported = 0;
  /** Monotonic milliseconds. */
  lastUse = 0;
  lastRefresh = Number.NEGATIVE_INFINITY;

  /** @param drawn 0 where a file is kept; else all there can be */
  constructor(id: string, start: number, end: number, drawn: number) {
    this.id = id;
    this.start = start;
    this.end = end;
    this.drawn = drawn;
  }

  get used(): number {
    return this.spent + this.held;
  }
}

const within = (period: Period, instant: number) => instant >= period.start && instant < period.end;

export class WindowState {
  law: WindowLaw;
  readonly #drawn: number;
  #current: Period | undefined;
  /** The period before: a clock that is set back finds it as it was. */
  #other: Period | undefined;

  constructor(law: WindowLaw, drawn: number) {
    this.law = law;
    this.#drawn = drawn;
  }

  /** The period of an instant. Every period has its own count, which it keeps when the clock is set back. */
  at(instant: number): Period {
    const current = this.#current;
    if (current !== undefined && within(current, instant)) return current;
    const other = this.#other;
    this.#other = current;
    if (other !== undefined && within(other, instant)) this.#current = other;
    else {
      const { id, per, timeZone } = this.law;
      const { start, end } = boundsAt(instant, per, timeZone);
      this.#current = new Period(id, start, end, this.#drawn);
    }
    return this.#current!;
  }

  /** The periods in memory. */
  get periods(): readonly Period[] {
    return [this.#current, this.#other].filter((one) => one !== undefined);
  }

  /** Milliseconds until so much is admitted; 0: now. Infinity: never. */
  wait(units: number, instant: number): number {
    const period = this.at(instant);
    const asked = Math.max(1, units);
    const { amount, per } = this.law;
    if (asked > amount) return Number.POSITIVE_INFINITY;
    if (period.others + period.used + asked <= amount) return 0;
    return per === 'total' ? Number.POSITIVE_INFINITY : period.end - instant;
  }

  standing(instant: number): Standing {
    const { others, used, held, end } = this.at(instant);
    return windowStanding(this.law, others + used, held, end, instant);
  }
}

/** How a window stands that ends at `end`. A lease may be asked after that: the wait is over then. */
export function windowStanding(
  law: WindowLaw,
  used: number,
  held: number,
  end: number,
  instant: number,
): Standing {
  const remaining = Math.max(0, law.amount - used);
  if (law.per === 'total') return { law, used, held, remaining, resetMs: undefined };
  return { law, used, held, remaining, resetMs: Math.max(0, end - instant), resetAt: end };
}
