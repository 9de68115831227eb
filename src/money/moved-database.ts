/** The spend of all replicas as one side of a move: takes rows and totals of a machine's file, and gives those of all others. */

import type { Sql, SqlReader } from '../state/engines/engine.ts';
import { tablesThere } from '../state/move/moved-items.ts';
import { prepared } from '../state/sql/migrations.ts';
import { openPostgres } from '../state/sql/postgres.ts';
import {
  BEYOND,
  type DayCount,
  DIFFERS,
  type RowPlace,
  type SentRows,
} from './moved-file-store.ts';
import {
  columnsWith,
  type HourTotals,
  type SessionTotals,
  type StoredRow,
  SUM_COLUMNS,
  spendSchema,
} from './schema.ts';
import { MACHINE_LOCK, type NamedRow, type RowName, SpendStore } from './spend-store.ts';

const READ_MS = 60_000;
const WRITE_MS = 20_000;
const LOCK_MS = 5000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;

/** How far the file of a machine is moved. */
export interface MoveMark extends RowPlace {
  /** Rows that ended before this time are moved as totals. */
  readonly since: number;
  readonly totals: boolean;
}

/** A row as the database has it; labels and price are JSON. */
export type SharedRow = RowName & StoredRow;

export const PAGE = 500;

const SUMS = SUM_COLUMNS.join(', ');
const ADDED = SUM_COLUMNS.map((name) => `${name} = t.${name} + excluded.${name}`).join(', ');
const SUM_FIELDS = SUM_COLUMNS.map((name) => `${name} bigint`).join(', ');
const SUMMED = SUM_COLUMNS.map((name) => {
  if (name === 'tries') return 'count(*) AS tries';
  if (name === 'unpriced') return 'count(*) FILTER (WHERE cost IS NULL) AS unpriced';
  return `sum(coalesce(${name}, 0))::bigint AS ${name}`;
}).join(', ');
const SUM_OF = SUM_COLUMNS.map((name) => `sum(${name})`).join(', ');

export class SharedSpendRows {
  readonly #database: Sql;
  readonly #has: ReadonlySet<string>;

  /** By which files know this database; undefined: it has no name yet. */
  readonly name: string | undefined;

  private constructor(database: Sql, has: ReadonlySet<string>, name: string | undefined) {
    this.#database = database;
    this.#has = has;
    this.name = name;
  }

  /** @param writes makes the tables; else nothing is written */
  static async open(database: Sql, writes: boolean): Promise<SharedSpendRows> {
    if (writes) await prepared(database, 'spend', spendSchema().postgres)();
    const tables = await tablesThere(database, ['spend_rows', 'spend_moves']);
    if (!tables.has('spend_moves')) return new SharedSpendRows(database, tables, undefined);
    const [row] = await database.query<{ name: string }>(
      'SELECT name FROM hopgate.spend_name',
      [],
      READ_MS,
    );
    return new SharedSpendRows(database, tables, row!.name);
  }

  /** Undefined: nothing was moved from this file yet. */
  async mark(origin: string | undefined): Promise<MoveMark | undefined> {
    if (origin === undefined || !this.#has.has('spend_moves')) return undefined;
    const [row] = await this.#database.query<MoveMark>(
      'SELECT since, id, time, totals FROM hopgate.spend_moves WHERE origin = $1',
      [origin],
      READ_MS,
    );
    return row;
  }

  /** Whether it is this database that got them, and still has them all. */
  async knows(sent: readonly SentRows[]): Promise<boolean> {
    if (sent.length === 0) return true;
    if (!this.#has.has('spend_rows')) return false;
    const found = await this.#database.query<{ writer: string; rows: number }>(
      `SELECT writer, count(*) AS rows FROM hopgate.spend_rows
        WHERE at >= $1 AND at <= $2 AND writer = ANY($3) GROUP BY 1`,
      [
        Math.min(...sent.map(({ first }) => first)),
        Math.max(...sent.map(({ last }) => last)),
        sent.map(({ writer }) => writer),
      ],
      READ_MS,
    );
    const there = new Map(found.map(({ writer, rows }) => [writer, rows]));
    return sent.every(({ writer, rows }) => (there.get(writer) ?? 0) >= rows);
  }

  async begin(origin: string, since: number): Promise<void> {
    await this.#database.query(
      'INSERT INTO hopgate.spend_moves (origin, since, id, time) VALUES ($1, $2, 0, 0) ON CONFLICT DO NOTHING',
      [origin, since],
      WRITE_MS,
    );
  }

  /** The rows, as gateways write them; a machine has an order of its own. */
  storeOf(machine: string, replica = ''): SpendStore {
    return new SpendStore(openPostgres(this.#database, spendSchema()), { machine, replica });
  }

  /** The mark is in the same transaction. */
  putRows(store: SpendStore, origin: string, rows: readonly NamedRow[], upTo: RowPlace) {
    return store.put(rows, (inside) =>
      inside.query('UPDATE hopgate.spend_moves SET id = $2, time = $3 WHERE origin = $1', [
        origin,
        upTo.id,
        upTo.time,
      ]),
    );
  }

  /** Each hour of a file once. */
  putTotals(origin: string, all: readonly HourTotals[]): Promise<void> {
    return this.#writing(origin, async ({ query }) => {
      const came = `jsonb_to_recordset($1::jsonb)
        AS c (start bigint, key text, labels text, model text, target text, ${SUM_FIELDS})`;
      const batch = JSON.stringify(all);
      await query(
        `INSERT INTO hopgate.spend_texts (text) SELECT DISTINCT c.labels FROM ${came}
          WHERE NOT EXISTS (SELECT 1 FROM hopgate.spend_texts t WHERE md5(t.text) = md5(c.labels))
          ORDER BY 1 ON CONFLICT DO NOTHING`,
        [batch],
      );
      await query(
        `WITH new AS (
           INSERT INTO hopgate.spend_moved_totals (origin, start, key, labels, model, target, ${SUMS})
             SELECT $2, c.start, c.key, l.id, c.model, c.target, ${SUM_COLUMNS.map((name) => `c.${name}`).join(', ')}
             FROM ${came} JOIN hopgate.spend_texts l ON md5(l.text) = md5(c.labels)
             ON CONFLICT DO NOTHING RETURNING *
         )
         INSERT INTO hopgate.spend_totals AS t (span, start, key, labels, model, target, ${SUMS})
           SELECT span, spans.start, key, labels, model, target, ${SUM_OF} FROM new
             CROSS JOIN LATERAL (VALUES (0, new.start), (1, new.start - new.start % ${DAY_MS}),
               (2, hopgate.spend_month_of(new.start))) spans (span, start)
             GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY 1, 2, 3, 4, 5, 6
           ON CONFLICT (span, start, key, labels, model, target) DO UPDATE SET ${ADDED}`,
        [batch, origin],
      );
    });
  }

  /** Each day of a session in a file once. */
  putSessions(origin: string, all: readonly SessionTotals[]): Promise<void> {
    return this.#writing(origin, async ({ query }) => {
      await query(
        `WITH new AS (
           INSERT INTO hopgate.spend_moved_sessions (origin, start, session, key, ${SUMS})
             SELECT $2, c.* FROM jsonb_to_recordset($1::jsonb)
               AS c (start bigint, session text, key text, ${SUM_FIELDS})
             ON CONFLICT DO NOTHING RETURNING *
         )
         INSERT INTO hopgate.spend_session_totals AS t (start, session, key, ${SUMS})
           SELECT start, session, key, ${SUMS} FROM new ORDER BY 1, 2, 3
           ON CONFLICT (start, session, key) DO UPDATE SET ${ADDED}`,
        [JSON.stringify(all), origin],
      );
    });
  }

  async endTotals(origin: string): Promise<void> {
    await this.#database.query(
      'UPDATE hopgate.spend_moves SET totals = true WHERE origin = $1',
      [origin],
      WRITE_MS,
    );
  }

  /** Rows by day, without those that a file has itself. */
  async days(own: string | undefined): Promise<readonly DayCount[]> {
    if (!this.#has.has('spend_rows')) return [];
    return this.#database.query<DayCount>(
      `SELECT at - at % ${DAY_MS} AS day, count(*) AS rows, sum(rev)::bigint AS revs FROM hopgate.spend_rows
        WHERE writer <> $1 GROUP BY 1 ORDER BY 1`,
      [own ?? ''],
      READ_MS,
    );
  }

  /** The rows of one of these days, in pages. */
  async *rowsOf(day: number, own: string | undefined): AsyncGenerator<readonly SharedRow[]> {
    const columns = columnsWith()
      .flatMap(({ name, isShared }) => (isShared ? [] : [`s.${name}`]))
      .join(', ');
    for (let [at, writer, n] = [day - 1, '', 0]; ; ) {
      const rows = await this.#database.query<SharedRow>(
        `SELECT s.at, s.writer, s.n, s.rev, s.replica, ${columns}, l.text AS labels_text, p.text AS price_text
          FROM hopgate.spend_rows s JOIN hopgate.spend_texts l ON l.id = s.labels
          LEFT JOIN hopgate.spend_texts p ON p.id = s.price
          WHERE s.at >= $1 AND s.at < $2 AND (s.at, s.writer, s.n) > ($3, $4, $5) AND s.writer <> $6
          ORDER BY s.at, s.writer, s.n LIMIT ${PAGE}`,
        [day, day + DAY_MS, at, writer, n, own ?? ''],
        READ_MS,
      );
      if (rows.length > 0) yield rows;
      if (rows.length < PAGE) return;
      ({ at, writer, n } = rows.at(-1)!);
    }
  }

  /** Hours whose totals count other tries than there are rows, in order. */
  async hoursWithoutRows(from: number, to: number): Promise<readonly number[]> {
    if (!this.#has.has('spend_rows')) return [];
    const rows = await this.#database.query<{ hour: number }>(
      `SELECT t.start AS hour FROM (SELECT start, sum(tries) AS tries FROM hopgate.spend_totals
          WHERE span = 0 AND start >= $1 AND start < $2 GROUP BY 1) t
        LEFT JOIN (SELECT time - time % ${HOUR_MS} AS start, count(*) AS tries FROM hopgate.spend_rows
          WHERE time >= $1 AND time < $2 GROUP BY 1) r ON r.start = t.start
        WHERE t.tries <> coalesce(r.tries, 0) ORDER BY 1`,
      [from, to],
      READ_MS,
    );
    return rows.map(({ hour }) => hour);
  }

  /** What the totals of an hour count beyond the rows. */
  totalsWithoutRows(hour: number): Promise<readonly HourTotals[]> {
    return this.#database.query<HourTotals>(
      `SELECT t.start, t.key, l.text AS labels, t.model, t.target, ${BEYOND}
        FROM hopgate.spend_totals t JOIN hopgate.spend_texts l ON l.id = t.labels
        LEFT JOIN (SELECT key, labels, model, target, ${SUMMED} FROM hopgate.spend_rows
          WHERE time >= $1 AND time < $2 GROUP BY 1, 2, 3, 4) r
          ON r.key = t.key AND r.labels = t.labels AND r.model = t.model AND r.target = t.target
        WHERE t.span = 0 AND t.start = $1 AND (${DIFFERS})`,
      [hour, hour + HOUR_MS],
      READ_MS,
    );
  }

  /** The same of the sessions of a day. */
  sessionsWithoutRows(day: number): Promise<readonly SessionTotals[]> {
    return this.#database.query<SessionTotals>(
      `SELECT t.start, t.session, t.key, ${BEYOND} FROM hopgate.spend_session_totals t
        LEFT JOIN (SELECT session, key, ${SUMMED} FROM hopgate.spend_rows
          WHERE time >= $1 AND time < $2 AND session IS NOT NULL GROUP BY 1, 2) r
          ON r.session = t.session AND r.key = t.key
        WHERE t.start = $1 AND (${DIFFERS})`,
      [day, day + DAY_MS],
      READ_MS,
    );
  }

  #writing(origin: string, work: (inside: SqlReader) => Promise<void>): Promise<void> {
    return this.#database.transaction(async (inside) => {
      await inside.query("SELECT set_config('lock_timeout', $1, true)", [`${LOCK_MS}`]);
      await inside.query('SELECT pg_advisory_xact_lock($1, hashtext($2))', [MACHINE_LOCK, origin]);
      await work(inside);
    }, WRITE_MS);
  }
}
