/** The cost of lost prompt caches for each group of a report, computed from rows by session. */

import { GatewayError } from '../conversation/errors.ts';
import { isObject, tryParse } from '../lib/json/json.ts';
import { KEPT_MS, MIN_LOST } from './lost-cache.ts';
import type { SpendReader } from './schema.ts';
import {
  bucketOf,
  keyCondition,
  keyValues,
  labelValues,
  placeOf,
  type UsageGroup,
  type UsageQuery,
} from './usage.ts';

interface LostRows {
  readonly name: string | number | null;
  readonly bucket: number;
  readonly price: number;
  readonly missed: number;
  readonly written: number;
}

/** Nano-USD, by group in their order, and of all; undefined: it is not known. */
export interface LostCosts {
  readonly groups: readonly (number | undefined)[];
  readonly total: number | undefined;
}

// Sums of integers are decimals in Postgres.
const sum = (of: string) => `CAST(sum(${of}) AS bigint)`;

/**
 * As `LastPrompts` counts it, for requests whose client sends a session id. Reads every row of the time: for commands,
 * not for a gateway that serves.
 */
export async function lostCosts(
  reader: SpendReader,
  query: UsageQuery,
  groups: readonly UsageGroup[],
): Promise<LostCosts> {
  const { names } = reader;
  const { by, from, to, step } = query;
  const column = typeof by === 'object' ? 'labels' : by;
  const prompts = `SELECT time, time - time % 3600000 AS start, ${column} AS name, price, cache_read, cache_write,
      input + cache_read + cache_write AS prompt,
      lag(input + cache_read + cache_write) OVER turns AS prompt_before, lag(time) OVER turns AS time_before
    FROM ${names.rows} WHERE time >= $from AND time < $to AND session IS NOT NULL AND ended = 'done'${keyCondition(query)}
    WINDOW turns AS (PARTITION BY key, session, target ORDER BY time, id)`;
  const missed = `SELECT start, name, price, cache_write, prompt_before - cache_read AS missed FROM (${prompts}) AS prompts
    WHERE price IS NOT NULL AND time - time_before <= $kept AND prompt >= prompt_before
      AND prompt_before - cache_read >= $least`;
  const sql = `SELECT name, ${bucketOf(step, names)} AS bucket, price, ${sum('missed')} AS missed,
      ${sum('CASE WHEN cache_write < missed THEN cache_write ELSE missed END')} AS written
    FROM (${missed}) AS lost GROUP BY name, bucket, price`;
  try {
    const found = await reader.all<LostRows>(sql, {
      from,
      to,
      kept: KEPT_MS,
      least: MIN_LOST,
      ...keyValues(query),
    });
    if (found.length === 0) return { groups: groups.map(() => 0), total: 0 };
    const labels = typeof by === 'object' ? await labelValues(reader, by.label) : undefined;
    const prices = await pricesOf(reader);
    const costs = new Map<string, number>();
    let total = 0;
    for (const { name, bucket, price, missed: tokens, written } of found) {
      const rates = prices.get(Number(price));
      if (rates === undefined) continue;
      const { input, cached, cacheWrite } = rates;
      // USD per million tokens are thousands of nano-USD per token.
      const all = written * cacheWrite + (tokens - written) * input - tokens * cached;
      const cost = Math.max(0, Math.round(all * 1000));
      const shown = labels === undefined ? String(name) : (labels.get(Number(name)) ?? null);
      const place = placeOf(shown, step === undefined ? undefined : bucket);
      costs.set(place, (costs.get(place) ?? 0) + cost);
      total += cost;
    }
    return {
      groups: groups.map(({ name, start }) => costs.get(placeOf(name, start)) ?? 0),
      total,
    };
  } catch (thrown) {
    // A database that takes too long over it has given the totals all the same.
    if (!(thrown instanceof GatewayError)) throw thrown;
    return { groups: groups.map(() => undefined), total: undefined };
  }
}

interface Prices {
  readonly input: number;
  readonly cached: number;
  readonly cacheWrite: number;
}

async function pricesOf(reader: SpendReader): Promise<ReadonlyMap<number, Prices>> {
  const found = new Map<number, Prices>();
  const texts = await reader.all<{ id: number; text: string }>(
    `SELECT id, text FROM ${reader.names.texts}`,
  );
  for (const { id, text } of texts) {
    const price = tryParse(text);
    if (!isObject(price)) continue;
    const { input, cached, cache_write: cacheWrite } = price;
    if (typeof input !== 'number' || typeof cached !== 'number') continue;
    found.set(Number(id), {
      input,
      cached,
      cacheWrite: typeof cacheWrite === 'number' ? cacheWrite : input,
    });
  }
  return found;
}
