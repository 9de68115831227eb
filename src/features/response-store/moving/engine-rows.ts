/** The responses of all replicas as one side of a move: what is there, how a row stands there, and how rows are written. */

import type { Sql, SqlReader } from '../../../state/engines/engine.ts';
import {
  type ClockAhead,
  clockAhead,
  type MovedItem,
  movedFrom,
  movedItems,
  NO_CONDITION,
  noteMoved,
  notMovedFrom,
  tablesThere,
} from '../../../state/moving/moved-items.ts';
import type { Standing } from '../../../state/moving/paged-move.ts';
import { beforeErasures, erasureTables, isErased } from '../../../state/shared-erasures.ts';
import type { TextSeal } from '../../../state/text-seal.ts';
import { columnsOf, ResponseTables } from '../shared/response-tables.ts';
import { openRow, type SharedRow, sharedRow } from '../shared/shared-row.ts';
import type { StoredResponse } from '../stored-response.ts';
import type { FileRow, RowKey } from './file-rows-store.ts';

export interface EngineRowsOptions {
  readonly database: Sql;
  readonly seal: TextSeal;
  /** Whose file the rows come from, or go to. */
  readonly origin: string;
}

/** A row as it is listed, and its conversation. */
export interface EngineKey extends RowKey {
  readonly thread: string;
  readonly used: number;
}

const KIND = 'responses';
const TABLES = [
  'responses',
  'response_deletions',
  'response_erasures',
  'moved_items',
  'erasures',
] as const;
const PAGE = 500;
const READ_MS = 10_000;
/** For a batch of rows with long texts. */
const WRITE_MS = 20_000;

// What another replica writes meanwhile stays.
const TAKE = `
WITH given AS (
  SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::text[],
    $8::text[], $9::float8[], $10::bytea[], $11::bytea[], $12::bigint[], $13::text[], $14::float8[])
    WITH ORDINALITY AS g (owner, id, thread, created, previous, model, space, keeper, began, items, response, bytes,
      item_ids, used, place)
), used AS (
  INSERT INTO hopgate.response_threads AS t (id, used)
    SELECT thread, least(clock_timestamp(), to_timestamp(max(used) / 1000)) FROM given GROUP BY thread ORDER BY thread
    ON CONFLICT (id) DO UPDATE SET used = greatest(t.used, excluded.used)
), written AS (
  INSERT INTO hopgate.responses
    (owner, id, thread, created, previous, model, space, keeper, began, items, response, bytes, item_ids)
    SELECT owner, id, thread, created, previous, model, space, keeper, began, items, response, bytes,
      ARRAY(SELECT jsonb_array_elements_text(item_ids::jsonb)) FROM given ORDER BY place
    ON CONFLICT (owner, id) DO NOTHING RETURNING owner, id
), named AS (
  INSERT INTO hopgate.response_items (owner, item, response)
    SELECT DISTINCT ON (owner, item) owner, item, id FROM (
      SELECT owner, id, place, jsonb_array_elements_text(item_ids::jsonb) AS item FROM given JOIN written USING (owner, id)
    ) AS i ORDER BY owner, item, place DESC
    ON CONFLICT (owner, item) DO NOTHING
)
SELECT owner, id FROM written`;

export class EngineRows {
  readonly #options: EngineRowsOptions;
  readonly #tables: ResponseTables;
  readonly #there: ReadonlySet<string>;
  readonly #ahead: ClockAhead;

  private constructor(
    options: EngineRowsOptions,
    tables: ResponseTables,
    there: ReadonlySet<string>,
    ahead: ClockAhead,
  ) {
    this.#options = options;
    this.#tables = tables;
    this.#there = there;
    this.#ahead = ahead;
  }

  /** @param writes makes the tables where they are missing. @throws EngineAway */
  static async open(options: EngineRowsOptions, writes: boolean): Promise<EngineRows> {
    const { database } = options;
    const tables = new ResponseTables(database);
    if (writes) {
      await erasureTables(database)();
      await movedItems(database)();
      await tables.writing(WRITE_MS, async () => {});
    }
    const there = await tablesThere(database, TABLES);
    return new EngineRows(options, tables, there, await clockAhead(database));
  }

  async count(): Promise<number> {
    if (!this.#there.has('responses')) return 0;
    const [row] = await this.#options.database.query<{ n: number }>(
      'SELECT count(*) AS n FROM hopgate.responses',
      [],
      READ_MS,
    );
    return row!.n;
  }

  async *pages(): AsyncGenerator<readonly EngineKey[]> {
    if (!this.#there.has('responses')) return;
    let last: EngineKey | undefined;
    for (;;) {
      const page: readonly EngineKey[] = await this.#options.database.query<EngineKey>(
        `SELECT owner, r.id, space, began, bytes, thread,
             extract(epoch FROM coalesce(t.used, to_timestamp(created)))::float8 * 1000 AS used
           FROM hopgate.responses r
           LEFT JOIN LATERAL (SELECT used FROM hopgate.response_threads WHERE id = r.thread LIMIT 1) t ON true
           WHERE (owner, r.id) > ($1, $2) ORDER BY owner, r.id LIMIT ${PAGE}`,
        [last?.owner ?? '', last?.id ?? ''],
        READ_MS,
      );
      if (page.length > 0) {
        yield page.map((key) => ({ ...key, began: key.began - this.#ahead.most }));
      }
      if (page.length < PAGE) return;
      last = page.at(-1);
    }
  }

  /** Undefined where it was removed meanwhile; 'sealed' where its secret is not known here. */
  async read({ owner, id }: RowKey): Promise<StoredResponse | 'sealed' | undefined> {
    const [row] = await this.#options.database.query<SharedRow>(
      `SELECT owner, id, thread, created, previous, model, space, keeper, began, items, response, bytes,
           item_ids AS "itemIds" FROM hopgate.responses WHERE owner = $1 AND id = $2`,
      [owner, id],
      READ_MS,
    );
    if (row === undefined) return undefined;
    const opened = openRow(row, this.#options.seal);
    return opened === undefined ? 'sealed' : { ...opened, began: row.began - this.#ahead.most };
  }

  standings(keys: readonly RowKey[]): Promise<readonly Standing[]> {
    const { database } = this.#options;
    const reader: SqlReader = { query: (sql, values) => database.query(sql, values, READ_MS) };
    return this.#standingsBy(reader, keys);
  }

  async #standingsBy(reader: SqlReader, keys: readonly RowKey[]): Promise<readonly Standing[]> {
    if (!this.#there.has('responses') && !this.#there.has('erasures')) {
      return keys.map(() => 'missing');
    }
    const of = (table: (typeof TABLES)[number], found: string) =>
      this.#there.has(table) ? found : 'false';
    // Looked up by the index, whatever the planner knows of tables that were just filled.
    const has = (table: string, more = '') =>
      `(SELECT 1 FROM hopgate.${table} t WHERE t.owner = g.owner AND t.id = g.id ${more} LIMIT 1) IS NOT NULL`;
    const rows = await reader.query<{ standing: Standing }>(
      `SELECT CASE
           WHEN ${of('responses', has('responses'))} THEN 'there'
           WHEN ${of('moved_items', has('moved_items', `AND t.kind = '${KIND}'`))} THEN 'removed'
           WHEN ${of('response_deletions', has('response_deletions'))} THEN 'removed'
           WHEN ${of('erasures', isErased('g.space', 'g.began'))} THEN 'erased'
           WHEN ${of('response_erasures', 'EXISTS (SELECT 1 FROM hopgate.response_erasures e WHERE e.space = g.space AND e.at >= g.began)')}
             THEN 'erased'
           ELSE 'missing' END AS standing
         FROM unnest($1::text[], $2::text[], $3::text[], $4::float8[])
           WITH ORDINALITY AS g (owner, id, space, began, place) ORDER BY place`,
      [
        keys.map(({ owner }) => owner),
        keys.map(({ id }) => id),
        keys.map(({ space }) => space),
        keys.map(({ began }) => began + this.#ahead.least),
      ],
    );
    return rows.map(({ standing }) => standing);
  }

  /**
   * Writes rows, all or none, but not what came, or was removed, meanwhile.
   * @param given in the order in which they were made
   * @returns how many are new
   */
  write(given: readonly (FileRow & { readonly key: RowKey })[]): Promise<number> {
    const { origin, seal } = this.#options;
    return this.#tables.writing(WRITE_MS, async (inside) => {
      await beforeErasures(inside);
      const standings = await this.#standingsBy(
        inside,
        given.map(({ key }) => key),
      );
      const missing = given.filter((_, at) => standings[at] === 'missing');
      const threads = await threadsOf(inside, missing);
      const rows: (SharedRow & { readonly used: number })[] = [];
      for (const { key, response, thread: number, used } of missing) {
        const { owner, id, previous } = response;
        const before = previous === undefined ? undefined : threads.get(`${owner}\n${previous}`);
        const thread = before ?? `${origin}-${number}`;
        threads.set(`${owner}\n${id}`, thread);
        const row = sharedRow({ ...response, began: key.began }, thread, seal);
        if (row !== undefined) rows.push({ ...row, used });
      }
      if (rows.length === 0) return 0;
      const { least } = this.#ahead;
      const written = await inside.query<{ owner: string; id: string }>(TAKE, [
        ...columnsOf(rows, (began) => began + least),
        rows.map(({ used }) => used + least),
      ]);
      const moved = written.map((one) => ({ ...one, form: '' }));
      await noteMoved(inside, KIND, origin, moved);
      return written.length;
    });
  }

  /** What was moved from this file and is still there, some at a time. */
  async *moved(): AsyncGenerator<readonly MovedItem[]> {
    if (!this.#there.has('moved_items')) return;
    yield* movedFrom(this.#options.database, KIND, this.#options.origin);
  }

  /** How many of these are there; `not moved`: without those that {@link moved} gives. */
  async have(
    items: readonly Pick<MovedItem, 'owner' | 'id'>[],
    only?: 'not moved',
  ): Promise<number> {
    if (items.length === 0 || !this.#there.has('responses')) return 0;
    const { database, origin } = this.#options;
    const elsewhere =
      only === undefined || !this.#there.has('moved_items')
        ? NO_CONDITION
        : notMovedFrom(KIND, origin, 3);
    const [row] = await database.query<{ n: number }>(
      `SELECT count(*) AS n FROM unnest($1::text[], $2::text[]) AS g (owner, id)
         CROSS JOIN LATERAL (SELECT 1 FROM hopgate.responses WHERE owner = g.owner AND id = g.id LIMIT 1) r${elsewhere.sql}`,
      [items.map(({ owner }) => owner), items.map(({ id }) => id), ...elsewhere.values],
      READ_MS,
    );
    return row!.n;
  }
}

/** The conversations of what these continue, by owner and id. */
async function threadsOf(
  inside: SqlReader,
  rows: readonly FileRow[],
): Promise<Map<string, string>> {
  const later = rows.filter(({ response }) => response.previous !== undefined);
  if (later.length === 0) return new Map();
  const found = await inside.query<{ owner: string; id: string; thread: string }>(
    `SELECT g.owner, g.id, r.thread FROM unnest($1::text[], $2::text[]) AS g (owner, id)
       CROSS JOIN LATERAL (SELECT thread FROM hopgate.responses WHERE owner = g.owner AND id = g.id LIMIT 1) r`,
    [
      later.map(({ response }) => response.owner),
      later.map(({ response }) => response.previous ?? null),
    ],
  );
  return new Map(found.map(({ owner, id, thread }) => [`${owner}\n${id}`, thread]));
}
