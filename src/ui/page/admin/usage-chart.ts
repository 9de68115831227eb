/** The chart of usage over time, from the steps that the admin API gives. */

import type { ChartData, Series } from '../charts/scale.ts';
import { count, short, usd } from '../kit/format.ts';
import { t } from '../kit/language.ts';
import type { Query } from '../kit/route.ts';
import { tokensIn, tokensOut, type Usage, type UsageGroup } from './api.ts';

/** How each measure is named, titled, read and written. */
const OF = {
  cost: {
    name: t`Cost`,
    title: t`Cost in USD`,
    value: ({ cost_usd }: UsageGroup) => cost_usd,
    format: usd,
  },
  tokens: {
    name: t`Tokens`,
    title: t`Tokens`,
    value: (group: UsageGroup) => tokensIn(group) + tokensOut(group),
    format: short,
  },
  tries: {
    name: t`Attempts`,
    title: t`Attempts`,
    value: ({ tries }: UsageGroup) => tries,
    format: short,
  },
};
export type Measure = keyof typeof OF;
export const MEASURES = Object.entries(OF).map(
  ([name, one]) => [name as Measure, one.name] as const,
);
export const amountOf = (measure: Measure) => OF[measure].value;
export type Step = 'hour' | 'day' | 'month';

const DAY_MS = 86_400_000;
const STEP_MS: Readonly<Record<Step, number>> = {
  hour: 3_600_000,
  day: DAY_MS,
  month: 30 * DAY_MS,
};
/** The longest time that is shown by the hour: the API gives eight days of them. */
const HOURS_MS = 8 * DAY_MS;
const DAYS_MS = 400 * DAY_MS;

export const measureOf = (text: string | undefined): Measure =>
  MEASURES.find(([name]) => name === text)?.[0] ?? 'cost';

/** Milliseconds since 1970 of a date or a length such as `30d`. */
function timeOf(text: string | undefined, now: number): number | undefined {
  const length = /^(\d+)([hd])$/.exec(text ?? '');
  if (length !== null) return now - Number(length[1]) * (length[2] === 'h' ? 3_600_000 : DAY_MS);
  const time = Date.parse(text ?? '');
  return Number.isNaN(time) ? undefined : time;
}

/** The step that was chosen, where the time allows it; else one that gives a readable number of bars. */
export function stepOf({ from, to, step, by }: Query, usual: string, now = Date.now()): Step {
  const span = (timeOf(to, now) ?? now) - (timeOf(from ?? usual, now) ?? now);
  const hours = span <= HOURS_MS && by !== 'session';
  if (step === 'month' || (step === 'day' && span <= 3 * DAYS_MS)) return step;
  if (step === 'hour' && hours) return 'hour';
  if (span <= 2 * DAY_MS && hours) return 'hour';
  return span <= DAYS_MS ? 'day' : 'month';
}

/** The name that a group is shown with. */
export function nameOf({ name, key_name, others }: UsageGroup): string {
  if (others === true) return t`all others`;
  if (name === null) return t`(without this label)`;
  if (name === '') return t`(no key)`;
  return key_name ?? name;
}

export interface UsageChartOptions {
  readonly measure: Measure;
  readonly step: Step;
  readonly from: string;
  readonly to: string;
}

export function usageChart(
  { data }: Usage,
  { measure, step, from, to }: UsageChartOptions,
): ChartData {
  const times = stepsBetween(Date.parse(from), Date.parse(to), step);
  const places = new Map(times.map((time, i) => [time, i]));
  const { value, title, format } = OF[measure];
  const series = new Map<string, { values: number[]; sum: number; others: boolean }>();
  for (const group of data) {
    const at = places.get(Date.parse(group.from!));
    if (at === undefined) continue;
    const name = nameOf(group);
    let one = series.get(name);
    if (one === undefined) {
      one = { values: times.map(() => 0), sum: 0, others: group.others === true };
      series.set(name, one);
    }
    one.values[at]! += value(group);
    one.sum += value(group);
  }
  const sorted = [...series].sort(
    ([, a], [, b]) => Number(a.others) - Number(b.others) || b.sum - a.sum,
  );
  const total = sorted.reduce((all, [, { sum }]) => all + sum, 0);
  return {
    title,
    kind: 'bars',
    times,
    bucketMs: STEP_MS[step],
    series: sorted.map(
      ([name, { values, others }], i): Series => ({
        name,
        tone: others ? 'others' : `hue-${i}`,
        values,
      }),
    ),
    format,
    whole: measure !== 'cost',
    total: measure === 'tries' ? count(total) : format(total),
  };
}

function stepsBetween(from: number, to: number, step: Step): readonly number[] {
  const all: number[] = [];
  if (step === 'month') {
    const date = new Date(from);
    for (let month = date.getUTCMonth(); ; month++) {
      const time = Date.UTC(date.getUTCFullYear(), month, 1);
      if (time >= to) return all;
      all.push(time);
    }
  }
  for (let time = from - (from % STEP_MS[step]); time < to; time += STEP_MS[step]) all.push(time);
  return all;
}
