import type { Steps } from '../../lib/loop/steps.ts';
import { globTest, isGlob } from '../../lib/text/glob.ts';
import { words } from '../../lib/text/words.ts';
import { MAX_NANO_USD } from '../../money/cost.ts';
import type { FittingNames, SampleFilter } from '../sample.ts';
import { sortSql } from './row-order.ts';

export interface Conditions {
  /** `WHERE …`, or ''. */
  readonly where: string;
  readonly values: readonly (string | number)[];
}

/** A test for a pattern of `*` and `?` as filters have it: a plain word may occur anywhere. */
export function nameTest(words: string): (name: string) => boolean {
  if (isGlob(words)) return globTest(words);
  const wanted = words.toLowerCase();
  return (name) => name.toLowerCase().includes(wanted);
}

/** The same for the name of a note: a plain word is the whole name. The text is `name` or `name=count` between commas. */
export function noteTest(words: string): (notes: string) => boolean {
  const fits = globTest(words);
  return (notes) =>
    notes.split(',').some((note) => {
      const name = note.split('=')[0]!;
      return name !== '' && fits(name);
    });
}

/** What a row has that patterns are about. */
export interface NamedRow {
  readonly number: number;
  readonly model: string;
  readonly target: string;
  readonly client: string;
  readonly notes: string;
}

/**
 * Looks up what the patterns of a filter fit. SQL would compare each row with them, in one go and in time that a
 * hostile name multiplies.
 * @param rowsAfter a page of rows, in the order of their numbers; an empty one is the end
 */
export function* named(
  filter: SampleFilter,
  rowsAfter: (number: number) => readonly NamedRow[],
): Steps<SampleFilter> {
  if (filter.names !== undefined) return filter;
  const { model, target, client, note } = filter;
  const looks: Look[] = [];
  const look = (of: keyof FittingNames, columns: readonly Column[], fits: Look['fits']) =>
    looks.push({ of, columns, fits, seen: new Set(), found: [] });
  if (model !== undefined && isGlob(model)) look('model', ['model', 'target'], nameTest(model));
  if (target !== undefined && isGlob(target)) look('target', ['target'], nameTest(target));
  if (client !== undefined && isGlob(client)) look('client', ['client'], nameTest(client));
  if (note !== undefined) look('note', ['notes'], noteTest(note));
  let rows = looks.length === 0 ? [] : rowsAfter(0);
  for (; rows.length > 0; rows = rowsAfter(rows.at(-1)!.number)) {
    for (const row of rows) for (const one of looks) lookAt(row, one);
    yield;
  }
  return { ...filter, names: Object.fromEntries(looks.map(({ of, found }) => [of, found])) };
}

type Column = Exclude<keyof NamedRow, 'number'>;

interface Look {
  readonly of: keyof FittingNames;
  readonly columns: readonly Column[];
  readonly fits: (name: string) => boolean;
  readonly seen: Set<string>;
  readonly found: string[];
}

function lookAt(row: NamedRow, { columns, seen, found, fits }: Look): void {
  for (const column of columns) {
    const name = row[column];
    if (seen.has(name)) continue;
    seen.add(name);
    if (fits(name)) found.push(name);
  }
}

function statusCondition(wanted: string): Conditions {
  const parts: string[] = [];
  const values: (string | number)[] = [];
  for (const word of wanted.toLowerCase().split(',')) {
    const part = word.trim();
    if (part === 'ok') parts.push(`(status BETWEEN 200 AND 399 AND error = '' AND state = 'done')`);
    else if (part === 'failed') parts.push('failed = 1');
    else if (part === 'cut') {
      parts.push(`(state = 'cut' OR (stream = 1 AND status < 400 AND error != ''))`);
    } else if (part === 'unfinished' || part === 'open') {
      parts.push('state = ?');
      values.push(part === 'open' ? 'open' : 'cut');
    } else if (/^[1-5]xx$/.test(part)) {
      parts.push('status BETWEEN ? AND ?');
      values.push(Number(part[0]) * 100, Number(part[0]) * 100 + 99);
    } else {
      parts.push('status = ?');
      values.push(Number(part));
    }
  }
  return { where: `(${parts.join(' OR ')})`, values };
}

/** All given conditions must hold. @param filter with the names of its patterns: {@link named} */
export function conditionsOf(filter: SampleFilter): Conditions {
  const parts: string[] = [];
  const values: (string | number)[] = [];
  const add = (sql: string, ...more: (string | number)[]) => {
    parts.push(sql);
    values.push(...more);
  };
  if (filter.since !== undefined) add('time >= ?', filter.since);
  if (filter.until !== undefined) add('time < ?', filter.until);
  if (filter.entry !== undefined) add('entry = ?', filter.entry);
  if (filter.session !== undefined) add('session GLOB ?', sessionGlob(filter.session));
  if (filter.error !== undefined) add('error = ?', filter.error);
  if (filter.owner !== undefined) add('owner = ?', filter.owner);
  if (filter.key !== undefined) add('owner = ?', filter.key);
  const { names = {} } = filter;
  /** @param of a member with a name or pattern about these columns */
  const addName = (of: 'model' | 'target' | 'client', columns: readonly string[]) => {
    const wanted = filter[of];
    if (wanted === undefined) return;
    const among = names[of];
    const one = (column: string) =>
      among === undefined
        ? `instr(lower(${column}), ?) > 0`
        : `${column} IN (SELECT value FROM json_each(?))`;
    const value = among === undefined ? wanted.toLowerCase() : JSON.stringify(among);
    add(`(${columns.map(one).join(' OR ')})`, ...columns.map(() => value));
  };
  addName('client', ['client']);
  addName('target', ['target']);
  addName('model', ['model', 'target']);
  if (filter.made !== undefined) add('made_by = ?', filter.made === 'traffic' ? '' : filter.made);
  if (filter.slower !== undefined) add('total_ms >= ?', filter.slower);
  if (filter.cost !== undefined) add('cost >= ?', filter.cost);
  if (filter.before !== undefined) {
    const { time, id, value } = filter.before;
    if (filter.sort === undefined || value === undefined) add('(time, id) < (?, ?)', time, id);
    else {
      const by = sortSql(filter.sort);
      const further = filter.sort.up ? '>' : '<';
      add(`(${by} ${further} ? OR (${by} = ? AND (time, id) < (?, ?)))`, value, value, time, id);
    }
  }
  if (filter.q !== undefined && filter.q !== '') {
    const fields = ['id', 'model', 'target', 'session', 'error', 'notes'];
    const words = filter.q.toLowerCase();
    const found = fields.map((field) => `instr(lower(${field}), ?) > 0`).join(' OR ');
    const ids = filter.found ?? [];
    const also = ids.length === 0 ? '' : ' OR id IN (SELECT value FROM json_each(?))';
    add(
      `(${found}${also})`,
      ...fields.map(() => words),
      ...(ids.length === 0 ? [] : [JSON.stringify(ids)]),
    );
  }
  if (filter.note !== undefined) {
    add('notes IN (SELECT value FROM json_each(?))', JSON.stringify(names.note ?? []));
  }
  if (filter.status !== undefined) {
    const status = statusCondition(filter.status);
    add(status.where, ...status.values);
  }
  return { where: parts.length === 0 ? '' : `WHERE ${parts.join(' AND ')}`, values };
}

/** The whole name or its beginning. */
const sessionGlob = (session: string) => `${session.replace(/[[*?]/g, '[$&]')}*`;

/**
 * Cost in USD by the columns of `rates`; null where the tokens or the price are unknown. Integers until the last
 * division, as everywhere else: a page of the list begins behind the exact cost of the row before.
 */
const COST = `CASE WHEN input_tokens IS NULL THEN NULL ELSE min(${MAX_NANO_USD}, CAST((
  max(0, input_tokens - coalesce(cached_tokens, 0) - coalesce(cache_write_tokens, 0)) * rates.input
  + coalesce(cached_tokens, 0) * rates.cached
  + max(0, coalesce(cache_write_tokens, 0) - coalesce(cache_write_1h_tokens, 0)) * rates.write
  + min(coalesce(cache_write_tokens, 0), coalesce(cache_write_1h_tokens, 0)) * rates.write_1h
  + coalesce(output_tokens, 0) * rates.output + rates.request + 999) / 1000 AS INTEGER)) / 1e9 END`;
const RATES = words('target above up_to input cached write write_1h output request')
  .map((name) => `value ->> '${name}' AS ${name === 'target' ? 'priced' : name}`)
  .join(', ');

/** The table that a filter reads: with a column `cost` where it asks for costs. */
export function sourceOf({ rates, cost, sort }: SampleFilter): Omit<Conditions, 'where'> & {
  readonly from: string;
} {
  if (cost === undefined && sort?.by !== 'cost') return { from: 'samples', values: [] };
  const priced = `WITH rates AS MATERIALIZED (SELECT ${RATES} FROM json_each(?))`;
  const tokens = 'coalesce(input_tokens, 0)';
  const on = `rates.priced = samples.target AND ${tokens} > rates.above AND ${tokens} <= rates.up_to`;
  return {
    from: `(${priced} SELECT samples.*, ${COST} AS cost FROM samples LEFT JOIN rates ON ${on})`,
    values: [JSON.stringify(rates ?? [])],
  };
}

/** `ORDER BY …` of a filter. */
export function orderOf({ sort }: SampleFilter): string {
  if (sort === undefined) return 'ORDER BY time DESC, id DESC';
  return `ORDER BY ${sortSql(sort)} ${sort.up ? 'ASC' : 'DESC'}, time DESC, id DESC`;
}
