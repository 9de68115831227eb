/** Series and buckets of a chart over time, and round steps for its axes. */

import { clock, day } from '../kit/format.ts';

export const DAY_MS = 86_400_000;

export interface Series {
  readonly name: string;
  /** CSS class of its colour. */
  readonly tone: string;
  /** A value for each bucket; null where nothing was measured. */
  readonly values: readonly (number | null)[];
}

export interface ChartData {
  readonly title: string;
  readonly kind: 'bars' | 'lines';
  readonly times: readonly number[];
  readonly bucketMs: number;
  readonly series: readonly Series[];
  readonly format: (value: number) => string;
  /** Top of the axis, where it is fixed (1 for shares). */
  readonly top?: number;
  /** Values and axis labels are whole numbers. */
  readonly whole?: boolean;
  /** The figure for the whole time, shown beside the title. */
  readonly total?: string;
}

/** `14:05 – 14:10`; with the day where buckets are long. */
export function span(time: number, length: number): string {
  // Whole days are those of UTC.
  if (length >= DAY_MS) return new Date(time).toISOString().slice(0, length > DAY_MS ? 7 : 10);
  const end = time + length;
  if (length >= 3_600_000)
    return `${day(time).slice(5)} ${clock(time).slice(0, 5)} – ${clock(end).slice(0, 5)}`;
  const digits = length % 60_000 === 0 ? 5 : 8;
  return `${clock(time).slice(0, digits)} – ${clock(end).slice(0, digits)}`;
}

/** About `wanted` round values from `low` to `high`. */
export function ticks(low: number, high: number, wanted: number): readonly number[] {
  const span = high - low;
  if (!(span > 0)) return [low];
  const rough = span / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((one) => one >= rough)!;
  const all: number[] = [];
  for (let i = Math.ceil(low / step); i * step <= high + step / 1e6; i++) all.push(i * step);
  return all;
}

const STEPS = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400,
  172_800, 604_800,
];

/** Round times (since 1970) for an axis: full minutes, hours or days in local time. */
export function timeTicks(from: number, to: number, wanted: number): readonly number[] {
  const seconds = (to - from) / 1000 / wanted;
  const step = (STEPS.find((one) => one >= seconds) ?? STEPS.at(-1)!) * 1000;
  const shift = new Date(from).getTimezoneOffset() * 60_000;
  const all: number[] = [];
  for (let i = Math.ceil((from - shift) / step); i * step + shift <= to; i++)
    all.push(i * step + shift);
  return all;
}

/** Labels of buckets of a day or a month, which are those of UTC: about `wanted`, each for one bucket. */
export function dayLabels(
  times: readonly number[],
  bucketMs: number,
  wanted: number,
): readonly { readonly index: number; readonly text: string }[] {
  const every = Math.max(1, Math.ceil(times.length / wanted));
  return times.flatMap((time, index) => {
    if (index % every !== 0) return [];
    const date = new Date(time).toISOString();
    return [{ index, text: bucketMs > DAY_MS ? date.slice(0, 7) : date.slice(5, 10) }];
  });
}

/** The next round value above; the top of an axis. */
export function roundUp(value: number): number {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10]
    .map((factor) => factor * power)
    .find((one) => one >= value * (1 - 1e-9))!;
}
