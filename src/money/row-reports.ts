/** For each group of a report, from rows, since totals do not tell it: what lost caches cost, what caches saved, how many requests there were. */

import { GatewayError } from '../conversation/errors.ts';
import { isObject, tryParse } from '../lib/json/json.ts';
import { KEPT_MS, MIN_LOST } from './lost-cache.ts';
import type { SpendReader } from './schema.ts';
import {
  bucketOf,
  type CacheCosts,
  columnOf,
  groupNames,
  keyCondition,
  keyValues,
  placeOf,
  type RequestCounts,
  totalOf,
  type UsageGroup,
  type UsageQuery,
} from './usage.ts';

interface PromptRows {
  readonly name: string | number | null;
  readonly bucket: number;
  readonly price: number;
  /** Tokens that were lost, or read. */
  readonly tokens: number;
  readonly written: number;
}

/** USD per million tokens, times tokens. */
type CostOf = (rates: Prices, row: PromptRows) => number;

// Sums of integers are decimals in Postgres.
const sum = (of: string) => `CAST(sum(${of}) AS bigint)`;

/** The columns of a row that every question needs. */
const START = 'time - time % 3600000 AS start';

/**
 * As `LastPrompts` counts it, for requests whose client sends a session id. Reads every row of the time: for commands,
 * and for times of few rows.
 */
export async function lostCosts(
  reader: SpendReader,
  query: UsageQuery,
  groups: readonly UsageGroup[],
): Promise<CacheCosts> {
  const prompts = `SELECT time, ${START}, ${columnOf(query)} AS name, price, cache_read, cache_write,
      input + cache_read + cache_write AS prompt,
      lag(input + cache_read + cache_write) OVER turns AS prompt_before, lag(time) OVER turns AS time_before
    FROM ${reader.names.rows} WHERE time >= $from AND time < $to AND session IS NOT NULL AND ended = 'done'${keyCondition(query)}
    WINDOW turns AS (PARTITION BY key, session, target ORDER BY time, id)`;
  const missed = `SELECT start, name, price, cache_write, prompt_before - cache_read AS tokens FROM (${prompts}) AS prompts
    WHERE price IS NOT NULL AND time - time_before <= $kept AND prompt >= prompt_before
      AND prompt_before - cache_read >= $least`;
  return costsOf(
    reader,
    query,
    groups,
    `SELECT start, name, price, tokens,
      CASE WHEN cache_write < tokens THEN cache_write ELSE tokens END AS written FROM (${missed}) AS missed`,
    ({ input, cached, cacheWrite }, { tokens, written }) =>
      Math.max(0, written * cacheWrite + (tokens - written) * input - tokens * cached),
  );
}

/** The discount of what was read from caches, less the surcharge of what was written to them. Reads every row of the time. */
export const savedCosts = (
  reader: SpendReader,
  query: UsageQuery,
  groups: readonly UsageGroup[],
): Promise<CacheCosts> =>
  costsOf(
    reader,
    query,
    groups,
    `SELECT ${START}, ${columnOf(query)} AS name, price, cache_read AS tokens, cache_write AS written
      FROM ${reader.names.rows} WHERE time >= $from AND time < $to AND price IS NOT NULL
        AND cache_read + cache_write > 0${keyCondition(query)}`,
    ({ input, cached, cacheWrite }, { tokens, written }) =>
      tokens * (input - cached) - written * (cacheWrite - input),
  );

/** @param rows a question for `start`, `name`, `price`, `tokens` and `written` */
async function costsOf(
  reader: SpendReader,
  query: UsageQuery,
  groups: readonly UsageGroup[],
  rows: string,
  costOf: CostOf,
): Promise<CacheCosts> {
  const { from, to, step } = query;
  const sql = `SELECT name, ${bucketOf(step, reader.names)} AS bucket, price, ${sum('tokens')} AS tokens,
      ${sum('written')} AS written FROM (${rows}) AS prompts GROUP BY name, bucket, price`;
  const values = { from, to, ...keyValues(query) };
  const known = rows.includes('$kept') ? { ...values, kept: KEPT_MS, least: MIN_LOST } : values;
  try {
    const found = await reader.all<PromptRows>(sql, known);
    if (found.length === 0) return { groups: groups.map(() => 0), total: 0 };
    const nameOf = await groupNames(reader, query);
    const prices = await pricesOf(reader);
    const costs = new Map<string, number>();
    let total = 0;
    for (const row of found) {
      const { name, bucket, price } = row;
      const rates = prices.get(Number(price));
      if (rates === undefined) continue;
      // USD per million tokens are thousands of nano-USD per token.
      const counts = { ...row, tokens: Number(row.tokens), written: Number(row.written) };
      const cost = Math.round(costOf(rates, counts) * 1000);
      const place = placeOf(nameOf(name), step === undefined ? undefined : bucket);
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

interface Counted {
  readonly name: string | number | null;
  readonly bucket: number;
  readonly tries: number;
  readonly requests: number;
}

const COUNTS = `CAST(count(*) AS bigint) AS tries, CAST(count(DISTINCT request) AS bigint) AS requests`;

/**
 * Reads every row of the time: for commands, not for a gateway that serves. A request that went to two models or
 * targets counts for both, and once in the total.
 */
export async function requestCounts(
  reader: SpendReader,
  query: UsageQuery,
  groups: readonly UsageGroup[],
): Promise<RequestCounts> {
  try {
    return await counted(reader, query, groups);
  } catch (thrown) {
    // A database that takes too long over it has given the totals all the same.
    if (!(thrown instanceof GatewayError)) throw thrown;
    return { groups: groups.map(() => undefined), total: undefined };
  }
}

async function counted(
  reader: SpendReader,
  query: UsageQuery,
  groups: readonly UsageGroup[],
): Promise<RequestCounts> {
  const { names } = reader;
  const { by, from, to, step } = query;
  const nameOf = await groupNames(reader, query);
  const isSession = by === 'session';
  const named = isSession ? ` AND session IN ${names.names}` : '';
  const values = {
    from,
    to,
    ...keyValues(query),
    ...(isSession && { names: JSON.stringify(groups.map(({ name }) => name)) }),
  };
  const rows = `(SELECT time - time % 3600000 AS start, ${columnOf(query)} AS name, request FROM ${names.rows}
    WHERE time >= $from AND time < $to${keyCondition(query)}${named}) AS counted`;
  const found = await reader.all<Counted>(
    `SELECT name, ${bucketOf(step, names)} AS bucket, ${COUNTS} FROM ${rows} GROUP BY bucket, name`,
    values,
  );
  const [all] = await reader.all<Counted>(`SELECT ${COUNTS} FROM ${rows}`, values);
  const byGroup = new Map<string, { tries: number; requests: number }>();
  for (const { name, bucket, tries, requests } of found) {
    const place = placeOf(nameOf(name), step === undefined ? undefined : bucket);
    const one = byGroup.get(place) ?? { tries: 0, requests: 0 };
    // A key has one set of labels, so no request is in two of them.
    byGroup.set(place, { tries: one.tries + tries, requests: one.requests + requests });
  }
  const ofGroup = ({ name, start, sums }: UsageGroup) => {
    const one = byGroup.get(placeOf(name, start));
    return one?.tries === sums.tries ? one.requests : undefined;
  };
  const isWhole = all?.tries === totalOf(groups).tries;
  return { groups: groups.map(ofGroup), total: isWhole ? all.requests : undefined };
}
