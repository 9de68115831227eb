/** The list of exchanges: the filter of a query, a page of rows, and whether a single row matches a filter. */

import { type Static, Type } from '@sinclair/typebox';
import { invalid } from '../../conversation/errors.ts';
import { tryParse } from '../../lib/json/json.ts';
import { runInSlices } from '../../lib/loop/steps.ts';
import { amountIn } from '../../lib/text/amounts.ts';
import { costAt, type Prices, rateTable, usageCounted } from '../../samples/replay/cost.ts';
import { checkGlob, FILTER_NAMES, parseFilter } from '../../samples/replay/filter.ts';
import {
  SAMPLE_SORTS,
  type SampleFilter,
  type SampleRow,
  type SampleSort,
  type SampleStore,
} from '../../samples/sample.ts';
import { nameTest, noteTest } from '../../samples/store/index-query.ts';
import { type Placed, sortValue } from '../../samples/store/row-order.ts';
import type { Viewer } from './guard.ts';
import type { KeyNames } from './options.ts';
import { wholeNumber } from './parameters.ts';
import type { Found, Hit } from './search/text-search.ts';

const MADE = { title: 'made', description: '"traffic" or "bisect"' };

/** Conditions that exchanges must meet; empty ones count as left out. */
export const FILTER_QUERY = Type.Partial(
  Type.Object({
    since: Type.String(),
    until: Type.String(),
    status: Type.String(),
    model: Type.String(),
    note: Type.String(),
    session: Type.String(),
    entry: Type.String(),
    error: Type.String(),
    key: Type.String(),
    client: Type.String(),
    target: Type.String(),
    made: Type.String({ ...MADE, pattern: '^(traffic|bisect)?$' }),
    slower: Type.String(),
    cost: Type.String(),
    sort: Type.String(),
    q: Type.String({ title: 'q', description: 'a text', maxLength: 500 }),
  }),
);

/** Rows that come with the page. */
export const FIRST_ROWS = 100;

export const LIST_QUERY = Type.Object({
  ...FILTER_QUERY.properties,
  limit: wholeNumber('limit', { least: 1, most: 500, fallback: 100 }),
  cursor: Type.Optional(Type.String()),
});

export type FilterQuery = Static<typeof FILTER_QUERY>;

/** Newest first. */
export const NEWEST: SampleSort = { by: 'time', up: false };

const EPOCH = /^\d{10,14}$/;

/** The filter of a query, limited to what this viewer may see. @throws GatewayError invalid_request */
export function filterOfQuery(query: FilterQuery, { owner, keys }: Viewer): SampleFilter {
  const now = Date.now();
  const given: Record<string, string> = {};
  const times: { since?: number; until?: number } = {};
  for (const name of FILTER_NAMES) {
    const value = query[name];
    if (value === undefined) continue;
    const time = name === 'since' || name === 'until';
    if (time && EPOCH.test(value)) times[name] = Number(value);
    else given[name] = value;
  }
  const further = FURTHER.flatMap(([name, read]) =>
    query[name] ? [[name, read(query[name])]] : [],
  );
  const q = query.q?.trim() ?? '';
  return {
    ...parseFilter(given, now),
    ...times,
    ...(owner !== undefined && { owner }),
    ...(Object.fromEntries(further) as Partial<SampleFilter>),
    ...(query.key && { key: keys?.idOf(query.key) ?? query.key }),
    ...(q !== '' && { q }),
  };
}

/** Conditions that commands do not know, and how each is read. */
const FURTHER: readonly (readonly [keyof FilterQuery, (text: string) => unknown])[] = [
  ['client', pattern],
  ['target', pattern],
  ['made', String],
  ['slower', parseDuration],
  ['cost', parseUsd],
  ['sort', parseSort],
];

/** @throws GatewayError invalid_request */
function pattern(text: string): string {
  checkGlob(text);
  return text;
}

/** `800ms`, `5s`, `2m`; a bare number counts milliseconds. @throws GatewayError invalid_request */
function parseDuration(written: string): number {
  const isBare = /\d\s*$/.test(written);
  const seconds = amountIn(isBare ? `${written.trim()}ms` : written, 'seconds');
  if (seconds !== undefined) return seconds * 1000;
  throw invalid(`"${written}" is not a duration: write 800ms, 5s, 2m.`);
}

/** `0.05` or `$0.05`. @throws GatewayError invalid_request */
function parseUsd(written: string): number {
  const usd = Number(written.trim().replace('$', ''));
  if (Number.isFinite(usd) && usd >= 0) return usd;
  throw invalid(`"${written}" is not an amount: write USD, such as 0.05.`);
}

/** `cost` (largest first) or `cost:up`. @throws GatewayError invalid_request */
function parseSort(written: string): SampleSort {
  const [name, direction] = written.split(':');
  const by = SAMPLE_SORTS.find((one) => one === name);
  if (by !== undefined) return { by, up: direction === 'up' };
  throw invalid(`"${written}" is not an order: write one of ${SAMPLE_SORTS.join(', ')}.`);
}

/** The place of a row in a sorted list. */
export const placeOf = (row: UiRow, sort: SampleSort = NEWEST): Placed => ({
  value: sortValue(row, sort, row.cost),
  time: row.time,
  id: row.id,
});

const CURSOR = /^(\d+(?:\.\d+)?)-(req_\d+_[0-9A-Za-z]+)(?:~(.{1,400}))?$/;

/** @throws GatewayError invalid_request */
function cursorOf(cursor: string): SampleFilter['before'] {
  const [, time, id, written] = CURSOR.exec(cursor) ?? [];
  const value = written === undefined ? Number(time) : tryParse(written);
  if (id === undefined || (typeof value !== 'string' && typeof value !== 'number')) {
    throw invalid('This is not a cursor of a list.', 'cursor');
  }
  return { time: Number(time), id, ...(written !== undefined && { value }) };
}

export interface SamplesPage {
  readonly rows: readonly UiRow[];
  /** Older rows exist: send it with the next request. */
  readonly cursor?: string;
  /** With `q`: where the words stand, by the ids of rows. */
  readonly hits?: Readonly<Record<string, Hit>>;
  /** With `q`: only the newest texts were searched, since very many fit. */
  readonly partial?: boolean;
  /** With `q`: recorded exchanges that the search does not know yet; it reads them in the background. */
  readonly unread?: number;
}

/**
 * @param found what the search in texts found for `q`
 * @throws GatewayError invalid_request
 */
export async function samplesPage(
  store: SampleStore,
  { limit, cursor = '', ...query }: Static<typeof LIST_QUERY>,
  viewer: Viewer,
  prices: Prices,
  found?: Found,
): Promise<SamplesPage> {
  const filter = filterOfQuery(query, viewer);
  const before = cursor === '' ? undefined : cursorOf(cursor);
  const byCost = filter.cost !== undefined || filter.sort?.by === 'cost';
  const named = await runInSlices(store.named(filter));
  // One row more than requested shows whether there are more.
  const rows = store.list({
    ...named,
    ...(byCost && { rates: rateTable(prices, store.targets()) }),
    ...(found && { found: found.ids }),
    ...(before && { before }),
    limit: limit + 1,
  });
  const shown = rows.slice(0, limit).map((row) => priced(row, prices, viewer.keys));
  const hits =
    found &&
    Object.fromEntries(
      shown.flatMap(({ id }) => {
        const snippet = found.snippet(id);
        return snippet === undefined ? [] : [[id, snippet]];
      }),
    );
  const page = { rows: shown, ...(hits && { hits, partial: found.partial }) };
  const last = shown.at(-1);
  if (rows.length <= limit || last === undefined) return page;
  const { value } = placeOf(last, filter.sort);
  const place = filter.sort === undefined ? '' : `~${JSON.stringify(value)}`;
  return { ...page, cursor: `${last.time}-${last.id}${place}` };
}

/** An exchange in the list. Costs are in USD; null where the model has no price. */
export interface UiRow extends SampleRow {
  readonly cost: number | null;
  /** A key made at run time has its id as `owner`, which says nothing to people. */
  readonly key_name?: string;
}

export function priced(row: SampleRow, prices: Prices, keys?: KeyNames): UiRow {
  const name = keys?.nameOf(row.owner);
  const cost = costAt(prices, row.target, usageCounted(row));
  return { ...row, cost, ...(name !== undefined && { key_name: name }) };
}

function hasStatus({ status, error, state, failed, stream }: SampleRow, wanted: string): boolean {
  return wanted.split(',').some((part) => {
    const word = part.trim().toLowerCase();
    if (word === 'ok') return status >= 200 && status < 400 && error === '' && state === 'done';
    if (word === 'failed') return failed;
    if (word === 'open') return state === 'open';
    if (word === 'unfinished') return state === 'cut';
    if (word === 'cut') return state === 'cut' || (stream && status < 400 && error !== '');
    if (word.endsWith('xx')) return Math.floor(status / 100) === Number(word[0]);
    return status === Number(word);
  });
}

/** Whether a single row, which may not be in the index yet, matches a filter. */
export function fits(
  row: SampleRow & { readonly cost?: number | null },
  filter: SampleFilter,
): boolean {
  const { since, until, entry, session, error, owner, note, model, status, q } = filter;
  const { key, client, target, made, slower, cost, found } = filter;
  const pattern = [row.id, row.model, row.target, row.session, row.error, row.notes];
  return (
    (since === undefined || row.time >= since) &&
    (until === undefined || row.time < until) &&
    (entry === undefined || row.entry === entry) &&
    (session === undefined || row.session.startsWith(session)) &&
    (error === undefined || row.error === error) &&
    (owner === undefined || row.owner === owner) &&
    (note === undefined || noteTest(note)(row.notes)) &&
    (model === undefined || [row.model, row.target].some(nameTest(model))) &&
    (status === undefined || hasStatus(row, status)) &&
    (key === undefined || row.owner === key) &&
    (client === undefined || nameTest(client)(row.client)) &&
    (target === undefined || nameTest(target)(row.target)) &&
    (made === undefined || row.made_by === (made === 'traffic' ? '' : made)) &&
    (slower === undefined || (row.total_ms ?? -1) >= slower) &&
    (cost === undefined || (row.cost ?? -1) >= cost) &&
    (q === undefined ||
      found?.includes(row.id) === true ||
      pattern.some((text) => text.toLowerCase().includes(q.toLowerCase())))
  );
}
