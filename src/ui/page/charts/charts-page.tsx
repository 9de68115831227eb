import { useState } from 'preact/hooks';
import type { Info, Stats, StatsFigures } from '../../api/api.ts';
import { count, millis, percent, short, usd, usdInColumn } from '../kit/format.ts';
import { useGet } from '../kit/hooks.ts';
import { t } from '../kit/language.ts';
import type { PageProps } from '../kit/places.ts';
import { filtersOf, go, hashOf, refine } from '../kit/route.ts';
import { type Column, Table } from '../kit/table.tsx';
import { type Child, Facts, Problem, Segments } from '../kit/ui.tsx';
import { Filters } from '../list/filters.tsx';
import { KeepLine } from '../list/keep-line.tsx';
import { Chart } from './chart.tsx';
import type { ChartData, Series } from './scale.ts';

const RANGES = [
  ['15m', t`15 min`],
  ['1h', t`1 h`],
  ['6h', t`6 h`],
  ['24h', t`24 h`],
  ['7d', t`7 days`],
] as const;
const RANGE = '1h';
const BUCKETS = 60;
const RELOAD_AFTER_MS = 10_000;

export function ChartsPage({ info, route, switched }: PageProps) {
  const query = filtersOf(route.query);
  const pointer = useState<number>();
  const { data: stats, problem } = useGet(
    '/stats',
    { ...query, since: query.since ?? RANGE, buckets: BUCKETS },
    RELOAD_AFTER_MS,
  );
  const choose = (index: number) => {
    const bucket = stats?.buckets[index];
    if (bucket === undefined) return;
    const [since, until] = [bucket.time, bucket.time + stats!.bucket_ms];
    go({ name: 'list', query: { ...query, since: String(since), until: String(until) } });
  };
  const figures = figuresFor(info);
  const rowsOf = (target: string) => hashOf({ name: 'list', query: { ...query, model: target } });
  return (
    <section class="charts-page" aria-label={t`Charts`}>
      <h1 class="sr">{t`Charts`}</h1>
      <div class="charts-bar">
        <Segments
          label={t`Time`}
          options={RANGES}
          value={query.since ?? RANGE}
          choose={(since) => refine({ since, until: '' })}
        />
        <Filters query={query} change={refine} />
      </div>
      {/* What is drawn is what is recorded. */}
      <KeepLine info={info} switched={switched} />
      <Problem text={problem} />
      {stats && (
        <>
          <Facts class="figures" items={figures.map(([title, of]) => [title, of(stats.all)])} />
          <div class="chart-grid">
            {chartsOf(stats, info).map((data) => (
              <Chart key={data.title} data={data} pointer={pointer} choose={choose} />
            ))}
          </div>
          {stats.targets.length > 0 && (
            <section class="targets">
              <h2>{t`By target`}</h2>
              <Table
                rows={stats.targets}
                columns={[
                  [t`Target`, ({ target }) => <a href={rowsOf(target)}>{target || t`(none)`}</a>],
                  ...figures.map(([title, of]): Column<StatsFigures> => [title, of, 'num']),
                ]}
              />
            </section>
          )}
        </>
      )}
    </section>
  );
}

type Figure = readonly [title: string, text: (of: StatsFigures) => Child];

/** What is said of all exchanges, and of those of each target. */
function figuresFor({ priced, samples: { mode } }: Info): readonly Figure[] {
  // Without successes, a share of what is recorded says nothing of all requests.
  const share = (of: number, { requests }: StatsFigures) =>
    mode === 'all' && requests > 0 ? `${count(of)} (${percent(of / requests)})` : count(of);
  const both = (times: StatsFigures['total_ms']) =>
    times === null ? '–' : `${millis(times.p50)} / ${millis(times.p95)}`;
  // An exchange that failed has an error; one that a later try made good has none.
  const failed = (of: StatsFigures) => sum(of.errors);
  const figures: readonly (Figure | false)[] = [
    [requestsIn(mode), ({ requests }) => count(requests)],
    [
      t`Failed`,
      (of) => <span class={failed(of) > 0 ? 'problem' : undefined}>{share(failed(of), of)}</span>,
    ],
    [t`Retried`, (of) => share(Math.max(0, of.failed - failed(of)), of)],
    [t`First byte p50 / p95`, ({ first_byte_ms }) => both(first_byte_ms)],
    [t`Total p50 / p95`, ({ total_ms }) => both(total_ms)],
    [t`Cache hits`, ({ cache_hit_rate: rate }) => (rate === null ? '–' : percent(rate))],
    [t`Tokens in / out`, (of) => `${short(of.input_tokens)} / ${short(of.output_tokens)}`],
    priced && [t`Cost`, ({ cost }) => usdInColumn(cost)],
  ];
  return figures.filter((one) => one !== false);
}

type Bucket = Stats['buckets'][number];

/** Names with their own colour; all others are summed. */
const NAMED = 6;

/** The charts in reading order. */
function chartsOf(
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
  const timesOf = (title: string, field: 'total_ms' | 'first_byte_ms') => {
    const series = (['p50', 'p95', 'p99'] as const).map((name, i) =>
      of(name, `p-${i}`, (bucket) => bucket[field]?.[name] ?? null),
    );
    const total = all[field] === null ? '' : `p50 ${millis(all[field].p50)}`;
    return chart(title, 'lines', series, millis, { total });
  };
  const namesOf = (title: string, field: 'errors' | 'notes', tone: string) => {
    const total = count(sum(all[field]));
    return chart(title, 'bars', byName(buckets, all, field, tone), short, { total, whole: true });
  };
  return [
    chart(
      requestsIn(samples.mode),
      'bars',
      [
        of(t`fine`, 'fine', ({ requests, failed }) => requests - failed),
        of(t`retried`, 'retried', ({ failed, errors }) => Math.max(0, failed - sum(errors))),
        of(t`failed`, 'failed', ({ errors }) => sum(errors)),
      ],
      short,
      { total: count(all.requests), whole: true },
    ),
    namesOf(t`Errors by kind`, 'errors', 'err'),
    timesOf(t`Time until the first byte`, 'first_byte_ms'),
    timesOf(t`Time until the end`, 'total_ms'),
    chart(
      t`Prompt tokens from the cache`,
      'lines',
      [of(t`cached`, 'cacheRead', (bucket) => bucket.cache_hit_rate)],
      percent,
      { top: 1, total: all.cache_hit_rate === null ? '' : percent(all.cache_hit_rate) },
    ),
    namesOf(t`Notes by rule`, 'notes', 'hue'),
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
const requestsIn = (mode: Info['samples']['mode']): string =>
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
