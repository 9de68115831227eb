/** Calendar periods in a time zone: where the minute, hour, day, week or month of an instant begins and ends. */

import { localTime } from '../lib/text/calendar.ts';
import type { WindowPeriod } from './limits.ts';

/** Milliseconds since 1970; the end is the beginning of the next period. */
export interface Bounds {
  readonly start: number;
  readonly end: number;
}

/** The only period of `total`. */
const ALWAYS: Bounds = { start: 0, end: Number.MAX_SAFE_INTEGER };

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/**
 * The first instant at which the zone's clocks show `local` or later. Where clocks go back, local times occur
 * twice, and the first counts; where they go forward over `local`, it is the moment of the change.
 */
function firstInstant(timeZone: string, local: number): number {
  const offset = (around: number) => localTime(timeZone, around) - around;
  // No zone is further from UTC than a day, and none changes twice within two days.
  const before = offset(local - 2 * DAY);
  const after = offset(local + 2 * DAY);
  const candidates = [local - before, local - after].toSorted((a, b) => a - b);
  const found = candidates.find((instant) => localTime(timeZone, instant) === local);
  if (found !== undefined) return found;
  let low = candidates[0]! - DAY;
  let high = candidates[1]! + DAY;
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (localTime(timeZone, middle) < local) low = middle;
    else high = middle;
  }
  return high;
}

/** The date on which the period of a local time begins, `add` periods later. */
function localStart(local: number, per: 'day' | 'week' | 'month', add: number): number {
  const date = new Date(local);
  const [year, month, day] = [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()];
  if (per === 'month') return Date.UTC(year, month + add, 1);
  if (per === 'day') return Date.UTC(year, month, day + add);
  // Weeks begin on Monday (ISO 8601).
  return Date.UTC(year, month, day - ((date.getUTCDay() + 6) % 7) + 7 * add);
}

function computed(instant: number, per: WindowPeriod, timeZone: string): Bounds {
  if (per === 'total') return ALWAYS;
  const local = localTime(timeZone, instant);
  if (per === 'minute' || per === 'hour') {
    const length = per === 'hour' ? HOUR : MINUTE;
    // The hour that clocks show twice is two hours.
    const start = instant - (((local % length) + length) % length);
    return { start, end: start + length };
  }
  // Where clocks go back over midnight, the instant may belong to the day that began already.
  for (let add = 0; ; add++) {
    const end = firstInstant(timeZone, localStart(local, per, add + 1));
    if (instant < end) return { start: firstInstant(timeZone, localStart(local, per, add)), end };
  }
}

// All limits of a zone and period share their bounds, which are asked for with every request.
const latest = new Map<string, Bounds>();

/**
 * The period that an instant belongs to.
 * @param timeZone an IANA name
 * @throws RangeError for a time zone that is not known
 */
export function boundsAt(instant: number, per: WindowPeriod, timeZone: string): Bounds {
  const key = `${per} ${timeZone}`;
  let bounds = latest.get(key);
  if (bounds === undefined || instant < bounds.start || instant >= bounds.end) {
    bounds = computed(instant, per, timeZone);
    latest.set(key, bounds);
  }
  return bounds;
}
