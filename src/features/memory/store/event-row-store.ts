/** Event rows of the database and paged lists of them. */

import type { Database, SQLQueryBindings } from 'bun:sqlite';
import { invalid } from '../../../conversation/errors.ts';
import type { MemoryEvent } from '../../../conversation/memory.ts';
import { isObject, tryParse } from '../../../lib/json/json.ts';

export interface EventRow {
  readonly row: number;
  readonly id: string;
  readonly time: number;
  readonly text: string;
  readonly source: string;
  readonly tags: string;
  readonly importance: number;
}

/** Conditions of a list; all of them must hold. */
export interface ListQuery {
  /** Milliseconds since 1970, inclusive. */
  readonly since?: number;
  /** Milliseconds since 1970, exclusive. */
  readonly until?: number;
  readonly tag?: string;
  readonly limit: number;
  /** The `next` of the previous page. */
  readonly cursor?: string;
  /** `desc`: newest first. */
  readonly order: 'asc' | 'desc';
}

export interface EventPage {
  readonly events: readonly MemoryEvent[];
  /** The cursor of the next page; undefined on the last one. */
  readonly next?: string;
}

export const eventOfRow = ({
  id,
  time,
  text,
  source,
  tags,
  importance,
}: EventRow): MemoryEvent => ({
  id,
  time,
  text,
  ...(source !== '' && { source }),
  tags: JSON.parse(tags) as string[],
  importance,
});

/**
 * One page of a space's events; empty where there is no space. A cursor names an event, not an offset,
 * so events added or removed meanwhile shift nothing.
 * @throws GatewayError for a cursor that this function did not return
 */
export function eventPage(db: Database, space: number | undefined, query: ListQuery): EventPage {
  const { since, until, tag, limit, cursor, order } = query;
  const from = cursor === undefined ? undefined : cursorPosition(cursor);
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
    .query<EventRow, SQLQueryBindings[]>(
      `SELECT * FROM events WHERE ${parts.join(' AND ')} ORDER BY time ${order}, row ${order} LIMIT ?`,
    )
    .all(...values, limit + 1);
  const events = rows.slice(0, limit).map(eventOfRow);
  const last = rows.length > limit ? rows[limit - 1] : undefined;
  return last === undefined ? { events } : { events, next: cursorOf(last) };
}

/** Names the event of a row, the last one of a page. */
export const cursorOf = ({ time, row }: Pick<EventRow, 'time' | 'row'>): string =>
  Buffer.from(JSON.stringify({ t: time, r: row })).toString('base64url');

/** Time and row of a cursor. @throws GatewayError for one that {@link cursorOf} did not make */
export function cursorPosition(cursor: string): readonly [number, number] {
  const value = tryParse(Buffer.from(cursor, 'base64url').toString());
  if (isObject(value) && Number.isSafeInteger(value.t) && Number.isSafeInteger(value.r)) {
    return [value.t as number, value.r as number];
  }
  throw invalid('The cursor is not valid; use `next_cursor` of the previous page.', 'cursor');
}
