/** The reports of the admin API about spend: usage over time, and the rows of single tries. */

import { invalid } from '../conversation/errors.ts';
import { usdOf, usdText } from '../lib/text/usd.ts';
import { lostCosts, savedCosts } from './row-reports.ts';
import { cell, readRowsQuery, spendCsv, spendPage } from './rows.ts';
import { type SpendReader, SUM_COLUMNS } from './schema.ts';
import {
  labelNames,
  readUsageQuery,
  totalOf,
  type UsageGroup,
  type UsageNames,
  type UsageQuery,
  usageBy,
  usageJson,
} from './usage.ts';

/** What was spent, with everything that has ended here until now. */
export interface SpendSource {
  /** @throws SQLiteError, or GatewayError where the shared database is away */
  read<T>(question: (reader: SpendReader) => T | Promise<T>): Promise<T>;
}

/** What a key has spent since a day or a month (UTC) began. */
export interface SpentReport {
  readonly since: string;
  readonly cost_usd: number;
  /** All kinds together, cached and reasoning ones too. */
  readonly tokens: number;
  readonly requests: number;
  /** A request that was tried again has several. */
  readonly tries: number;
  /** Tries whose price is unknown: their cost is not in `cost_usd`. */
  readonly unpriced: number;
}

export interface KeySpent {
  readonly today: SpentReport;
  readonly this_month: SpentReport;
}

/** @throws SQLiteError, or GatewayError where the shared database is away */
export async function spentBy(source: SpendSource, key: string, now: number): Promise<KeySpent> {
  const date = new Date(now);
  const [year, month, day] = [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()];
  return source.read(async (reader) => ({
    today: await spentSince(reader, key, Date.UTC(year, month, day), now),
    this_month: await spentSince(reader, key, Date.UTC(year, month, 1), now),
  }));
}

async function spentSince(
  reader: SpendReader,
  key: string,
  from: number,
  now: number,
): Promise<SpentReport> {
  const to = (Math.floor(now / HOUR_MS) + 1) * HOUR_MS;
  const query = { by: 'key', from, to, step: undefined, key, limit: 1, top: undefined } as const;
  const [group] = await usageBy(reader, query);
  const sums = group?.sums;
  const tokens =
    sums === undefined
      ? 0
      : sums.input + sums.output + sums.cache_read + sums.cache_write + sums.reasoning;
  return {
    since: new Date(from).toISOString().replace(/\.\d+Z$/, 'Z'),
    cost_usd: usdOf(sums?.cost ?? 0),
    tokens,
    requests: sums?.requests ?? 0,
    tries: sums?.tries ?? 0,
    unpriced: sums?.unpriced ?? 0,
  };
}

const HOUR_MS = 3_600_000;

type Report = (query: URLSearchParams) => Promise<Response>;

const USAGE = ['by', 'from', 'to', 'step', 'key', 'limit', 'top', 'format', 'caches'];
/** What caches saved and cost is computed from rows: of more, it would hold up the gateway. */
const MAX_CACHE_ROWS = 20_000;
const SPEND = [
  ...['from', 'to', 'key', 'model', 'target', 'session', 'request', 'ended', 'client'],
  ...['before', 'limit', 'format'],
];

/** `GET /admin/v1/usage` and `GET /admin/v1/spend`. @throws GatewayError invalid_request that names the parameter */
export function spendReports(
  source: SpendSource,
  nameOf: NonNullable<UsageNames['nameOf']>,
): {
  readonly usage: Report;
  readonly spend: Report;
} {
  const keyNames = (ids: readonly string[]) =>
    new Map(ids.flatMap((id) => entryOf(id, nameOf(id))));
  return {
    async usage(search) {
      const query = readUsageQuery(only(search, USAGE), Date.now());
      const csv = isCsv(search);
      return source.read(async (reader) => {
        const groups = await usageBy(reader, query);
        if (csv) {
          return new Response(usageCsv(query, groups, { nameOf }), { headers: file('usage') });
        }
        const labels = await labelNames(reader);
        if (search.get('caches') !== 'true' || totalOf(groups).tries > MAX_CACHE_ROWS) {
          return Response.json(usageJson(query, groups, { nameOf, labels }));
        }
        const lost = await lostCosts(reader, query, groups);
        const saved = await savedCosts(reader, query, groups);
        return Response.json(usageJson(query, groups, { nameOf, labels, lost, saved }));
      });
    },
    async spend(search) {
      const query = readRowsQuery(only(search, SPEND), Date.now());
      if (!isCsv(search)) {
        return Response.json(await source.read((reader) => spendPage(reader, query, keyNames)));
      }
      const pieces = await source.read((reader) => spendCsv(reader, query, keyNames));
      return new Response(streamOf(pieces), { headers: file('spend') });
    },
  };
}

const entryOf = (id: string, name: string | undefined): readonly (readonly [string, string])[] =>
  name === undefined ? [] : [[id, name]];

function isCsv(search: URLSearchParams): boolean {
  const format = search.get('format') ?? 'json';
  if (format === 'json' || format === 'csv') return format === 'csv';
  throw invalid("'format' must be json or csv.", 'format');
}

const file = (name: string) => ({
  'content-type': 'text/csv; charset=utf-8',
  'content-disposition': `attachment; filename="${name}.csv"`,
});

/** Unknown parameters are refused: a misspelled filter would return the rows of all keys. */
function only(search: URLSearchParams, known: readonly string[]) {
  for (const name of search.keys()) {
    if (!known.includes(name)) throw invalid(`Unknown parameter '${name.slice(0, 50)}'.`, name);
  }
  return (name: string) => search.get(name);
}

function streamOf(pieces: AsyncGenerator<string>): ReadableStream<Uint8Array> {
  const utf8 = new TextEncoder();
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await pieces.next();
      if (done === true) controller.close();
      else controller.enqueue(utf8.encode(value));
    },
    async cancel() {
      await pieces.return(undefined);
    },
  });
}

/** RFC 4180; `cost_usd` is a plain decimal. */
export function usageCsv(
  { by, step }: UsageQuery,
  groups: readonly UsageGroup[],
  { nameOf }: UsageNames = {},
): string {
  const what = typeof by === 'object' ? `label.${by.label}` : by;
  const counts = SUM_COLUMNS.filter((column) => column !== 'cost');
  const named = by === 'key';
  const head = [
    ...(step === undefined ? [] : ['from']),
    what,
    ...(named ? ['key_name'] : []),
    'cost_usd',
    ...counts,
  ];
  const lines = groups.map(({ name, start, others, sums }) =>
    [
      ...(start === undefined ? [] : [new Date(start).toISOString()]),
      cell(others ? '(others)' : name),
      ...(named ? [cell(nameOf?.(name ?? '') ?? null)] : []),
      usdText(sums.cost),
      ...counts.map((column) => cell(sums[column])),
    ].join(','),
  );
  return `${[head.map((title) => cell(title)).join(','), ...lines].join('\r\n')}\r\n`;
}
