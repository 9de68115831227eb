/** Moments as people say them: how long ago, how long until. */

import { clock, day, several } from './format.ts';
import { t } from './language.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** `12 s`, `5 min`, `3 h 20 min`, `4 days`. @param ms not negative */
export function lasting(ms: number): string {
  if (ms < MINUTE) return `${Math.max(1, Math.round(ms / 1000))} s`;
  if (ms < HOUR) return `${Math.round(ms / MINUTE)} min`;
  if (ms < DAY) {
    const minutes = Math.round((ms % HOUR) / MINUTE);
    const hours = Math.floor(ms / HOUR);
    return minutes === 0 || hours > 9 ? `${hours} h` : `${hours} h ${minutes} min`;
  }
  const days = Math.round(ms / DAY);
  return several(days, 'day');
}

/** `2026-11-22 14:03`, in local time. */
export const minuteOf = (time: number): string => `${day(time)} ${clock(time).slice(0, 5)}`;

/** `5 min ago`, `in 3 h`, `just now`. */
export function fromNow(time: number, now = Date.now()): string {
  const ms = time - now;
  if (Math.abs(ms) < 5000) return t`just now`;
  return ms > 0 ? t`in ${lasting(ms)}` : t`${lasting(-ms)} ago`;
}
