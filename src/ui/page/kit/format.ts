/** Formats numbers, times, sizes and amounts briefly, the same in every language. */

import { counted, t } from './language.ts';

export { bytesText as bytes } from '../../../lib/text/amounts.ts';

const two = (value: number) => String(value).padStart(2, '0');

/** `2026-11-22`, in local time. */
export function day(time: number): string {
  const date = new Date(time);
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

/** `14:03:09`, in local time. */
export function clock(time: number): string {
  const date = new Date(time);
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

/** `14:03:09.217`, with the date where it is not today. */
export function moment(time: number, now = Date.now()): string {
  const fine = `${clock(time)}.${String(new Date(time).getMilliseconds()).padStart(3, '0')}`;
  return day(time) === day(now) ? fine : `${day(time)} ${fine}`;
}

/** `0.4 ms`, `812 ms`, `4.31 s`, `2 min 05 s`; `–` when unknown. */
export function millis(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return '–';
  if (ms < 10) return `${+ms.toFixed(1)} ms`;
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(ms < 9995 ? 2 : 1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${two(seconds % 60)} s`;
  return `${Math.floor(seconds / 3600)} h ${two(Math.floor(seconds / 60) % 60)} min`;
}

/** `12 345`, with a thin space; `–` when unknown. */
export function count(value: number | null | undefined): string {
  if (value === null || value === undefined) return '–';
  return String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, '\u202f');
}

/** `940`, `12.3k`, `4.1M`. */
export const short = (value: number | null | undefined): string => sizeOf(value, 1);

function sizeOf(value: number | null | undefined, decimals: number): string {
  if (value === null || value === undefined) return '–';
  if (Math.abs(value) < 1000) return String(+value.toFixed(value < 10 ? 2 : 0));
  const [scaled, unit] =
    value < 999_500
      ? [value / 1e3, 'k']
      : value < 9.995e8
        ? [value / 1e6, 'M']
        : [value / 1e9, 'G'];
  return `${scaled < 99.95 ? +scaled.toFixed(decimals) : Math.round(scaled)}${unit}`;
}

/** `62 %` of 0.62. */
export function percent(rate: number): string {
  if (rate > 0 && rate < 0.0005) return '<0.1 %';
  return `${rate > 0 && rate < 0.1 ? (rate * 100).toFixed(1) : Math.round(rate * 100)} %`;
}

/** `1 hop`, `3 hops`. */
export const several = (value: number, one: string, many = `${one}s`): string =>
  counted(value, count(value), one, many);

/** `maxTokens` as `max tokens`. */
export const worded = (name: string): string =>
  name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

/** `$12.40`, `$1235`, `$0.0020`, `$0.00031`, `$0`: four decimals below ten cents, two digits of what is less; `–` where there is no price. */
export function usd(amount: number | null): string {
  if (amount === null) return '–';
  const size = Math.abs(amount);
  const sign = amount < 0 ? '−' : '';
  if (size === 0) return '$0';
  if (size < 1e-6) return `${sign}<$0.000001`;
  if (size < 0.00095) return `${sign}$${size.toPrecision(2)}`;
  return `${sign}$${size.toFixed(size < 0.1 ? 4 : size < 100 ? 2 : 0)}`;
}

/** An amount among others in a column: as many decimals as they have. */
export const usdInColumn = (amount: number | null): string => {
  if (amount === null || amount === 0 || amount >= 0.00095) return usd(amount);
  return amount < 0.0001 ? '<$0.0001' : `$${amount.toFixed(4)}`;
};

/** What is on an axis is round, and has all its digits: `$0.15`, `1.25M`, `0.75 ms`. */
const ON_AXIS = new Map<unknown, (value: number) => string>([
  [usd, (amount) => `$${Number(amount.toPrecision(3))}`],
  [short, (value) => sizeOf(value, 2)],
  [millis, (ms) => (ms < 10 ? `${+ms.toFixed(2)} ms` : millis(ms))],
]);
export const onAxis = (format: (value: number) => string) => ON_AXIS.get(format) ?? format;

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** `12 s`, `5 min`, `3 h 20 min`, `4 days`. @param ms not negative */
export function lasting(ms: number): string {
  if (ms < MINUTE) return t`${Math.max(1, Math.round(ms / 1000))} s`;
  if (ms < HOUR) return t`${Math.round(ms / MINUTE)} min`;
  if (ms < DAY) {
    const minutes = Math.round((ms % HOUR) / MINUTE);
    const hours = Math.floor(ms / HOUR);
    return minutes === 0 || hours > 9 ? t`${hours} h` : t`${hours} h ${minutes} min`;
  }
  const days = Math.round(ms / DAY);
  return several(days, 'day');
}

/** `2026-11-22 14:03`, in local time. */
export const minuteOf = (time: number): string => `${day(time)} ${clock(time).slice(0, 5)}`;

/** `2026-11-22T14:03`, as a field for a local time has it. */
export const localTime = (time: number): string => minuteOf(time).replace(' ', 'T');

/** `5 min ago`, `in 3 h`, `just now`; the date of what is more than 90 days away. */
export function fromNow(time: number, now = Date.now()): string {
  const ms = time - now;
  if (Math.abs(ms) > 90 * DAY) return day(time);
  if (Math.abs(ms) < 5000) return t`just now`;
  return ms > 0 ? t`in ${lasting(ms)}` : t`${lasting(-ms)} ago`;
}
