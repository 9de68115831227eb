/** Usage over time by key, model, target, session or label: from the totals, never from rows. */

import { invalid } from '../conversation/errors.ts';
import type { JsonObject } from '../lib/json/json.ts';
import { isObject, tryParse } from '../lib/json/json.ts';
import { memberOf } from '../lib/json/json-members.ts';
import { usdOf } from '../lib/text/usd.ts';
import { DAY, HOUR, MONTH, type SpendReader, SUM_COLUMNS, type Sums } from './schema.ts';
import { monthOf } from './totals.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const STEPS = ['hour', 'day', 'month'] as const;
export type UsageStep = (typeof STEPS)[number];
const COLUMNS = ['key', 'model', 'target'] as const;
const MOST_GROUPS = 10_000;
const USUAL_GROUPS = 1000;
/** Steps of one answer: those of an hour are read from the totals of hours, of which there are many. */
const MOST_STEPS = { hour: 24 * 8, day: 1100, month: 1200 } as const;
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
}

export interface UsageGroup {
  /** Of the key, model, …; null: tries without this label. */
  readonly name: string | null;
  /** Where the step begins, in milliseconds since 1970; undefined without steps. */
  readonly start: number | undefined;
  readonly sums: Sums;
}

/**
 * Reads `by`, `from`, `to`, `step`, `key` and `limit` of a query string or a command line. Times are ISO 8601 or
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
  const query = {
    by,
    from: Math.floor(from / unit) * unit,
    to: Math.ceil(to / unit) * unit,
    step: step as UsageStep | undefined,
    key: get('key') ?? undefined,
    limit: limitOf(get('limit'), USUAL_GROUPS, MOST_GROUPS),
  };
  if (query.to <= query.from) throw invalid("'to' must be after 'from'.", 'to');
  const { step: length } = query;
  if (length !== undefined && (query.to - query.from) / STEP_MS[length] > MOST_STEPS[length]) {
    throw invalid(`That would be more than ${MOST_STEPS[length]} steps.`, 'step');
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
export function limitOf(text: string | null | undefined, usual: number, most: number): number {
  if (text === null || text === undefined) return usual;
  const limit = Number(text);
  if (!Number.isInteger(limit) || limit < 1 || limit > most) {
    throw invalid(`'limit' must be a number from 1 to ${most}.`, 'limit');
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

const SUMS = SUM_COLUMNS.map((name) => `sum(${name}) AS ${name}`).join(', ');
const BUCKETS: Readonly<Record<UsageStep, string>> = {
  hour: 'start',
  day: 'start - start % 86400000',
  month: "CAST(strftime('%s', start / 1000, 'unixepoch', 'start of month') AS INTEGER) * 1000",
};

type Summed = Sums & { readonly name: string | number; readonly bucket: number };

/** The groups, the dearest first; with steps, in the order of time. */
export function usageBy(reader: SpendReader, query: UsageQuery): readonly UsageGroup[] {
  const { by, from, to, step, key, limit } = query;
  const bucket = step === undefined ? '0' : BUCKETS[step];
  const mine = key === undefined ? '' : ' AND key = $key';
  const groups = new Map<string, { name: string | null; start: number | undefined; sums: Sums }>();
  const labels = typeof by === 'object' ? labelValues(reader, by.label) : undefined;
  const add = ({ name, bucket: start, ...sums }: Summed) => {
    const known = labels === undefined ? String(name) : (labels.get(Number(name)) ?? null);
    const place = `${start} ${known === null ? 0 : 1}${known}`;
    const group = groups.get(place);
    if (group === undefined) {
      groups.set(place, { name: known, start: step === undefined ? undefined : start, sums });
    } else {
      for (const column of SUM_COLUMNS) group.sums[column] += sums[column];
    }
  };
  const values: Readonly<Record<string, string>> = key === undefined ? {} : { key };
  if (by === 'session') {
    const sql = `SELECT session AS name, ${bucket} AS bucket, ${SUMS} FROM session_totals WHERE start >= $from AND start < $to${mine} GROUP BY bucket, session ORDER BY cost DESC LIMIT $limit`;
    for (const row of reader.all<Summed>(sql, { from, to, limit, ...values })) add(row);
  } else {
    const column = labels === undefined ? (by as string) : 'labels';
    const sql = `SELECT ${column} AS name, ${bucket} AS bucket, ${SUMS} FROM totals WHERE span = $span AND start >= $from AND start < $to${mine} GROUP BY bucket, ${column}`;
    const largest = step === 'hour' ? HOUR : step === 'day' ? DAY : MONTH;
    for (const part of segments(from, to, largest)) {
      for (const row of reader.all<Summed>(sql, { ...part, ...values })) add(row);
    }
  }
  const dearest = [...groups.values()].toSorted(
    (a, b) => b.sums.cost - a.sums.cost || b.sums.tries - a.sums.tries,
  );
  const kept = dearest.slice(0, limit);
  return step === undefined ? kept : kept.toSorted((a, b) => a.start! - b.start!);
}

/** The values of one label by the id of the labels. */
function labelValues(reader: SpendReader, name: string): ReadonlyMap<number, string> {
  const found = new Map<number, string>();
  for (const { id, text } of reader.all<{ id: number; text: string }>(
    'SELECT id, text FROM texts',
  )) {
    const labels = tryParse(text);
    const value = isObject(labels)
      ? memberOf(labels as Readonly<Record<string, unknown>>, name)
      : undefined;
    if (typeof value === 'string') found.set(id, value);
  }
  return found;
}

/** As `GET /admin/v1/usage` gives it. */
export function usageJson(query: UsageQuery, groups: readonly UsageGroup[]): JsonObject {
  const { by, from, to, step } = query;
  return {
    by: typeof by === 'object' ? `label.${by.label}` : by,
    from: new Date(from).toISOString(),
    to: new Date(to).toISOString(),
    step: step ?? null,
    data: groups.map(({ name, start, sums }) => ({
      name,
      ...(start !== undefined && { from: new Date(start).toISOString() }),
      ...sumsJson(sums),
    })),
  };
}

const sumsJson = (sums: Sums): JsonObject => ({
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
});
