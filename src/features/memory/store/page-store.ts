/** Rows of events as they come out of the database, and lists of them a page at a time. */

import type { Database, SQLQueryBindings } from 'bun:sqlite';
import { invalid } from '../../../conversation/errors.ts';
import type { MemoryEvent } from '../../../conversation/memory.ts';
import { isObject, tryParse } from '../../../lib/json/json.ts';

export interface Row {
  readonly row: number;
  readonly id: string;
  readonly time: number;
  readonly text: string;
  readonly source: string;
  readonly tags: string;
  readonly importance: number;
}

/** All that are given must hold. */
export interface ListQuery {
  /** Milliseconds since 1970: from then on. */
  readonly since?: number;
  /** … and before then. */
  readonly until?: number;
  readonly tag?: string;
  readonly limit: number;
  /** Where the page before ended. */
  readonly cursor?: string;
  /** `desc`: newest first. */
  readonly order: 'asc' | 'desc';
}

export interface Page {
  readonly events: readonly MemoryEvent[];
  /** Undefined: this was the last page. */
  readonly next?: string;
}

export const eventOf = ({ id, time, text, source, tags, importance }: Row): MemoryEvent => ({
  id,
  time,
  text,
  ...(source !== '' && { source }),
  tags: JSON.parse(tags) as string[],
  importance,
});

/**
 * One page, of no space an empty one. What is added or removed meanwhile shifts nothing: a cursor names an event, not a number.
 * @throws GatewayError for a cursor that was not given out here
 */
export function page(db: Database, space: number | undefined, query: ListQuery): Page {
  const { since, until, tag, limit, cursor, order } = query;
  const from = cursor === undefined ? undefined : place(cursor);
  if (space === undefined) return { events: [] };
  const parts = ['space = ?'];
  const values: SQLQueryBindings[] = [space];
  const add = (sql: string, ...more: SQLQueryBindings[]) => {
    parts.push(sql);
    values.push(...more);
  };
  if (since !== undefined) add('time >= ?', since);
  if (until !== undefined) add('time < ?', until);
  if (tag !== undefined) add('EXISTS (SELECT 1 FROM json_each(tags) WHERE value = ?)', tag);
  if (from !== undefined) add(`(time, row) ${order === 'asc' ? '>' : '<'} (?, ?)`, ...from);
  const rows = db
    .query<Row, SQLQueryBindings[]>(
      `SELECT * FROM events WHERE ${parts.join(' AND ')} ORDER BY time ${order}, row ${order} LIMIT ?`,
    )
    .all(...values, limit + 1);
  const events = rows.slice(0, limit).map(eventOf);
  const last = rows.length > limit ? rows[limit - 1] : undefined;
  return last === undefined ? { events } : { events, next: cursorOf(last) };
}

const cursorOf = ({ time, row }: Row) =>
  Buffer.from(JSON.stringify({ t: time, r: row })).toString('base64url');

function place(cursor: string): readonly [number, number] {
  const value = tryParse(Buffer.from(cursor, 'base64url').toString());
  if (isObject(value) && Number.isSafeInteger(value.t) && Number.isSafeInteger(value.r)) {
    return [value.t as number, value.r as number];
  }
  throw invalid('The cursor is none that was given out here.', 'cursor');
}
