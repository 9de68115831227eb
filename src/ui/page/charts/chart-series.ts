/** The data of a chart over time: series, buckets and axis. */

import { clock, day } from '../kit/format.ts';

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

const DAY_MS = 86_400_000;

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
