/** Spend rows, newest first, page by page or as CSV. */

import { invalid } from '../conversation/errors.ts';
import { isObject, type JsonObject, tryParse } from '../lib/json/json.ts';
import { othersTurn } from '../lib/loop/steps.ts';
import { withoutTrailing } from '../lib/text/trim-end.ts';
import { usdText } from '../lib/text/usd.ts';
import { words } from '../lib/text/words.ts';
import {
  ADDED,
  type Column,
  columnsWith,
  ROW_FILTERS,
  type RowsQuery,
  type SpendReader,
  type StoredRow,
} from './schema.ts';
import { limitOf, timeOf } from './usage.ts';

const USUAL_ROWS = 100;
const MAX_ROWS = 1000;
/** Rows that are looked at between two turns of the event loop. */
const LOOKED_AT_ONCE = 2000;
/** Rows stand in the order in which they were written. A clock that was set back by less than this hides none. */
const CLOCK_MS = 2 * 86_400_000;

/** @throws GatewayError invalid_request that names the parameter */
export function readRowsQuery(
  get: (name: string) => string | null | undefined,
  now: number,
): RowsQuery {
  const filters: Record<string, string> = {};
  for (const name of ROW_FILTERS) {
    const value = get(name);
    if (value !== null && value !== undefined) filters[name] = value;
  }
  return {
    from: timeOf(get('from'), 'from', now) ?? 0,
    to: timeOf(get('to'), 'to', now) ?? Number.MAX_SAFE_INTEGER,
    filters,
    ...cursorOf(get('before') ?? undefined),
    limit: limitOf(get('limit'), USUAL_ROWS, MAX_ROWS),
  };
}

/** `12`, or `1790000000000-12` where rows are in the order of time. */
function cursorOf(text: string | undefined): Pick<RowsQuery, 'before' | 'beforeTime'> {
  if (text === undefined) return { before: Number.MAX_SAFE_INTEGER };
  const [, time, id] = /^(?:(\d{1,15})-)?(\d{1,15})$/.exec(text) ?? [];
  const before = Number(id);
  if (!(before >= 1)) throw wrongCursor();
  return { before, ...(time !== undefined && { beforeTime: Number(time) }) };
}

const wrongCursor = () => invalid("'before' must be the 'next' of the page before.", 'before');

/** One page as `GET /admin/v1/spend` gives it; `next` is null on the last one. */
export async function spendPage(
  reader: SpendReader,
  query: RowsQuery,
  keyNames: KeyNames = () => new Map(),
): Promise<JsonObject> {
  const rows: StoredRow[] = [];
  for await (const found of scan(reader, query)) {
    rows.push(...found);
    if (rows.length >= query.limit) break;
  }
  const page = rows.slice(0, query.limit);
  const more = rows.length >= query.limit;
  const { id, time } = page.at(-1) ?? { id: 0, time: 0 };
  const next = reader.scan === undefined ? String(id) : `${time}-${id}`;
  const names = new Map<string, string>();
  await learnNames(names, page, keyNames);
  const data = page.map((row) => ({ ...rowJson(row), key_name: names.get(row.key) || null }));
  return { data, has_more: more, next: more ? next : null };
}

/** Names by id of those of these keys that have one. */
export type KeyNames = (
  ids: readonly string[],
) => ReadonlyMap<string, string> | Promise<ReadonlyMap<string, string>>;

/** All rows of the query as CSV (RFC 4180), in pieces. */
export async function* spendCsv(
  reader: SpendReader,
  query: RowsQuery,
  keyNames: KeyNames = () => new Map(),
): AsyncGenerator<string> {
  const names = new Map<string, string>();
  const replica = reader.scan === undefined ? [] : [REPLICA];
  const keyName: CsvColumn = ['key_name', ({ key }) => names.get(key) ?? null];
  const price = priceColumns();
  const columns = [
    ...CSV_COLUMNS,
    ...replica,
    COST_USD,
    ...PRICE_FACTS.map(price),
    keyName,
    // Behind all others: tables that read a column by its place go on.
    ...ADDED.flatMap((column) => [
      csvColumn(column),
      ...(LATER_PRICE_FACTS[column.name] ?? []).map(price),
    ]),
  ];
  yield `${columns.map(([name]) => name).join(',')}\r\n`;
  for await (const found of scan(reader, query)) {
    await learnNames(names, found, keyNames);
    const lines = found.map((row) => columns.map(([, value]) => cell(value(row))).join(','));
    if (lines.length > 0) yield `${lines.join('\r\n')}\r\n`;
  }
}

/** Most keys whose names are kept; beyond, they are asked for again. */
const MAX_NAMES = 10_000;

async function learnNames(
  names: Map<string, string>,
  rows: readonly StoredRow[],
  keyNames: KeyNames,
): Promise<void> {
  const unknown = [...new Set(rows.map(({ key }) => key))].filter((key) => !names.has(key));
  if (unknown.length === 0) return;
  if (names.size > MAX_NAMES) names.clear();
  const found = await keyNames(unknown);
  // A key of the configuration has its name for an id; a person has no other name.
  for (const key of unknown) names.set(key, found.get(key) ?? (key.startsWith('hk_') ? '' : key));
}

/** The rows of a query in pieces, with a turn of the event loop between two. */
async function* scan(reader: SpendReader, query: RowsQuery): AsyncGenerator<readonly StoredRow[]> {
  if ((reader.scan === undefined) !== (query.beforeTime === undefined)) {
    if (query.before !== Number.MAX_SAFE_INTEGER) throw wrongCursor();
  }
  if (reader.scan !== undefined) {
    yield* reader.scan(query);
    return;
  }
  const { from, to, filters, before } = query;
  const conditions = Object.keys(filters).map((name) => ` AND spend.${name} = $${name}`);
  const where = `time >= $from AND time < $to${conditions.join('')}`;
  const select = `SELECT spend.*, texts.text AS labels_text, prices.text AS price_text FROM spend
    JOIN texts ON texts.id = spend.labels LEFT JOIN texts AS prices ON prices.id = spend.price`;
  const sql = `${select} WHERE spend.id >= $least AND spend.id < $before AND ${where} ORDER BY spend.id DESC`;
  const ranges = await rangesOf(reader, filters.session);
  const imports = await importsOf(reader);
  for (const [first, last, inOrder] of splitAt(ranges, imports)) {
    for (let below = Math.min(before, last + 1); below > first; ) {
      const least = Math.max(first, below - LOOKED_AT_ONCE);
      yield await reader.all<StoredRow>(sql, { from, to, ...filters, least, before: below });
      below = least;
      if (!inOrder) {
        await othersTurn();
        continue;
      }
      const [older] = await reader.all<{ time: number }>(
        'SELECT time FROM spend WHERE id <= $least ORDER BY id DESC LIMIT 1',
        { least },
      );
      if (older !== undefined && older.time < from - CLOCK_MS) {
        if (imports.length === 0) return;
        break;
      }
      await othersTurn();
    }
  }
}

/** Ids of rows that a move wrote: they stand behind rows that are newer. The newest ids first. */
async function importsOf(reader: SpendReader): Promise<readonly IdRange[]> {
  const there = await reader.all("SELECT 1 FROM sqlite_master WHERE name = 'imports'");
  if (there.length === 0) return [];
  const found = await reader.all<{ readonly first: number; readonly last: number }>(
    'SELECT first, last FROM imports ORDER BY first DESC',
  );
  return found.map(({ first, last }) => [first, last]);
}

/** Ranges, cut where imported rows begin and end; those between are in the order of time. */
function splitAt(
  ranges: readonly IdRange[],
  imports: readonly IdRange[],
): readonly (readonly [...IdRange, inOrder: boolean])[] {
  return ranges.flatMap(([first, last]) => {
    const parts: (readonly [...IdRange, inOrder: boolean])[] = [];
    let top = last;
    for (const [from, to] of imports) {
      if (from > top || to < first) continue;
      if (to < top) parts.push([to + 1, top, true]);
      parts.push([Math.max(from, first), Math.min(to, top), false]);
      top = from - 1;
    }
    if (top >= first) parts.push([first, top, true]);
    return parts;
  });
}

type IdRange = readonly [first: number, last: number];

/** Where the rows of a session may be, or all rows: the newest ids first, without an overlap. */
async function rangesOf(
  reader: SpendReader,
  session: string | undefined,
): Promise<readonly IdRange[]> {
  const all = 'SELECT min(id) AS first, max(id) AS last FROM spend HAVING last IS NOT NULL';
  const ofSession = `SELECT first_row AS first, last_row AS last FROM session_totals
    WHERE session = $session AND first_row IS NOT NULL ORDER BY last_row DESC`;
  type Found = { readonly first: number; readonly last: number };
  const found = await (session === undefined
    ? reader.all<Found>(all)
    : reader.all<Found>(ofSession, { session }));
  const ranges: IdRange[] = [];
  for (const { first, last } of found) {
    const [newerFirst, newerLast] = ranges.at(-1) ?? [Number.POSITIVE_INFINITY, 0];
    if (last < newerFirst) ranges.push([first, last]);
    else ranges[ranges.length - 1] = [Math.min(first, newerFirst), newerLast];
  }
  return ranges;
}

const rowJson = (row: StoredRow): JsonObject => ({
  id: String(row.id),
  request: row.request,
  time: new Date(row.time).toISOString(),
  key: row.key,
  labels: tryParse(row.labels_text) ?? {},
  session: row.session,
  client: row.client,
  model: row.model,
  target: row.target,
  upstream_key: row.upstream_key,
  hop: row.hop,
  attempt: row.attempt,
  status: row.status,
  ended: row.ended,
  tokens: {
    input: row.input,
    output: row.output,
    cache_read: row.cache_read,
    cache_write: row.cache_write,
    cache_write_1h: row.cache_write_1h,
    reasoning: row.reasoning,
  },
  searches: row.searches,
  estimated: row.estimated === 1,
  cost_nano_usd: row.cost,
  price: row.price_text === null ? null : (tryParse(row.price_text) ?? null),
  trace_id: row.trace,
  ...Object.fromEntries(ADDED.map(({ name }) => [name, storedValue(row, name)])),
  ...(row.replica !== undefined && { replica: row.replica }),
});

type Cell = string | number | null;

type CsvColumn = readonly [name: string, value: (row: StoredRow) => Cell];

/** Columns that have another name or form than in the tables. */
const IN_CSV: Readonly<Partial<Record<Column['name'], CsvColumn>>> = {
  time: ['time', ({ time }) => new Date(time).toISOString()],
  labels: ['labels', (row) => row.labels_text],
  estimated: ['estimated', ({ estimated }) => (estimated === 1 ? 'true' : 'false')],
  cost: ['cost_nano_usd', ({ cost }) => cost],
  price: ['price', (row) => row.price_text],
  trace: ['trace_id', ({ trace }) => trace],
};

const csvColumn = ({ name }: Column): CsvColumn =>
  IN_CSV[name] ?? [name, (row) => storedValue(row, name)];

const CSV_COLUMNS: readonly CsvColumn[] = [
  ['id', ({ id }) => id],
  ...columnsWith([]).map(csvColumn),
];

function storedValue(row: StoredRow, name: string): Cell {
  return (row as unknown as Readonly<Record<string, Cell>>)[name] ?? null;
}

const COST_USD: CsvColumn = ['cost_usd', ({ cost }) => (cost === null ? null : usdText(cost))];

const PRICE_FACTS = words(`
  source model effective_from above service_tier input output cached cache_write cache_write_1h
  reasoning search request
`);
/** Those that came later, behind the column of rows that was the last one then: a new one stands at the end of the last list. */
const LATER_PRICE_FACTS: Readonly<Record<string, readonly string[]>> = {
  requests: words(`
    region factor minute character input_audio input_text output_audio output_text
  `),
};

/** What `price` says, one column each: `price_input`, … */
function priceColumns(): (fact: string) => CsvColumn {
  let read: { readonly text: string | null; readonly facts: JsonObject } = {
    text: null,
    facts: {},
  };
  // Rows of one target, which stand together, have the same price.
  const factsOf = ({ price_text: text }: StoredRow): JsonObject => {
    if (text !== read.text) {
      const value = text === null ? undefined : tryParse(text);
      read = { text, facts: isObject(value) ? value : {} };
    }
    return read.facts;
  };
  return (fact) => [
    `price_${fact}`,
    (row) => {
      const value = factsOf(row)[fact];
      if (typeof value === 'number') return decimalText(value);
      return typeof value === 'string' ? value : null;
    },
  ];
}

/** A price without an exponent: six decimals as it is written, and twelve digits where a factor was applied. */
const decimalText = (value: number): string =>
  String(value).includes('e') ? withoutTrailing(value.toFixed(18), '0') : String(value);

const REPLICA: CsvColumn = ['replica', ({ replica }) => replica ?? null];

/**
 * Clients choose some of these texts: a table program must not take one for a formula. Wide characters are some programs'
 * for the usual ones, and control characters before them are skipped.
 */
const FORMULA = /^[=+\-@＝＋－＠\t\r\n\0]/;

/** One value as RFC 4180 has it; empty for null. */
export function cell(value: Cell): string {
  if (value === null) return '';
  if (typeof value === 'number') return String(value);
  const safe = FORMULA.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
