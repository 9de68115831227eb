/** Stored responses in Postgres: written in batches, read with their chain in one trip, pruned by one replica at a time. */

import { preciseNow } from '../../../lib/loop/precise-time.ts';
import type { Sql, SqlReader } from '../../../state/engines/engine.ts';
import { type Prepared, prepared } from '../../../state/shared-tables.ts';
import type { ResponseLimits } from '../stored-response.ts';
import type { Named } from './response-cache.ts';
import type { SharedRow } from './shared-row.ts';

// `began` and `at` are milliseconds since 1970 by the clock of this database. A deletion and an erasure are
// remembered: a replica may still have to write what they concern.
const MIGRATIONS = [
  `
CREATE TABLE hopgate.responses (
  owner text NOT NULL, id text NOT NULL, thread text NOT NULL, seq bigint GENERATED ALWAYS AS IDENTITY,
  created bigint NOT NULL, previous text, model text NOT NULL, space text, keeper text,
  began double precision NOT NULL, items bytea NOT NULL, response bytea NOT NULL, bytes bigint NOT NULL,
  item_ids text[] NOT NULL, PRIMARY KEY (owner, id)
);
CREATE INDEX responses_thread ON hopgate.responses (thread);
CREATE INDEX responses_space ON hopgate.responses (space) WHERE space IS NOT NULL;
CREATE TABLE hopgate.response_items (
  owner text NOT NULL, item text NOT NULL, response text NOT NULL, PRIMARY KEY (owner, item),
  FOREIGN KEY (owner, response) REFERENCES hopgate.responses ON DELETE CASCADE
);
CREATE INDEX response_items_response ON hopgate.response_items (owner, response);
CREATE TABLE hopgate.response_threads (id text PRIMARY KEY, used timestamptz NOT NULL);
CREATE TABLE hopgate.response_deletions (
  owner text NOT NULL, id text NOT NULL, at timestamptz NOT NULL, PRIMARY KEY (owner, id)
);
CREATE TABLE hopgate.response_erasures (space text PRIMARY KEY, at double precision NOT NULL);
CREATE TABLE hopgate.response_upkeep (one boolean PRIMARY KEY DEFAULT true, at timestamptz NOT NULL);
INSERT INTO hopgate.response_upkeep (at) VALUES ('epoch');
`,
];

const READ_MS = 1000;
const WRITE_MS = 5000;
const UPKEEP_MS = 20_000;
/** A chain that is longer is refused. */
export const MAX_LINKS = 10_000;
export const MAX_BYTES = 64 * 2 ** 20;
/** A replica that was away for longer must not bring its old queue. */
const REMEMBERED = "interval '40 days'";

const NOW = 'extract(epoch FROM clock_timestamp())::float8 * 1000';
// Writers share it; a deletion has it alone, and so sees everything that was written, or is seen.
const LOCK = 7496251;

const WRITE = `
WITH given AS (
  SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::text[],
    $8::text[], $9::float8[], $10::bytea[], $11::bytea[], $12::bigint[], $13::text[])
    AS g (owner, id, thread, created, previous, model, space, keeper, began, items, response, bytes, item_ids)
), kept AS (
  SELECT * FROM given g WHERE NOT EXISTS (
      SELECT 1 FROM hopgate.response_erasures e WHERE e.space = g.space AND e.at >= g.began
    ) AND NOT EXISTS (
      SELECT 1 FROM hopgate.response_deletions d WHERE d.owner = g.owner AND d.id = g.id
    )
), used AS (
  INSERT INTO hopgate.response_threads AS t (id, used)
    SELECT id, clock_timestamp() FROM (SELECT thread FROM kept UNION SELECT unnest($14::text[])) AS u (id) ORDER BY id
    ON CONFLICT (id) DO UPDATE SET used = greatest(t.used, excluded.used)
), written AS (
  INSERT INTO hopgate.responses
    (owner, id, thread, created, previous, model, space, keeper, began, items, response, bytes, item_ids)
    SELECT owner, id, thread, created, previous, model, space, keeper, began, items, response, bytes,
      ARRAY(SELECT jsonb_array_elements_text(item_ids::jsonb)) FROM kept ORDER BY owner, id
    ON CONFLICT (owner, id) DO UPDATE SET items = excluded.items, response = excluded.response,
      bytes = excluded.bytes, item_ids = excluded.item_ids, keeper = excluded.keeper
)
INSERT INTO hopgate.response_items (owner, item, response)
  SELECT DISTINCT ON (owner, item) owner, item, id
    FROM (SELECT owner, id, jsonb_array_elements_text(item_ids::jsonb) AS item FROM kept) AS i ORDER BY owner, item
  ON CONFLICT (owner, item) DO UPDATE SET response = excluded.response`;

const LACKING = `
SELECT DISTINCT owner, id FROM unnest($1::text[], $2::text[]) AS g (owner, id)
  WHERE NOT EXISTS (SELECT 1 FROM hopgate.responses r WHERE r.owner = g.owner AND r.id = g.id)`;

const READ = `
WITH RECURSIVE chain AS (
  SELECT id, previous, bytes AS total, 1 AS links FROM hopgate.responses WHERE owner = $1 AND id = ANY ($2)
  UNION ALL
  SELECT r.id, r.previous, c.total + r.bytes, c.links + 1
    FROM chain c JOIN hopgate.responses r ON r.owner = $1 AND r.id = c.previous
    WHERE $4 AND c.total < $5 AND c.links < $6
), whole AS (
  SELECT unnest($2::text[]) AS id
  UNION SELECT response FROM hopgate.response_items WHERE owner = $1 AND item = ANY ($3)
)
SELECT owner, id, thread, created, previous, model, space, keeper, began, items, bytes, item_ids AS "itemIds",
    CASE WHEN id IN (SELECT id FROM whole) THEN response ELSE '' END AS response
  FROM hopgate.responses WHERE owner = $1 AND id IN (SELECT id FROM chain UNION SELECT id FROM whole)`;

const READ_ONE = `
SELECT owner, id, thread, created, previous, model, space, keeper, began, items, bytes, item_ids AS "itemIds", response
  FROM hopgate.responses WHERE owner = $1 AND id = $2`;

// The conversations that were used last stay. Of the last one alone, where it is too large by itself, the oldest
// responses go one by one.
const PRUNE = `
WITH ranked AS (
  SELECT owner, id, used, dense_rank() OVER (ORDER BY used DESC, thread) AS place,
      count(*) OVER newest AS rows, sum(bytes) OVER newest AS bytes
    FROM (
      SELECT r.owner, r.id, r.thread, r.seq, r.bytes, coalesce(t.used, to_timestamp(r.created)) AS used
        FROM hopgate.responses r LEFT JOIN hopgate.response_threads t ON t.id = r.thread
    ) AS all_rows
    WINDOW newest AS (ORDER BY used DESC, thread, seq DESC ROWS UNBOUNDED PRECEDING)
), cut AS (SELECT min(place) AS place FROM ranked WHERE rows > $1 OR bytes > $2)
DELETE FROM hopgate.responses r USING ranked k CROSS JOIN cut
  WHERE r.owner = k.owner AND r.id = k.id AND (
    k.used < clock_timestamp() - $3 * interval '1 millisecond'
    OR (k.place = 1 AND (k.rows > $1 OR k.bytes > $2))
    OR (k.place > 1 AND k.place >= cut.place)
  )
  RETURNING r.owner, r.id`;

type RowKey = Pick<SharedRow, 'owner' | 'id'>;

/**
 * Rows as the values of one parameter for each column, in the order of statements that write them.
 * @param timeOf the database's time of a row's `began`
 */
export function columnsOf(rows: readonly SharedRow[], timeOf: (began: number) => number) {
  const column = <Key extends keyof SharedRow>(key: Key) => rows.map((row) => row[key]);
  return [
    column('owner'),
    column('id'),
    column('thread'),
    column('created'),
    column('previous'),
    column('model'),
    column('space'),
    column('keeper'),
    rows.map(({ began }) => timeOf(began)),
    rows.map(({ items }) => Buffer.from(items)),
    rows.map(({ response }) => Buffer.from(response)),
    column('bytes'),
    rows.map(({ itemIds }) => JSON.stringify(itemIds)),
  ];
}

export class ResponseTables {
  readonly #database: Sql;
  readonly #prepared: Prepared;
  /** Milliseconds by which the database's clock is ahead of this one's: at least, and at most. */
  #ahead = { least: 0, most: 0 };

  constructor(database: Sql) {
    this.#database = database;
    this.#prepared = prepared(database, 'responses', MIGRATIONS);
  }

  /** A time of this process by the clock of the database, as far as that is known: never later than it was. */
  timeOf(local: number): number {
    return local + this.#ahead.least;
  }

  /** The reverse, never later than it was, either. */
  localTimeOf(time: number): number {
    return time - this.#ahead.most;
  }

  /**
   * Writes all of them or none, but not what was deleted or erased.
   * @param rows of different responses, `began` by the clock of this process
   * @param threads conversations that were continued
   * @returns what they continue and is not there: who made it has not written it yet, or never will
   * @throws EngineAway, or the database's error
   */
  async write(rows: readonly SharedRow[], threads: readonly string[]): Promise<readonly RowKey[]> {
    return this.writing(WRITE_MS, async (inside) => {
      await inside.query(WRITE, [...columnsOf(rows, (began) => this.timeOf(began)), threads]);
      const later = rows.filter(({ previous }) => previous !== null);
      if (later.length === 0) return [];
      return inside.query<RowKey>(LACKING, [
        later.map(({ owner }) => owner),
        later.map(({ previous }) => previous),
      ]);
    });
  }

  /**
   * A transaction that writes responses: any deletion and erasure sees what it wrote, or is seen by it. The clock of the
   * database is known in it.
   * @throws EngineAway, or the database's error
   */
  async writing<T>(deadlineMs: number, work: (inside: SqlReader) => Promise<T>): Promise<T> {
    await this.#prepared();
    return this.#database.transaction(async (inside) => {
      await this.#locked(inside, 'pg_advisory_xact_lock_shared');
      return work(inside);
    }, deadlineMs);
  }

  /**
   * Writes what `make` makes of the row, with no replica between. Undefined: it is not there; `same`: nothing was made.
   * `began` of the rows is by the clock of the database.
   * @throws EngineAway, or the database's error
   */
  async change(
    { owner, id }: RowKey,
    make: (row: SharedRow) => SharedRow | undefined,
  ): Promise<SharedRow | 'same' | undefined> {
    return this.writing(WRITE_MS, async (inside) => {
      const [row] = await inside.query<SharedRow>(`${READ_ONE} FOR UPDATE`, [owner, id]);
      if (row === undefined) return undefined;
      const next = make(row);
      if (next === undefined) return 'same';
      await inside.query(WRITE, [...columnsOf([next], (began) => began), []]);
      return next;
    });
  }

  /** One trip. The rows of a chain that are not named come without their response object. @throws EngineAway */
  async read({ responses, chains, items }: Named, owner: string): Promise<readonly SharedRow[]> {
    await this.#prepared();
    const values = [owner, responses, items, chains, MAX_BYTES, MAX_LINKS];
    return this.#database.query<SharedRow>(READ, values, READ_MS);
  }

  /** Also what another replica is about to write. @throws EngineAway */
  async remove({ owner, id }: RowKey): Promise<void> {
    await this.#prepared();
    await this.#database.transaction(async (inside) => {
      await this.#locked(inside, 'pg_advisory_xact_lock');
      await inside.query(
        'INSERT INTO hopgate.response_deletions VALUES ($1, $2, now()) ON CONFLICT DO NOTHING',
        [owner, id],
      );
      await inside.query('DELETE FROM hopgate.responses WHERE owner = $1 AND id = $2', [owner, id]);
    }, WRITE_MS);
  }

  /**
   * Removes what was made with a space, also what any replica is about to write.
   * @param at by the clock of this process: what was begun later stays; left out: now, by the database's
   * @throws EngineAway
   */
  async erase(
    space: string,
    at: number | undefined,
  ): Promise<{ readonly at: number; readonly rows: readonly RowKey[] }> {
    await this.#prepared();
    return this.#database.transaction(async (inside) => {
      const now = await this.#locked(inside, 'pg_advisory_xact_lock');
      const until = at === undefined ? now : at + this.#ahead.most;
      await inside.query(
        `INSERT INTO hopgate.response_erasures AS e VALUES ($1, $2)
           ON CONFLICT (space) DO UPDATE SET at = greatest(e.at, excluded.at)`,
        [space, until],
      );
      const rows = await inside.query<RowKey>(
        'DELETE FROM hopgate.responses WHERE space = $1 AND began <= $2 RETURNING owner, id',
        [space, until],
      );
      return { at: until, rows };
    }, WRITE_MS);
  }

  /**
   * Removes what is beyond the limits, unless a replica has done so within this time.
   * @returns what was removed; undefined: it was not this one's turn
   * @throws EngineAway
   */
  async prune(limits: ResponseLimits, everyMs: number): Promise<readonly RowKey[] | undefined> {
    await this.#prepared();
    return this.#database.transaction(async (inside) => {
      const turn = await inside.query(
        `UPDATE hopgate.response_upkeep SET at = clock_timestamp()
           WHERE at <= clock_timestamp() - $1 * interval '1 millisecond' RETURNING 1`,
        [everyMs],
      );
      if (turn.length === 0) return undefined;
      const rows = await inside.query<RowKey>(PRUNE, [limits.rows, limits.bytes, limits.age]);
      await inside.query(
        `DELETE FROM hopgate.response_threads t WHERE used < clock_timestamp() - interval '1 minute'
           AND NOT EXISTS (SELECT 1 FROM hopgate.responses r WHERE r.thread = t.id)`,
        [],
      );
      await inside.query(
        `DELETE FROM hopgate.response_deletions WHERE at < now() - ${REMEMBERED}`,
        [],
      );
      await inside.query(
        `DELETE FROM hopgate.response_erasures
           WHERE at < extract(epoch FROM now() - ${REMEMBERED}) * 1000`,
        [],
      );
      return rows;
    }, UPKEEP_MS);
  }

  /** Takes the lock until the end of the transaction, and reads the clock. */
  async #locked(inside: SqlReader, lock: string): Promise<number> {
    await inside.query(`SELECT ${lock}(${LOCK})`, []);
    const before = preciseNow();
    const [row] = await inside.query<{ now: number }>(`SELECT ${NOW} AS now`, []);
    const { now } = row!;
    this.#ahead = { least: now - preciseNow(), most: now - before };
    return now;
  }
}
