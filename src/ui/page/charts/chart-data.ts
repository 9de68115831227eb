/** The charts of the page, built from the figures of the API. */

import type { Info, Stats, StatsFigures } from '../../api/api.ts';
import { count, millis, percent, short, usd } from '../kit/format.ts';
import { t } from '../kit/language.ts';
import type { ChartData, Series } from './scale.ts';

type Bucket = Stats['buckets'][number];

/** Names with their own colour; all others are summed. */
const NAMED = 6;

/** The charts in reading order. */
export function chartsOf(
  stats: Stats,
  { priced, samples }: Pick<Info, 'priced' | 'samples'>,
): readonly ChartData[] {
  const { buckets, bucket_ms: bucketMs, all } = stats;
  const times = buckets.map(({ time }) => time);
  const of = (name: string, tone: string, value: (bucket: Bucket) => number | null): Series => ({
    name,
    tone,
    values: buckets.map(value),
  });
  const chart = (
    title: string,
    kind: ChartData['kind'],
    series: readonly Series[],
    format: (value: number) => string,
    more: Partial<ChartData> = {},
  ): ChartData => ({ title, kind, times, bucketMs, series, format, ...more });
  const times3 = (field: 'total_ms' | 'first_byte_ms') =>
    (['p50', 'p95', 'p99'] as const).map((name, i) =>
      of(name, `p-${i}`, (bucket) => bucket[field]?.[name] ?? null),
    );
  return [
    chart(
      requestsIn(samples.mode),
      'bars',
      [
        of(t`fine`, 'fine', ({ requests, failed }) => requests - failed),
        of(t`failed or retried`, 'failed', ({ failed }) => failed),
      ],
      short,
      { total: count(all.requests), whole: true },
    ),
    chart(t`Errors by kind`, 'bars', byName(buckets, all, 'errors', 'err'), short, {
      total: count(sum(all.errors)),
      whole: true,
    }),
    chart(t`Time until the first byte`, 'lines', times3('first_byte_ms'), millis, {
      total: all.first_byte_ms === null ? '' : `p50 ${millis(all.first_byte_ms.p50)}`,
    }),
    chart(t`Time until the end`, 'lines', times3('total_ms'), millis, {
      total: all.total_ms === null ? '' : `p50 ${millis(all.total_ms.p50)}`,
    }),
    chart(
      t`Prompt tokens from the cache`,
      'lines',
      [of(t`cached`, 'cacheRead', (bucket) => bucket.cache_hit_rate)],
      percent,
      { top: 1, total: all.cache_hit_rate === null ? '' : percent(all.cache_hit_rate) },
    ),
    chart(t`Notes by rule`, 'bars', byName(buckets, all, 'notes', 'hue'), short, {
      total: count(sum(all.notes)),
      whole: true,
    }),
    chart(
      t`Tokens`,
      'bars',
      [
        of(t`input`, 'input', (b) => b.input_tokens - b.cached_tokens - b.cache_write_tokens),
        of(t`cached`, 'cacheRead', (b) => b.cached_tokens),
        of(t`cache write`, 'cacheWrite', (b) => b.cache_write_tokens),
        of(t`output`, 'output', (b) => b.output_tokens - b.reasoning_tokens),
        of(t`reasoning`, 'reasoning', (b) => b.reasoning_tokens),
      ],
      short,
      { total: t`${short(all.input_tokens)} in, ${short(all.output_tokens)} out` },
    ),
    ...(priced
      ? [
          chart(t`Cost`, 'bars', [of('USD', 'money', (bucket) => bucket.cost)], usd, {
            total: usd(all.cost),
          }),
        ]
      : []),
  ];
}

/** Where only failures are recorded, they are not all requests. */
export const requestsIn = (mode: Info['samples']['mode']): string =>
  mode === 'all' ? t`Requests` : t`Recorded`;

const sum = (counts: Readonly<Record<string, number>>) =>
  Object.values(counts).reduce((total, value) => total + value, 0);

/** A series for each of the most frequent names, and one for the rest. */
function byName(
  buckets: readonly Bucket[],
  all: StatsFigures,
  field: 'errors' | 'notes',
  tone: string,
): readonly Series[] {
  const names = Object.entries(all[field])
    .sort((a, b) => b[1] - a[1])
    .map(([name]) => name);
  const named = names.slice(0, names.length <= NAMED + 1 ? NAMED + 1 : NAMED);
  const rest = names.slice(named.length);
  const series: Series[] = named.map((name, i) => ({
    name,
    tone: `${tone}-${i}`,
    values: buckets.map((bucket) => bucket[field][name] ?? 0),
  }));
  if (rest.length === 0) return series;
  const values = buckets.map((bucket) =>
    rest.reduce((total, name) => total + (bucket[field][name] ?? 0), 0),
  );
  return [...series, { name: t`${rest.length} others`, tone: 'others', values }];
}
