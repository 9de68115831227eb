/** The file of spend as one side of a move: its rows, and what its totals count beyond them. */

import type { Database } from 'bun:sqlite';
import { randomBase36 } from '../lib/text/ids.ts';
import { openSource } from '../state/move/source-store.ts';
import { openSqlite } from '../state/sql/sqlite.ts';
import { openAsItIs } from '../state/versioned-store.ts';
import {
  type HourTotals,
  type SessionTotals,
  type StoredRow,
  SUM_COLUMNS,
  spendSchema,
} from './schema.ts';
import type { NamedRow, SpendStore } from './spend-store.ts';

/** Milliseconds to wait for a gateway that writes. */
export const BUSY_MS = 5000;

/**
 * What moves know of the file. Versions before the journal, with a shared database, wrote it, too.
 * `spool`: this file's name among all machines. `shared_rows`: rows of the file that the shared database knows by `at`,
 * `writer` and `n`. Ids of rows that are gone may be used again: the time tells such rows apart. `imports`: ids of rows
 * that a move wrote, not in the order of time, and from which database. `taken_totals`: up to which hour a move took
 * totals of rows that the database has no more. `unsent`: what such a version had not sent yet.
 */
const TABLES = [
  `CREATE TABLE IF NOT EXISTS unsent (
    writer TEXT NOT NULL, n INTEGER NOT NULL, rev INTEGER NOT NULL, at INTEGER NOT NULL, written INTEGER NOT NULL,
    spend INTEGER, refused INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (writer, n, rev)) WITHOUT ROWID`,
  'CREATE INDEX IF NOT EXISTS unsent_spend ON unsent (spend)',
  'CREATE TABLE IF NOT EXISTS taken_totals (database TEXT PRIMARY KEY, through INTEGER NOT NULL) WITHOUT ROWID',
  `CREATE TABLE IF NOT EXISTS shared_rows (
    writer TEXT NOT NULL, n INTEGER NOT NULL, at INTEGER NOT NULL, rev INTEGER NOT NULL, spend INTEGER NOT NULL,
    time INTEGER NOT NULL, PRIMARY KEY (writer, n, at)) WITHOUT ROWID`,
  'CREATE INDEX IF NOT EXISTS shared_rows_time ON shared_rows (time, spend)',
  'CREATE TABLE IF NOT EXISTS imports (first INTEGER PRIMARY KEY, last INTEGER NOT NULL, database TEXT NOT NULL)',
  'CREATE TABLE IF NOT EXISTS spool (id TEXT PRIMARY KEY, sender TEXT, until INTEGER NOT NULL) WITHOUT ROWID',
];

/** How many rows of a day there are, and the sum of their versions. */
export interface DayCount {
  readonly day: number;
  readonly rows: number;
  readonly revs: number;
}

/** How many rows of a process a database got, and between which times they lie. */
export interface SentRows {
  readonly writer: string;
  readonly rows: number;
  readonly first: number;
  readonly last: number;
}

/** Behind the last row that was moved. */
export interface RowPlace {
  readonly id: number;
  readonly time: number;
}

type Values = Readonly<Record<string, number>>;

const SUMMED = SUM_COLUMNS.map((name) => {
  if (name === 'tries') return 'count(*) AS tries';
  if (name === 'unpriced') return 'sum(cost IS NULL) AS unpriced';
  return `sum(coalesce(${name}, 0)) AS ${name}`;
}).join(', ');
/** SQL: what totals `t` count beyond the rows of `r`. */
export const BEYOND = SUM_COLUMNS.map(
  (name) => `t.${name} - coalesce(r.${name}, 0) AS ${name}`,
).join(', ');
export const DIFFERS = SUM_COLUMNS.map((name) => `t.${name} <> coalesce(r.${name}, 0)`).join(
  ' OR ',
);

const NAMED =
  'EXISTS (SELECT 1 FROM shared_rows s WHERE s.time = spend.time AND s.spend = spend.id)';
const REFUSED = 'spend.id IN (SELECT spend FROM unsent WHERE refused = 1)';
/** Tries that a killed process left, and which a process that only seemed dead may take back: their rows come later. */
const EARLIER_OPEN_ROWS =
  'SELECT spend FROM running WHERE spend IS NOT NULL AND writer IN (SELECT id FROM writers)';
const OPEN_ROWS = `${EARLIER_OPEN_ROWS} UNION ALL SELECT id AS spend FROM spend
  WHERE rev < 3 AND writer IN (SELECT writer FROM spend_marks WHERE gone IS NULL)`;

/** A row of the file; with the name by which a shared database knows it, if one does. */
export type FileRow = StoredRow & {
  readonly of_writer: string | null;
  readonly of_n: number;
  readonly of_at: number;
  readonly of_rev: number;
};

export class SpendFile {
  readonly #db: Database;
  /** A gateway with a shared database, or a move, has written here. */
  readonly #isNamed: boolean;
  /** SQL: ids of {@link OPEN_ROWS}. */
  readonly #openRows: string;

  private constructor(db: Database) {
    this.#db = db;
    const table = db.query<unknown, [string]>('SELECT 1 FROM sqlite_master WHERE name = ?');
    this.#isNamed = table.get('shared_rows') !== null;
    this.#openRows = table.get('spend_marks') === null ? EARLIER_OPEN_ROWS : OPEN_ROWS;
  }

  /** To be looked at; undefined: there is none. @throws Error with a message for people */
  static open(path: string): SpendFile | undefined {
    const source = openSource(path, spendSchema().sqlite.length);
    return source && new SpendFile(source.db);
  }

  /** Gives a file a name among all machines, if it has none; makes it if there is none. */
  static name(path: string): string {
    openSqlite(spendSchema(), { path, busyMs: BUSY_MS }).close();
    const db = openAsItIs(path);
    try {
      return db
        .transaction(() => {
          for (const sql of TABLES) db.run(sql);
          const found = db.query<{ id: string }, []>('SELECT id FROM spool').get();
          if (found !== null) return found.id;
          const id = randomBase36(20);
          db.query('INSERT INTO spool VALUES (?, NULL, 0)').run(id);
          return id;
        })
        .immediate();
    } finally {
      db.close();
    }
  }

  /** Undefined: it has none yet. */
  get origin(): string | undefined {
    if (!this.#isNamed) return undefined;
    return this.#db.query<{ id: string }, []>('SELECT id FROM spool').get()?.id;
  }

  /** Rows or totals came from this database, by a move. */
  hasImports(database: string | undefined): boolean {
    if (!this.#isNamed || database === undefined) return false;
    const rows = this.#db.query<unknown, [string]>(
      'SELECT 1 FROM imports WHERE database = ? LIMIT 1',
    );
    return rows.get(database) !== null || this.takenThrough(database) !== undefined;
  }

  /** The hour up to which totals were taken from this database; undefined: none were. */
  takenThrough(database: string | undefined): number | undefined {
    if (!this.#isNamed || database === undefined) return undefined;
    return this.#db
      .query<{ through: number }, [string]>('SELECT through FROM taken_totals WHERE database = ?')
      .get(database)?.through;
  }

  /** The row behind which the next one is not moved yet. A file that begins anew uses its ids again. */
  placeFrom(last: RowPlace): RowPlace {
    const row = this.#db
      .query<{ time: number }, [number]>('SELECT time FROM spend WHERE id = ?')
      .get(last.id);
    const first = this.#db
      .query<{ id: number | null }, []>('SELECT min(id) AS id FROM spend')
      .get()!;
    const goesOn = row === null ? first.id === null || first.id > last.id : row.time === last.time;
    return goesOn ? last : { id: 0, time: 0 };
  }

  /**
   * SQL: the row is to be moved if it ended at the time of the value `since` or later. Rows that a shared database
   * knows are moved, under the name that they have there, as long as nothing tells that it is this one.
   */
  #movable(named: boolean): string {
    const others = this.#isNamed ? ` AND NOT ${named ? REFUSED : NAMED}` : '';
    return `spend.time >= $since AND spend.id NOT IN (${this.#openRows})${others}`;
  }

  /** @param named also rows that a shared database knows */
  count(after: number, since: number, named: boolean): number {
    return this.#db
      .query<{ rows: number }, [Values]>(
        `SELECT count(*) AS rows FROM spend WHERE id > $after AND ${this.#movable(named)}`,
      )
      .get({ after, since })!.rows;
  }

  /** Those rows, the oldest first, in pages. With each, up to where all are moved when it is. */
  *pages(
    after: number,
    since: number,
    named: boolean,
    most: number,
  ): Iterable<{ readonly rows: readonly FileRow[]; readonly upTo: RowPlace }> {
    const [names, join] = this.#isNamed
      ? [
          's.writer AS of_writer, s.n AS of_n, s.at AS of_at, s.rev AS of_rev',
          'LEFT JOIN shared_rows s ON s.time = spend.time AND s.spend = spend.id',
        ]
      : ['NULL AS of_writer, 0 AS of_n, 0 AS of_at, 0 AS of_rev', ''];
    const query = this.#db.query<FileRow, [Values]>(
      `SELECT spend.*, texts.text AS labels_text, prices.text AS price_text, ${names} FROM spend
        JOIN texts ON texts.id = spend.labels LEFT JOIN texts AS prices ON prices.id = spend.price ${join}
        WHERE spend.id > $after AND ${this.#movable(named)} ORDER BY spend.id LIMIT $most`,
    );
    const before = this.#db.query<RowPlace, [number]>(
      `SELECT id, time FROM spend WHERE id < (SELECT min(spend) FROM (${this.#openRows})) AND id <= ?
        ORDER BY id DESC LIMIT 1`,
    );
    const isOpen = this.#db.query<unknown, [number]>(
      `SELECT 1 FROM (${this.#openRows}) WHERE spend <= ?`,
    );
    for (let last = after; ; ) {
      const rows = query.all({ after: last, since, most });
      if (rows.length === 0) return;
      const { id, time } = rows.at(-1)!;
      const upTo = isOpen.get(id) === null ? { id, time } : (before.get(id) ?? { id: 0, time: 0 });
      yield { rows, upTo };
      last = id;
    }
  }

  /** What totals count beyond the rows that are moved: rows that were deleted after their time. In one snapshot. */
  *totals(since: number): Iterable<HourTotals> {
    if (!this.#hasMore('totals WHERE span = 0', 'true', since)) return;
    yield* this.#db
      .query<HourTotals, [number]>(
        `SELECT t.start, t.key, texts.text AS labels, t.model, t.target, ${BEYOND}
          FROM totals t JOIN texts ON texts.id = t.labels
          LEFT JOIN (SELECT time - time % 3600000 AS start, key, labels, model, target, ${SUMMED} FROM spend
            WHERE time >= ? GROUP BY 1, 2, 3, 4, 5) r
            ON r.start = t.start AND r.key = t.key AND r.labels = t.labels AND r.model = t.model AND r.target = t.target
          WHERE t.span = 0 AND (${DIFFERS})`,
      )
      .iterate(since);
  }

  /** The same of sessions. */
  *sessions(since: number): Iterable<SessionTotals> {
    if (!this.#hasMore('session_totals', 'session IS NOT NULL', since)) return;
    yield* this.#db
      .query<SessionTotals, [number]>(
        `SELECT t.start, t.session, t.key, ${BEYOND} FROM session_totals t
          LEFT JOIN (SELECT time - time % 86400000 AS start, session, key, ${SUMMED} FROM spend
            WHERE session IS NOT NULL AND time >= ? GROUP BY 1, 2, 3) r
            ON r.start = t.start AND r.session = t.session AND r.key = t.key
          WHERE ${DIFFERS}`,
      )
      .iterate(since);
  }

  /** Totals count other tries than the rows: to add up groups of rows takes long where there are many. */
  #hasMore(totals: string, rows: string, since: number): boolean {
    const { counted, there } = this.#db
      .query<{ counted: number; there: number }, [number]>(
        `SELECT (SELECT coalesce(sum(tries), 0) FROM ${totals}) AS counted,
          (SELECT count(*) FROM spend WHERE time >= ? AND ${rows}) AS there`,
      )
      .get(since)!;
    return counted !== there;
  }

  /** What a shared database got from this file by itself, by process. */
  sent(): readonly SentRows[] {
    if (!this.#isNamed) return [];
    return this.#db
      .query<SentRows, []>(
        `SELECT writer, count(*) AS rows, min(at) AS first, max(at) AS last FROM shared_rows s
          WHERE NOT EXISTS (SELECT 1 FROM unsent u WHERE u.writer = s.writer AND u.n = s.n) GROUP BY 1`,
      )
      .all();
  }

  /** Rows that the shared database knows, and rows that came from it, without those that wait to be sent. */
  days(): readonly DayCount[] {
    if (!this.#isNamed) return [];
    return this.#db
      .query<DayCount, []>(
        `SELECT at - at % 86400000 AS day, count(*) AS rows, sum(rev) AS revs FROM shared_rows s
          WHERE NOT EXISTS (SELECT 1 FROM unsent u WHERE u.writer = s.writer AND u.n = s.n) GROUP BY 1`,
      )
      .all();
  }

  /**
   * Writes rows of the shared database that this file has not, or in an older version.
   * @param store of this file
   * @param database its name
   * @returns how many were written
   */
  async takeIn(store: SpendStore, rows: readonly NamedRow[], database: string): Promise<number> {
    const known = this.#db.query<{ rev: number; spend: number }, [string, number, number]>(
      'SELECT rev, spend FROM shared_rows WHERE writer = ? AND n = ? AND at = ?',
    );
    const gone: number[] = [];
    const news: NamedRow[] = [];
    for (const row of rows) {
      const there = known.get(row.writer, row.n, row.at);
      if (there !== null && there.rev >= row.rev) continue;
      if (there !== null) gone.push(there.spend);
      // What it has to become is known by the database.
      news.push(row);
    }
    if (news.length === 0) return 0;
    await store.put(
      news,
      async (inside, written) => {
        for (const id of gone) {
          await inside.query('DELETE FROM hopgate.shared_rows WHERE spend = $1', [id]);
        }
        for (const [{ writer, n, at, rev, row }, id] of written) {
          await inside.query(
            `INSERT INTO hopgate.shared_rows (writer, n, at, rev, spend, time) VALUES ($1, $2, $3, $4, $5, $6)
              ON CONFLICT (writer, n, at) DO UPDATE SET rev = excluded.rev, spend = excluded.spend, time = excluded.time`,
            [writer, n, at, rev, id, row.time],
          );
        }
        if (written.length === 0) return;
        const [first, last] = [written[0]![1], written.at(-1)![1]];
        const [before] = await inside.query<{ first: number; last: number; database: string }>(
          'SELECT * FROM hopgate.imports ORDER BY first DESC LIMIT 1',
        );
        const goesOn = before?.last === first - 1 && before.database === database;
        await inside.query('INSERT OR REPLACE INTO hopgate.imports VALUES ($1, $2, $3)', [
          goesOn ? before.first : first,
          last,
          database,
        ]);
      },
      gone,
    );
    return news.length;
  }

  /**
   * Adds totals of a shared database that has no rows for them any more.
   * @param store of this file
   * @param database its name
   * @param through the last hour of which these are all
   */
  takeTotals(
    store: SpendStore,
    database: string,
    through: number,
    hours: readonly HourTotals[],
    sessions: readonly SessionTotals[],
  ): Promise<void> {
    const noRows = { first_row: null, last_row: null };
    return store.putTotals(
      hours,
      sessions.map((one) => ({ ...one, ...noRows })),
      (inside) =>
        inside.query('INSERT OR REPLACE INTO hopgate.taken_totals VALUES ($1, $2)', [
          database,
          through,
        ]),
    );
  }

  /** Rows and tries that the gateway sends by itself. */
  get unsent(): number {
    if (!this.#isNamed) return 0;
    return this.#db.query<{ rows: number }, []>('SELECT count(*) AS rows FROM unsent').get()!.rows;
  }

  close(): void {
    this.#db.close();
  }
}
