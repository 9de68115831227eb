/** Statistics of the index: each query is one statement that returns few rows, however many samples there are. */

import type { SampleFilter, SamplePercentiles, SampleStatistics, SampleStore } from '../sample.ts';
import { conditionsOf, sourceOf } from './index-query.ts';

type RunQuery = (sql: string, values: (string | number)[]) => readonly unknown[];

const SUMS = `
  count(*) AS requests, total(failed) AS failed, count(input_tokens) AS counted,
  total(input_tokens) AS input_tokens, total(cached_tokens) AS cached_tokens,
  total(cache_write_tokens) AS cache_write_tokens,
  total(cache_write_1h_tokens) AS cache_write_1h_tokens,
  total(output_tokens) AS output_tokens, total(reasoning_tokens) AS reasoning_tokens,
  total(CASE WHEN cached_tokens IS NULL THEN 0 ELSE input_tokens END) AS cacheable_tokens`;

/** The column to group by. */
const GROUPS = { bucket: 'bucket', target: 'target', all: `''` } as const;

/** Values of a column that are counted. */
const COUNTED = { status: 'status != 0', error: `error != ''`, notes: `notes != ''` } as const;

interface Ranked {
  readonly name: number | string;
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

/** A sample's bucket is the number of whole `bucketMs` since `filter.since`. */
export function statisticsOf(
  query: RunQuery,
  filter: Parameters<SampleStore['statistics']>[0],
  bucketMs: number,
): SampleStatistics {
  const { limit: _limit, before: _before, sort: _sort, ...others }: SampleFilter = filter;
  const source = sourceOf(others);
  const conditions = conditionsOf(others);
  const values = [...source.values, ...conditions.values];
  const from = `(SELECT *, CAST((time - ?) / ? AS INTEGER) AS bucket FROM ${source.from} ${conditions.where})`;
  const all = <Row>(sql: string) =>
    query(sql, [filter.since, bucketMs, ...values]) as readonly Row[];
  return {
    sums: () => all(`SELECT bucket, target, ${SUMS} FROM ${from} GROUP BY bucket, target`),
    counts: (of) =>
      all(
        `SELECT bucket, target, CAST(${of} AS TEXT) AS name, count(*) AS count FROM ${from}
         WHERE ${COUNTED[of]} GROUP BY bucket, target, ${of}`,
      ),
    percentiles(of, by) {
      const group = GROUPS[by];
      // Nearest rank: the smallest value with at least p % of all at or below it.
      const rank = (percent: number) =>
        `max(CASE WHEN place = (many * ${percent} + 99) / 100 THEN value END) AS p${percent}`;
      const rows = all<Ranked>(
        `SELECT name, ${rank(50)}, ${rank(95)}, ${rank(99)} FROM (
           SELECT ${group} AS name, ${of} AS value,
             row_number() OVER (PARTITION BY ${group} ORDER BY ${of}) AS place,
             count(*) OVER (PARTITION BY ${group}) AS many
           FROM ${from} WHERE ${of} IS NOT NULL
         ) GROUP BY name`,
      );
      return new Map(
        rows.map(({ name, ...ranks }): [number | string, SamplePercentiles] => [name, ranks]),
      );
    },
  };
}
