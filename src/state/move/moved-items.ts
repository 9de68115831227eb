/** Notes of items that moves wrote, and from which file: an item that is removed later does not come back with the next move. */

import { hostname } from 'node:os';
import type { Sql } from '../engines/engine.ts';
import { nameHash } from '../erasures.ts';
import { type Prepared, prepared } from '../sql/migrations.ts';

/** `form`: the item at that time, where it can change. `origin`: the file that it came from. */
const MIGRATIONS = [
  `CREATE TABLE hopgate.moved_items (
  kind text NOT NULL, owner text NOT NULL, id text NOT NULL, form text NOT NULL, origin text NOT NULL,
  PRIMARY KEY (kind, owner, id)
)
CREATE INDEX moved_items_origin ON hopgate.moved_items (kind, origin, owner, id)`,
];

/** The table is there once this has resolved. */
export const movedItems = (database: Sql): Prepared => prepared(database, 'moves', MIGRATIONS);

const READ_MS = 10_000;

/** Which file it is, on which machine: a hash. */
export const originOf = (path: string): string => nameHash(`${hostname()}\n${path}`).slice(0, 32);

/** These tables of the schema `hopgate`, as far as they are there. @throws EngineAway */
export async function tablesThere(
  database: Sql,
  names: readonly string[],
): Promise<ReadonlySet<string>> {
  const rows = await database.query<{ name: string }>(
    "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'hopgate' AND tablename = ANY($1::text[])",
    [names],
    READ_MS,
  );
  return new Set(rows.map(({ name }) => name));
}

/** Milliseconds by which the database's clock is ahead of this one's: at least, and at most. */
export interface ClockAhead {
  readonly least: number;
  readonly most: number;
}

/** @throws EngineAway */
export async function clockAhead(database: Sql): Promise<ClockAhead> {
  const before = Date.now();
  const [row] = await database.query<{ now: number }>(
    'SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS now',
    [],
    READ_MS,
  );
  return { least: row!.now - Date.now(), most: row!.now - before };
}

/** Lists of at most so many items and so many bytes together; a larger item is a list of its own. */
export function* batchesOf<Item extends { readonly bytes: number }>(
  items: readonly Item[],
  mostItems: number,
  mostBytes: number,
): Generator<readonly Item[]> {
  let batch: Item[] = [];
  let bytes = 0;
  for (const item of items) {
    if (batch.length === mostItems || (batch.length > 0 && bytes + item.bytes > mostBytes)) {
      yield batch;
      batch = [];
      bytes = 0;
    }
    batch.push(item);
    bytes += item.bytes;
  }
  if (batch.length > 0) yield batch;
}
