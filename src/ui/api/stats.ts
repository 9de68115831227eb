/** `GET /ui/api/stats`: figures over time and by target, computed from a few queries of the index. */

import { type Static, Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import { invalid } from '../../conversation/errors.ts';
import { costOf, type Prices } from '../../samples/replay/cost.ts';
import { rateTable } from '../../samples/replay/rate-table.ts';
import type { SamplePercentiles, SampleStore, SampleSums } from '../../samples/sample.ts';
import { json } from './answers.ts';
import type { Stats, StatsFigures } from './api.ts';
import type { ApiContext } from './context.ts';
import { guard, type Viewer } from './guard.ts';
import { FILTER_QUERY, filterOfQuery } from './list.ts';
import { queryOf, wholeNumber } from './parameters.ts';

const DAY = 86_400_000;

/** Yields to the event loop between two queries. */
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

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
): Promise<Stats> {
  const now = Date.now();
  // What a command made is no traffic, unless it is asked for.
  const filter = { made: 'traffic', ...filterOfQuery(query, viewer) };
  const until = Math.ceil(filter.until ?? now + 1);
  const since = Math.floor(filter.since ?? until - DAY);
  if (since >= until) throw invalid('"since" must be before "until".', 'since');
  // Whole milliseconds, so that the index computes the same buckets.
  const bucketMs = Math.ceil((until - since) / wanted);
  const rates = filter.cost === undefined ? undefined : rateTable(prices, store.targets());
  const index = store.statistics({ ...filter, since, until, ...(rates && { rates }) }, bucketMs);

  const buckets = Array.from({ length: Math.ceil((until - since) / bucketMs) }, () =>
    emptySum(prices),
  );
  const targets = new Map<string, FigureSum>();
  const all = emptySum(prices);
  const groups = (bucket: number, target: string): readonly FigureSum[] => {
    let own = targets.get(target);
    if (own === undefined) {
      own = emptySum(prices);
      targets.set(target, own);
    }
    return [buckets[bucket]!, own, all];
  };

  for (const sums of index.sums()) {
    for (const group of groups(sums.bucket, sums.target)) group.add(sums);
  }
  for (const of of ['status', 'error', 'notes'] as const) {
    await turn();
    for (const { bucket, target, name, count } of index.counts(of)) {
      for (const group of groups(bucket, target)) group.count(of, name, count);
    }
  }
  for (const of of ['first_byte_ms', 'total_ms'] as const) {
    await turn();
    for (const [bucket, ranks] of index.percentiles(of, 'bucket'))
      buckets[Number(bucket)]![of] = ranks;
    await turn();
    for (const [target, ranks] of index.percentiles(of, 'target')) {
      targets.get(String(target))![of] = ranks;
    }
    await turn();
    all[of] = index.percentiles(of, 'all').get('') ?? null;
  }

  return {
    since,
    until,
    bucket_ms: bucketMs,
    buckets: buckets.map((sum, i) => ({ time: since + i * bucketMs, ...sum.figures() })),
    all: all.figures(),
    targets: [...targets]
      .map(([target, sum]) => ({ target, ...sum.figures() }))
      .sort((a, b) => b.requests - a.requests || (a.target < b.target ? -1 : 1)),
  };
}

type Counted = 'status' | 'error' | 'notes';

/** The figures of one group while they are summed. */
interface FigureSum {
  /** Set when the percentiles are known. */
  first_byte_ms: SamplePercentiles | null;
  total_ms: SamplePercentiles | null;
  add(sums: SampleSums): void;
  count(of: Counted, name: string, count: number): void;
  figures(): StatsFigures;
}

const NAMED = { status: 'statuses', error: 'errors', notes: 'notes' } as const;

function emptySum(prices: Prices): FigureSum {
  let total = NOTHING;
  let cacheable = 0;
  const counts = { statuses: {}, errors: {}, notes: {} } as Record<
    (typeof NAMED)[Counted],
    Record<string, number>
  >;
  const sum: FigureSum = {
    first_byte_ms: null,
    total_ms: null,
    add(more) {
      const price = prices.of(more.target);
      const cost = price === undefined || more.counted === 0 ? null : costOf(tokensIn(more), price);
      cacheable += more.cacheable_tokens;
      total = {
        requests: total.requests + more.requests,
        failed: total.failed + more.failed,
        input_tokens: total.input_tokens + more.input_tokens,
        cached_tokens: total.cached_tokens + more.cached_tokens,
        cache_write_tokens: total.cache_write_tokens + more.cache_write_tokens,
        output_tokens: total.output_tokens + more.output_tokens,
        reasoning_tokens: total.reasoning_tokens + more.reasoning_tokens,
        cost: cost === null ? total.cost : (total.cost ?? 0) + cost,
        unpriced: total.unpriced + (price === undefined ? more.counted : 0),
      };
    },
    count(of, name, count) {
      const own = counts[NAMED[of]];
      const parts = of === 'notes' ? name.split(',') : [name];
      for (const part of parts) {
        // A note that was made several times is `name=count`.
        const [key = '', times = '1'] = of === 'notes' ? part.split('=') : [part];
        own[key] = (Object.hasOwn(own, key) ? own[key]! : 0) + Number(times) * count;
      }
    },
    figures: () => ({
      ...total,
      ...counts,
      first_byte_ms: sum.first_byte_ms,
      total_ms: sum.total_ms,
      cache_hit_rate: cacheable > 0 ? total.cached_tokens / cacheable : null,
    }),
  };
  return sum;
}

const NOTHING = {
  requests: 0,
  failed: 0,
  input_tokens: 0,
  cached_tokens: 0,
  cache_write_tokens: 0,
  output_tokens: 0,
  reasoning_tokens: 0,
  cost: null as number | null,
  unpriced: 0,
};

const tokensIn = (sums: SampleSums) => ({
  input: sums.input_tokens,
  cached: sums.cached_tokens,
  cacheWrite: sums.cache_write_tokens,
  cacheWrite1h: sums.cache_write_1h_tokens,
  output: sums.output_tokens,
});
