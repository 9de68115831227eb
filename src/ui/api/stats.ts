/** `GET /ui/api/stats`: figures over time and by target, summed from the rows of the index, a page at a time. */

import { type Static, Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import { invalid } from '../../conversation/errors.ts';
import { memberOf, put } from '../../lib/json/json-members.ts';
import { othersTurn, runInSlices } from '../../lib/loop/steps.ts';
import { costAt, type Prices, rateTable, usageCounted } from '../../samples/replay/cost.ts';
import type { SamplePercentiles, SampleRow, SampleStore } from '../../samples/sample.ts';
import { json } from './answers.ts';
import type { ApiContext } from './context.ts';
import { guard, type Viewer } from './guard.ts';
import { FILTER_QUERY, filterOfQuery } from './list.ts';
import { queryOf, wholeNumber } from './parameters.ts';

const DAY = 86_400_000;

const STATS_QUERY = Type.Object({
  ...FILTER_QUERY.properties,
  buckets: wholeNumber('buckets', { least: 1, most: 500, fallback: 60 }),
});

export const statsRoutes = (context: ApiContext) =>
  new Elysia()
    .use(guard(context.options))
    .get(
      '/stats',
      async ({ query, viewer }) =>
        json(await statsFor(context.store, query, viewer, context.prices)),
      queryOf(STATS_QUERY),
    );

/** @throws GatewayError invalid_request */
export async function statsFor(
  store: SampleStore,
  { buckets: wanted, ...query }: Static<typeof STATS_QUERY>,
  viewer: Viewer,
  prices: Prices,
) {
  const now = Date.now();
  // What a command made is no traffic, unless it is asked for.
  const filter = { made: 'traffic', ...filterOfQuery(query, viewer) };
  const until = Math.ceil(filter.until ?? now + 1);
  const since = Math.floor(filter.since ?? until - DAY);
  if (since >= until) throw invalid('"since" must be before "until".', 'since');
  // Whole milliseconds, so that the index computes the same buckets.
  const bucketMs = Math.ceil((until - since) / wanted);
  const rates = filter.cost === undefined ? undefined : rateTable(prices, store.targets());
  const asked = { ...filter, since, until, ...(rates && { rates }) };
  const { before: _, sort: __, limit: ___, ...named } = await runInSlices(store.named(asked));

  const buckets = Array.from(
    { length: Math.ceil((until - since) / bucketMs) },
    () => new FigureSum(),
  );
  const targets = new Map<string, FigureSum>();
  const all = new FigureSum();
  for (const rows of store.pages(named)) {
    for (const row of rows) {
      let own = targets.get(row.target);
      if (own === undefined) {
        own = new FigureSum();
        targets.set(row.target, own);
      }
      const cost = costAt(prices, row.target, usageCounted(row));
      for (const sum of [buckets[Math.floor((row.time - since) / bucketMs)]!, own, all]) {
        sum.add(row, cost);
      }
    }
    await othersTurn();
  }

  return {
    since,
    until,
    bucket_ms: bucketMs,
    /** All buckets, oldest first, empty ones included; `time` is the beginning of a bucket. */
    buckets: buckets.map((sum, i) => ({ time: since + i * bucketMs, ...sum.figures() })),
    all: all.figures(),
    /** By `provider/model`, most requests first. */
    targets: [...targets]
      .map(([target, sum]) => ({ target, ...sum.figures() }))
      .sort((a, b) => b.requests - a.requests || (a.target < b.target ? -1 : 1)),
  };
}

const EMPTY = {
  requests: 0,
  /** Something failed, even if only a try that a later one made good. */
  failed: 0,
  /** All prompt tokens, then the parts read from and written to a cache. */
  input_tokens: 0,
  cached_tokens: 0,
  cache_write_tokens: 0,
  /** All generated tokens, then the part for reasoning. */
  output_tokens: 0,
  reasoning_tokens: 0,
  /** In USD; null when no exchange has a price. */
  cost: null as number | null,
  /** Exchanges with tokens but without a price, which the cost leaves out. */
  unpriced: 0,
};

/** How often each name occurs. */
type Counts = Record<string, number>;

/** The figures of one group while they are summed. */
class FigureSum {
  readonly #total = { ...EMPTY };
  /** Input tokens of requests whose vendor reports cache use. */
  #cacheable = 0;
  readonly #counts = { errors: {} as Counts, notes: {} as Counts };
  readonly #times = { first_byte_ms: [] as number[], total_ms: [] as number[] };

  add(row: SampleRow, cost: number | null): void {
    const total = this.#total;
    total.requests++;
    if (row.failed) total.failed++;
    for (const name of TOKENS) total[name] += row[name] ?? 0;
    if (row.cached_tokens !== null) this.#cacheable += row.input_tokens ?? 0;
    if (cost !== null) total.cost = (total.cost ?? 0) + cost;
    else if (row.input_tokens !== null) total.unpriced++;
    const { errors, notes } = this.#counts;
    if (row.error !== '') count(errors, row.error);
    if (row.notes !== '') {
      for (const note of row.notes.split(',')) {
        // A note that was made several times is `name=count`.
        const [name = '', times = '1'] = note.split('=');
        count(notes, name, Number(times));
      }
    }
    for (const name of TIMES) {
      const time = row[name];
      if (time !== null) this.#times[name].push(time);
    }
  }

  figures() {
    const total = this.#total;
    return {
      ...total,
      ...this.#counts,
      first_byte_ms: percentilesOf(this.#times.first_byte_ms),
      total_ms: percentilesOf(this.#times.total_ms),
      /** cached / input over exchanges whose vendor reports cache use; null when none does. */
      cache_hit_rate: this.#cacheable > 0 ? total.cached_tokens / this.#cacheable : null,
    };
  }
}

const TOKENS = [
  'input_tokens',
  'cached_tokens',
  'cache_write_tokens',
  'output_tokens',
  'reasoning_tokens',
] as const;
const TIMES = ['first_byte_ms', 'total_ms'] as const;

function count(counts: Counts, name: string, times = 1): void {
  put(counts, name, (memberOf(counts, name) ?? 0) + times);
}

/** By nearest rank: the smallest value with at least p % of all at or below it. Null when nothing was measured. */
function percentilesOf(values: readonly number[]): SamplePercentiles | null {
  if (values.length === 0) return null;
  const sorted = Float64Array.from(values).sort();
  const rank = (percent: number) => sorted[Math.ceil((sorted.length * percent) / 100) - 1]!;
  return { p50: rank(50), p95: rank(95), p99: rank(99) };
}
