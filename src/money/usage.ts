/** Usage over time by key, model, target, session or label: from the totals, never from rows. */

import { invalid } from '../conversation/errors.ts';
import { isObject, tryParse } from '../lib/json/json.ts';
import { memberOf } from '../lib/json/json-members.ts';
import { Rests } from '../lib/loop/steps.ts';
import { usdOf } from '../lib/text/usd.ts';
import {
  ADDED,
  DAY,
  HOUR,
  MONTH,
  NO_SUMS,
  type SpendNames,
  type SpendReader,
  SUM_COLUMNS,
  type SumColumn,
  type Sums,
} from './schema.ts';
import { monthOf } from './totals.ts';

/** By group, in their order, and of all; undefined: rows of this time are not kept any more. */
export interface RequestCounts {
  readonly groups: readonly (number | undefined)[];
  readonly total: number | undefined;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const STEPS = ['hour', 'day', 'month'] as const;
export type UsageStep = (typeof STEPS)[number];
const COLUMNS = ['key', 'model', 'target'] as const;
const MAX_GROUPS = 10_000;
const USUAL_GROUPS = 1000;
/** Groups that are told apart in steps; more than a chart has colours for. */
const MAX_NAMED = 50;
/** Sessions of one day that are looked at: the dearest ones. */
const SESSIONS_OF_A_DAY = 500;
/** Steps of one answer: those of an hour are read from the totals of hours, of which there are many. */
const MAX_STEPS = { hour: 24 * 8, day: 1100, month: 1200 } as const;
const USUAL_SPAN_MS = 30 * DAY_MS;
const STEP_MS = { hour: HOUR_MS, day: DAY_MS, month: 28 * DAY_MS } as const;

export interface UsageQuery {
  readonly by: (typeof COLUMNS)[number] | 'session' | { readonly label: string };
  /** Milliseconds since 1970; `from` is included, `to` is not. Whole hours (UTC); of sessions, whole days. */
  readonly from: number;
  readonly to: number;
  /** Undefined: one sum for the whole time. */
  readonly step: UsageStep | undefined;
  /** Only this key. */
  readonly key: string | undefined;
  /** Groups (and steps of them) at most, those that cost most. */
  readonly limit: number;
  /** With steps: only so many groups, those that cost most, and one for all others. */
  readonly top: number | undefined;
}

export interface UsageGroup {
  /** Name of the key, the model, …; null: tries without this label. */
  readonly name: string | null;
  /** Where the step begins, in milliseconds since 1970; undefined without steps. */
  readonly start: number | undefined;
  /** All groups but the `top` ones together. */
  readonly others: boolean;
  readonly sums: Sums;
}

/**
 * Reads `by`, `from`, `to`, `step`, `key`, `limit` and `top` of a query string or a command line. Times are ISO 8601 or
 * a length before now (`90m`, `24h`, `30d`).
 * @throws GatewayError invalid_request that names the parameter
 */
export function readUsageQuery(
  get: (name: string) => string | null | undefined,
  now: number,
): UsageQuery {
  const by = byOf(get('by') ?? 'key');
  const unit = by === 'session' ? DAY_MS : HOUR_MS;
  const to = timeOf(get('to'), 'to', now) ?? now;
  const from = timeOf(get('from'), 'from', now) ?? to - USUAL_SPAN_MS;
  const step = get('step') ?? undefined;
  if (step !== undefined && !STEPS.includes(step as UsageStep)) {
    throw invalid(`'step' must be one of ${STEPS.join(', ')}.`, 'step');
  }
  if (by === 'session' && step === 'hour') {
    throw invalid("Sessions are summed by day: 'step' must be day or month.", 'step');
  }
  if (get('top') != null && step === undefined) {
    throw invalid("'top' goes with 'step': without steps, 'limit' gives the dearest.", 'top');
  }
  const query = {
    by,
    from: Math.floor(from / unit) * unit,
    to: Math.ceil(to / unit) * unit,
    step: step as UsageStep | undefined,
    key: get('key') ?? undefined,
    limit: limitOf(get('limit'), USUAL_GROUPS, MAX_GROUPS),
    top: get('top') == null ? undefined : limitOf(get('top'), 1, MAX_NAMED, 'top'),
  };
  if (query.to <= query.from) throw invalid("'to' must be after 'from'.", 'to');
  const { step: length } = query;
  if (length !== undefined && (query.to - query.from) / STEP_MS[length] > MAX_STEPS[length]) {
    throw invalid(`That would be more than ${MAX_STEPS[length]} steps.`, 'step');
  }
  return query;
}

function byOf(by: string): UsageQuery['by'] {
  if (by.startsWith('label.') && by.length > 6) return { label: by.slice(6) };
  const known = [...COLUMNS, 'session' as const].find((name) => name === by);
  if (known === undefined) {
    throw invalid("'by' must be key, model, target, session or label.NAME.", 'by');
  }
  return known;
}

const LENGTH = /^(\d{1,6})([mhd])$/;
const UNIT_MS: Readonly<Record<string, number>> = { m: 60_000, h: HOUR_MS, d: DAY_MS };

/** @throws GatewayError invalid_request that names the parameter */
export function timeOf(
  text: string | null | undefined,
  name: string,
  now: number,
): number | undefined {
  if (text === null || text === undefined) return undefined;
  const [, count, unit] = LENGTH.exec(text) ?? [];
  const time = unit === undefined ? Date.parse(text) : now - Number(count) * UNIT_MS[unit]!;
  if (!Number.isFinite(time) || time < 0) {
    throw invalid(
      `'${name}' must be a time such as 2027-01-31T12:00:00Z, or a length such as 24h or 30d.`,
      name,
    );
  }
  return time;
}

/** @throws GatewayError invalid_request */
export function limitOf(
  text: string | null | undefined,
  usual: number,
  most: number,
  name = 'limit',
): number {
  if (text === null || text === undefined) return usual;
  const limit = Number(text);
  if (!Number.isInteger(limit) || limit < 1 || limit > most) {
    throw invalid(`'${name}' must be a number from 1 to ${most}.`, name);
  }
  return limit;
}

interface Segment {
  readonly span: number;
  readonly from: number;
  readonly to: number;
}

/** A range as whole months, days and hours: the fewest rows to add up. */
function segments(from: number, to: number, largest: number): readonly Segment[] {
  const found: Segment[] = [];
  const add = (span: number, start: number, end: number) => {
    if (start < end) found.push({ span, from: start, to: end });
  };
  const split = (start: number, end: number, span: number): void => {
    if (start >= end) return;
    if (span === HOUR) {
      add(HOUR, start, end);
      return;
    }
    const [first, last] = within(start, end, span);
    if (first >= last) {
      split(start, end, span - 1);
      return;
    }
    split(start, first, span - 1);
    add(span, first, last);
    split(last, end, span - 1);
  };
  split(from, to, largest);
  return found;
}

/** The whole units of a span within a range. */
function within(from: number, to: number, span: number): readonly [number, number] {
  if (span === DAY) return [Math.ceil(from / DAY_MS) * DAY_MS, Math.floor(to / DAY_MS) * DAY_MS];
  const first = monthOf(from);
  return [first === from ? first : nextMonth(first), monthOf(to)];
}

function nextMonth(month: number): number {
  const date = new Date(month);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1);
}

const sum = (name: string) => `CAST(sum(${name}) AS bigint)`;
const SUMS = SUM_COLUMNS.map((name) => `${sum(name)} AS ${name}`).join(', ');

type Summed = Sums & { readonly name: string | number; readonly bucket: number };

/** The groups, the dearest first; with steps, in the order of time. Other work has its turns between. */
export async function usageBy(
  reader: SpendReader,
  query: UsageQuery,
): Promise<readonly UsageGroup[]> {
  const { by, step, limit, top } = query;
  const named =
    top === undefined
      ? undefined
      : (await usageBy(reader, { ...query, step: undefined, top: undefined, limit: top })).map(
          ({ name }) => name,
        );
  const groups = new Groups(named, step !== undefined);
  if (by === 'session') await addSessions(reader, query, named, groups);
  else await addTotals(reader, query, groups);
  const kept = groups.dearest().slice(0, top === undefined ? limit : MAX_GROUPS);
  return step === undefined ? kept : kept.toSorted((a, b) => a.start! - b.start!);
}

/** Groups by name and step. */
class Groups {
  readonly #groups = new Map<string, UsageGroup>();
  readonly #named: ReadonlySet<string | null> | undefined;

  /** @param named undefined: all are told apart */
  constructor(
    named: readonly (string | null)[] | undefined,
    private readonly steps: boolean,
  ) {
    this.#named = named && new Set(named);
  }

  add(name: string | null, bucket: number, row: Sums): void {
    const others = this.#named?.has(name) === false;
    const place = `${bucket} ${others ? 2 : name === null ? 0 : 1}${others ? '' : name}`;
    const group = this.#groups.get(place);
    if (group !== undefined) {
      for (const column of SUM_COLUMNS) group.sums[column] += row[column];
      return;
    }
    const sums = Object.fromEntries(SUM_COLUMNS.map((column) => [column, row[column]]));
    this.#groups.set(place, {
      name: others ? null : name,
      start: this.steps ? bucket : undefined,
      others,
      sums: sums as unknown as Sums,
    });
  }

  dearest(): readonly UsageGroup[] {
    return [...this.#groups.values()].toSorted(
      (a, b) => b.sums.cost - a.sums.cost || b.sums.tries - a.sums.tries,
    );
  }
}

export function bucketOf(step: UsageStep | undefined, names: SpendNames): string {
  if (step === undefined) return '0';
  return { hour: 'start', day: 'start - start % 86400000', month: names.month }[step];
}
export const keyCondition = ({ key }: UsageQuery) => (key === undefined ? '' : ' AND key = $key');
export const keyValues = ({ key }: UsageQuery): Readonly<Record<string, string>> =>
  key === undefined ? {} : { key };

/** The column that names the group of a row. */
export const columnOf = ({ by }: UsageQuery) => (typeof by === 'object' ? 'labels' : by);

/** The name of the group of a row, by the value of {@link columnOf}. */
export async function groupNames(
  reader: SpendReader,
  { by }: UsageQuery,
): Promise<(value: string | number | null) => string | null> {
  if (typeof by === 'string') return String;
  const labels = await labelValues(reader, by.label);
  return (value) => labels.get(Number(value)) ?? null;
}

async function addTotals(reader: SpendReader, query: UsageQuery, groups: Groups): Promise<void> {
  const { names } = reader;
  const rests = new Rests();
  const { from, to, step } = query;
  const nameOf = await groupNames(reader, query);
  const column = columnOf(query);
  // What was taken back leaves groups of nothing.
  const sql = (where: string) =>
    `SELECT ${column} AS name, ${bucketOf(step, names)} AS bucket, ${SUMS} FROM ${names.totals} WHERE (${where})${keyCondition(query)} GROUP BY bucket, ${column} HAVING sum(tries) <> 0`;
  const largest = step === 'hour' ? HOUR : step === 'day' ? DAY : MONTH;
  const parts = segments(from, to, largest);
  for (const asked of reader.remote ? [parts] : parts.map((part) => [part])) {
    const { where, values } = withinParts(asked);
    for (const row of await reader.all<Summed>(sql(where), { ...values, ...keyValues(query) })) {
      groups.add(nameOf(row.name), row.bucket, row);
    }
    await rests.rest();
  }
}

/** The rows of these parts of the time, in SQL. */
function withinParts(parts: readonly Segment[]) {
  const where = parts.map((_, i) => `span = $span${i} AND start >= $from${i} AND start < $to${i}`);
  const values = parts.flatMap(({ span, from, to }, i) => [
    [`span${i}`, span],
    [`from${i}`, from],
    [`to${i}`, to],
  ]);
  return {
    where: where.join(' OR '),
    values: Object.fromEntries(values) as Readonly<Record<string, number>>,
  };
}

/**
 * Day by day, since there may be as many sessions as requests: the dearest of each day are the candidates, and only
 * those of them that cost most are summed.
 * @param named only these are told apart; undefined: those that cost most
 */
async function addSessions(
  reader: SpendReader,
  query: UsageQuery,
  named: readonly (string | null)[] | undefined,
  groups: Groups,
): Promise<void> {
  const { step, limit } = query;
  const rests = new Rests();
  const names = JSON.stringify(named ?? (await dearestSessions(reader, query, limit)));
  const bucket = bucketOf(step, reader.names);
  const select = `${bucket} AS bucket, ${SUMS} FROM ${reader.names.sessionTotals} WHERE ${WITHIN}${keyCondition(query)}`;
  const sql = `SELECT session AS name, ${select} AND session IN ${reader.names.names} GROUP BY session, bucket HAVING sum(tries) <> 0`;
  const all = `SELECT ${select} GROUP BY bucket`;
  for (const span of spansOf(reader, query)) {
    const values = { ...span, ...keyValues(query) };
    const rows = await reader.all<Summed>(sql, { ...values, names });
    for (const row of rows) groups.add(String(row.name), row.bucket, row);
    await rests.rest();
    if (named === undefined) continue;
    // A session without a name is in no row: this is what is left beside the named ones.
    const left = new Map<number, Summed>();
    for (const row of await reader.all<Summed>(all, values)) left.set(row.bucket, { ...row });
    for (const row of rows) {
      const rest = left.get(row.bucket);
      if (rest !== undefined) for (const column of SUM_COLUMNS) rest[column] -= row[column];
    }
    for (const rest of left.values()) if (rest.tries > 0) groups.add(null, rest.bucket, rest);
    await rests.rest();
  }
}

const WITHIN = 'start >= $from AND start < $to';

/** Day by day where a long answer holds up others; a database elsewhere is asked once. */
function spansOf({ remote }: SpendReader, { from, to }: UsageQuery) {
  if (remote === true) return [{ from, to }];
  const days: { from: number; to: number }[] = [];
  for (let day = from; day < to; day += DAY_MS) days.push({ from: day, to: day + DAY_MS });
  return days;
}

async function dearestSessions(
  reader: SpendReader,
  query: UsageQuery,
  limit: number,
): Promise<readonly string[]> {
  const rests = new Rests();
  type Candidate = { readonly name: string; readonly cost: number; readonly tries: number };
  const candidates = new Map<string, { cost: number; tries: number }>();
  const days = `SELECT session AS name, ${sum('cost')} AS cost, ${sum('tries')} AS tries,
      row_number() OVER (PARTITION BY start ORDER BY sum(cost) DESC, sum(tries) DESC) AS place
    FROM ${reader.names.sessionTotals} WHERE ${WITHIN}${keyCondition(query)} GROUP BY session, start`;
  const sql = `SELECT name, ${sum('cost')} AS cost, ${sum('tries')} AS tries FROM (${days}) AS days
    WHERE place <= $most GROUP BY name ORDER BY 2 DESC, 3 DESC LIMIT $limit`;
  const most = Math.max(limit, SESSIONS_OF_A_DAY);
  for (const span of spansOf(reader, query)) {
    const values = { ...span, most, limit: most, ...keyValues(query) };
    for (const { name, cost, tries } of await reader.all<Candidate>(sql, values)) {
      const known = candidates.get(name);
      if (known === undefined) candidates.set(name, { cost, tries });
      else {
        known.cost += cost;
        known.tries += tries;
      }
    }
    await rests.rest();
  }
  return [...candidates]
    .toSorted(([, a], [, b]) => b.cost - a.cost || b.tries - a.tries)
    .slice(0, limit)
    .map(([name]) => name);
}

/** The values of one label by the id of the labels. */
async function labelValues(
  reader: SpendReader,
  name: string,
): Promise<ReadonlyMap<number, string>> {
  const found = new Map<number, string>();
  for (const { id, text } of await reader.all<{ id: number; text: string }>(
    `SELECT id, text FROM ${reader.names.texts}`,
  )) {
    const labels = tryParse(text);
    const value = isObject(labels)
      ? memberOf(labels as Readonly<Record<string, unknown>>, name)
      : undefined;
    if (typeof value === 'string') found.set(id, value);
  }
  return found;
}

/** The names of all labels with which something was spent. */
export async function labelNames(reader: SpendReader): Promise<readonly string[]> {
  const names = new Set<string>();
  const rows = await reader.all<{ text: string }>(
    `SELECT text FROM ${reader.names.texts} WHERE id IN (SELECT labels FROM ${reader.names.totals} WHERE span = $span)`,
    { span: MONTH },
  );
  for (const { text } of rows) {
    const labels = tryParse(text);
    if (isObject(labels)) for (const name of Object.keys(labels)) names.add(name);
  }
  return [...names].toSorted();
}

/** Nano-USD, by group in their order, and of all; undefined: it is not known. */
export interface CacheCosts {
  readonly groups: readonly (number | undefined)[];
  readonly total: number | undefined;
}

export interface UsageNames {
  /** The name of a key, for groups by key. */
  readonly nameOf?: (key: string) => string | undefined;
  /** How many requests the tries belong to. */
  readonly requests?: RequestCounts;
  /** Cost of lost prompt caches, in nano-USD. */
  readonly lost?: CacheCosts;
  /** What prompt caches saved. */
  readonly saved?: CacheCosts;
  /** The labels by which usage can be grouped, too. */
  readonly labels?: readonly string[];
}

/** As `GET /admin/v1/usage` gives it. */
export function usageJson(
  query: UsageQuery,
  groups: readonly UsageGroup[],
  { nameOf, labels, requests, lost, saved }: UsageNames = {},
) {
  const { by, from, to, step } = query;
  return {
    by: typeof by === 'object' ? `label.${by.label}` : by,
    from: new Date(from).toISOString(),
    to: new Date(to).toISOString(),
    step: step ?? null,
    ...(labels !== undefined && { labels }),
    ...(requests !== undefined && {
      total: {
        ...sumsJson(totalOf(groups)),
        requests: requests.total ?? null,
        ...(lost && { cache_lost_usd: usdOrNull(lost.total) }),
      },
    }),
    data: groups.map(({ name, start, others, sums }, i) => ({
      name,
      ...(by === 'key' && name !== null && keyName(nameOf?.(name))),
      ...(others && { others }),
      ...(start !== undefined && { from: new Date(start).toISOString() }),
      ...sumsJson(sums),
      ...(requests !== undefined && { requests: requests.groups[i] ?? null }),
      ...(lost && { cache_lost_usd: usdOrNull(lost.groups[i]) }),
      ...(saved && { cache_saved_usd: usdOrNull(saved.groups[i]) }),
    })),
  };
}

/** A group, by its name and where its step begins. */
export const placeOf = (name: string | null, start: number | undefined): string =>
  JSON.stringify([name, start]);

/** All groups together. */
export function totalOf(groups: readonly UsageGroup[]): Sums {
  const total = { ...NO_SUMS };
  for (const { sums } of groups) for (const column of SUM_COLUMNS) total[column] += sums[column];
  return total;
}

const usdOrNull = (nanoUsd: number | undefined) => (nanoUsd === undefined ? null : usdOf(nanoUsd));

const keyName = (name: string | undefined): { readonly key_name?: string } =>
  name === undefined ? {} : { key_name: name };

const sumsJson = (sums: Sums) => ({
  tries: sums.tries,
  tokens: {
    input: sums.input,
    output: sums.output,
    cache_read: sums.cache_read,
    cache_write: sums.cache_write,
    cache_write_1h: sums.cache_write_1h,
    reasoning: sums.reasoning,
  },
  searches: sums.searches,
  cost_usd: usdOf(sums.cost),
  unpriced: sums.unpriced,
  estimated: sums.estimated,
  ...Object.fromEntries(
    ADDED.flatMap(({ name, isSummed }) => (isSummed ? [[name, sums[name as SumColumn]]] : [])),
  ),
});
