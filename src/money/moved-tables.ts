/** The tables of spend as moves read them: rows, totals whose rows are deleted, and the progress of moves. */

import { namedFile, pagesOf, type Side } from '../state/move/sides.ts';
import { placeholders, type SqlDatabase, type SqlStatements } from '../state/sql/sql.ts';
import {
  columnsWith,
  DATABASE_NAMES,
  FILE_NAMES,
  type HourTotals,
  type SessionTotals,
  type SpendNames,
  type StoredRow,
  SUM_COLUMNS,
} from './schema.ts';
import type { RowName } from './spend-store.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
export const PAGE = 500;

const SUMMED = SUM_COLUMNS.map((name) => {
  if (name === 'tries') return 'count(*) AS tries';
  if (name === 'unpriced') return 'count(*) FILTER (WHERE cost IS NULL) AS unpriced';
  return `CAST(sum(coalesce(${name}, 0)) AS bigint) AS ${name}`;
}).join(', ');
const BEYOND = SUM_COLUMNS.map((name) => `t.${name} - coalesce(r.${name}, 0) AS ${name}`);
const DIFFERS = SUM_COLUMNS.map((name) => `t.${name} <> coalesce(r.${name}, 0)`).join(' OR ');

/** Times of rows and starts of totals, in milliseconds since 1970; the ends are not included. */
type Span = readonly [rowsFrom: number, rowsTo: number, totalsFrom: number, totalsTo: number];

const ALWAYS = 8_000_000_000_000_000;
const since = (time: number): Span => [time, ALWAYS, -ALWAYS, ALWAYS];
const within = (start: number, ms: number): Span => [start, start + ms, start, start + ms];

/** The part of totals whose rows are deleted. */
function hoursBeyond(db: SqlStatements, { rows, totals, texts }: SpendNames, span: Span) {
  return db.query<HourTotals>(
    `SELECT t.start, t.key, x.text AS labels, t.model, t.target, ${BEYOND.join(', ')}
       FROM ${totals} t JOIN ${texts} x ON x.id = t.labels
       LEFT JOIN (SELECT time - time % ${HOUR_MS} AS start, key, labels, model, target, ${SUMMED} FROM ${rows}
         WHERE time >= $1 AND time < $2 GROUP BY 1, 2, 3, 4, 5) r
         ON r.start = t.start AND r.key = t.key AND r.labels = t.labels AND r.model = t.model AND r.target = t.target
       WHERE t.span = 0 AND t.start >= $3 AND t.start < $4 AND (${DIFFERS})`,
    span,
  );
}

/** The part of session totals whose rows are deleted. */
function sessionsBeyond(db: SqlStatements, { rows, sessionTotals }: SpendNames, span: Span) {
  return db.query<SessionTotals>(
    `SELECT t.start, t.session, t.key, ${BEYOND.join(', ')} FROM ${sessionTotals} t
       LEFT JOIN (SELECT time - time % ${DAY_MS} AS start, session, key, ${SUMMED} FROM ${rows}
         WHERE time >= $1 AND time < $2 AND session IS NOT NULL GROUP BY 1, 2, 3) r
         ON r.start = t.start AND r.session = t.session AND r.key = t.key
       WHERE t.start >= $3 AND t.start < $4 AND (${DIFFERS})`,
    span,
  );
}

/** Behind the last row that was moved. */
export interface RowPlace {
  readonly id: number;
  readonly time: number;
}
export const BEGINNING: RowPlace = { id: 0, time: 0 };

/** Rows of a day, and the sum of their versions. */
export interface DayCount {
  readonly day: number;
  readonly rows: number;
  readonly revs: number;
}

/** Rows of a process that a database got, and their first and last time. */
export interface SentRows {
  readonly writer: string;
  readonly rows: number;
  readonly first: number;
  readonly last: number;
}

/** A row of the file, with its name in a shared database, if it has one. */
export type FileRow = StoredRow & {
  readonly of_writer: string | null;
  readonly of_n: number;
  readonly of_at: number;
  readonly of_rev: number;
};

/**
 * Tables of the file that moves use. Versions before the journal wrote them, too, where they had a shared database.
 * `spool`: this file's name among all machines. `shared_rows`: rows of the file that the shared database knows by `at`,
 * `writer` and `n`. Ids of rows that are gone may be used again: the time tells such rows apart. `imports`: ids of rows
 * that a move wrote, not in the order of time, and from which database. `taken_totals`: up to which hour a move took
 * totals of rows that the database has no more. `unsent`: what such a version had not sent yet.
 */
const NOTES = [
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

const NAMED =
  'EXISTS (SELECT 1 FROM shared_rows s WHERE s.time = spend.time AND s.spend = spend.id)';
const REFUSED = 'spend.id IN (SELECT spend FROM unsent WHERE refused = 1)';
/** Rows that may still change: a process that seemed dead may take them back. */
const OPEN_ROWS = `SELECT spend FROM running WHERE spend IS NOT NULL AND writer IN (SELECT id FROM writers)
  UNION ALL SELECT id AS spend FROM spend
    WHERE rev < 3 AND writer IN (SELECT writer FROM spend_marks WHERE gone IS NULL)`;
const NOT_UNSENT = 'NOT EXISTS (SELECT 1 FROM unsent u WHERE u.writer = s.writer AND u.n = s.n)';

/** Gives the file a name, if it has none. */
export const nameFile = namedFile(
  NOTES,
  'INSERT INTO spool SELECT $1, NULL, 0 WHERE NOT EXISTS (SELECT 1 FROM spool)',
);

/** The file of a machine. */
export class SpendFile {
  private constructor(
    private readonly db: SqlDatabase,
    /** A move, or a gateway with a shared database, has written here. */
    private readonly isNamed: boolean,
    /** Among all machines; undefined: it has no name yet. */
    readonly origin: string | undefined,
  ) {}

  static async of({ db, has }: Side): Promise<SpendFile> {
    const isNamed = has.has('shared_rows');
    const [row] = isNamed ? await db.query<{ id: string }>('SELECT id FROM spool') : [];
    return new SpendFile(db, isNamed, row?.id);
  }

  async #one<Row>(
    sql: string,
    values: readonly (string | number)[] = [],
  ): Promise<Row | undefined> {
    const [row] = await this.db.query<Row>(sql, values);
    return row;
  }

  /** Rows or totals came from this database, by a move. */
  async hasImports(database: string | undefined): Promise<boolean> {
    if (!this.isNamed || database === undefined) return false;
    const row = await this.#one('SELECT 1 FROM imports WHERE database = $1 LIMIT 1', [database]);
    return row !== undefined || (await this.takenThrough(database)) !== undefined;
  }

  /** The hour up to which totals were taken from this database; undefined: none were. */
  async takenThrough(database: string | undefined): Promise<number | undefined> {
    if (!this.isNamed || database === undefined) return undefined;
    const sql = 'SELECT through FROM taken_totals WHERE database = $1';
    return (await this.#one<{ through: number }>(sql, [database]))?.through;
  }

  /** The row behind which the next one is not moved yet. A file that begins anew uses its ids again. */
  async placeFrom(last: RowPlace): Promise<RowPlace> {
    const row = await this.#one<RowPlace>('SELECT id, time FROM spend WHERE id = $1', [last.id]);
    const first = await this.#one<{ id: number | null }>('SELECT min(id) AS id FROM spend');
    const { id } = first!;
    const goesOn = row === undefined ? id === null || id > last.id : row.time === last.time;
    return goesOn ? last : BEGINNING;
  }

  /**
   * SQL: rows behind the id $1 that ended at $2 or later. Rows that a shared database knows are moved, under the name
   * that they have there, as long as nothing tells that it is this one.
   * @param named also rows that a shared database knows
   */
  #movable(named: boolean): string {
    const others = this.isNamed ? ` AND NOT ${named ? REFUSED : NAMED}` : '';
    return `spend.id > $1 AND spend.time >= $2 AND spend.id NOT IN (${OPEN_ROWS})${others}`;
  }

  async count(after: number, since: number, named: boolean): Promise<number> {
    const sql = `SELECT count(*) AS rows FROM spend WHERE ${this.#movable(named)}`;
    return (await this.#one<{ rows: number }>(sql, [after, since]))!.rows;
  }

  /** Pages of movable rows, the oldest first. `upTo`: all rows up to there are moved when the page is. */
  async *pages(
    after: number,
    since: number,
    named: boolean,
  ): AsyncGenerator<{ readonly rows: readonly FileRow[]; readonly upTo: RowPlace }> {
    const [names, join] = this.isNamed
      ? [
          's.writer AS of_writer, s.n AS of_n, s.at AS of_at, s.rev AS of_rev',
          'LEFT JOIN shared_rows s ON s.time = spend.time AND s.spend = spend.id',
        ]
      : ['NULL AS of_writer, 0 AS of_n, 0 AS of_at, 0 AS of_rev', ''];
    for (let last = after; ; ) {
      const rows = await this.db.query<FileRow>(
        `SELECT spend.*, texts.text AS labels_text, prices.text AS price_text, ${names} FROM spend
           JOIN texts ON texts.id = spend.labels LEFT JOIN texts AS prices ON prices.id = spend.price ${join}
           WHERE ${this.#movable(named)} ORDER BY spend.id LIMIT ${PAGE}`,
        [last, since],
      );
      if (rows.length === 0) return;
      const { id } = rows.at(-1)!;
      const upTo = await this.#one<RowPlace>(
        `SELECT id, time FROM spend WHERE id <= $1 AND id < coalesce((SELECT min(spend) FROM (${OPEN_ROWS})), $1 + 1)
           ORDER BY id DESC LIMIT 1`,
        [id],
      );
      yield { rows, upTo: upTo ?? BEGINNING };
      last = id;
    }
  }

  /** Totals beyond the rows that are moved. */
  async totals(time: number): Promise<readonly HourTotals[]> {
    const { rows, totals } = FILE_NAMES;
    if (await this.#isEven(rows, `${totals} WHERE span = 0`, time)) return [];
    return hoursBeyond(this.db, FILE_NAMES, since(time));
  }

  async sessions(time: number): Promise<readonly SessionTotals[]> {
    const { rows, sessionTotals } = FILE_NAMES;
    if (
      await this.#isEven(`(SELECT * FROM ${rows} WHERE session IS NOT NULL)`, sessionTotals, time)
    )
      return [];
    return sessionsBeyond(this.db, FILE_NAMES, since(time));
  }

  /** Totals count as many tries as there are rows: to add up groups of rows takes long where there are many. */
  async #isEven(rows: string, totals: string, time: number): Promise<boolean> {
    const found = await this.#one<{ counted: number; there: number }>(
      `SELECT (SELECT coalesce(sum(tries), 0) FROM ${totals}) AS counted,
         (SELECT count(*) FROM ${rows} WHERE time >= $1) AS there`,
      [time],
    );
    return found!.counted === found!.there;
  }

  /** Rows that gateways of earlier versions sent to a shared database, by process. */
  async sent(): Promise<readonly SentRows[]> {
    if (!this.isNamed) return [];
    return this.db.query(
      `SELECT writer, count(*) AS rows, min(at) AS first, max(at) AS last FROM shared_rows s
         WHERE ${NOT_UNSENT} GROUP BY 1`,
    );
  }

  /** Rows that the shared database knows, and rows that came from it, without those that wait to be sent. */
  async days(): Promise<readonly DayCount[]> {
    if (!this.isNamed) return [];
    return this.db.query(
      `SELECT at - at % ${DAY_MS} AS day, count(*) AS rows, sum(rev) AS revs FROM shared_rows s
         WHERE ${NOT_UNSENT} GROUP BY 1`,
    );
  }

  /** Rows and tries that the gateway sends by itself. */
  async unsent(): Promise<number> {
    if (!this.isNamed) return 0;
    return (await this.#one<{ rows: number }>('SELECT count(*) AS rows FROM unsent'))!.rows;
  }
}

/** The progress of the move of a file. */
export interface MoveMark extends RowPlace {
  /** Rows that ended before this time are moved as totals. */
  readonly since: number;
  readonly totals: boolean;
}

/** A row as the database has it; labels and price are JSON. */
export type DatabaseRow = RowName & StoredRow;

/** The database of all replicas. */
export class SpendDatabase {
  readonly #hasRows: boolean;
  readonly #hasMoves: boolean;

  private constructor(
    private readonly side: Side,
    /** Its name in files; undefined: it has none yet. */
    readonly name: string | undefined,
  ) {
    this.#hasRows = side.has.has('spend_rows');
    this.#hasMoves = side.has.has('spend_moves');
  }

  static async of(side: Side): Promise<SpendDatabase> {
    const isNamed = side.has.has('spend_name');
    const sql = 'SELECT name FROM hopgate.spend_name';
    const [row] = isNamed ? await side.reader.query<{ name: string }>(sql) : [];
    return new SpendDatabase(side, row?.name);
  }

  /** Undefined: nothing was moved from this file yet. */
  async mark(origin: string | undefined): Promise<MoveMark | undefined> {
    if (origin === undefined || !this.#hasMoves) return undefined;
    const sql = 'SELECT since, id, time, totals FROM hopgate.spend_moves WHERE origin = $1';
    const [row] = await this.side.reader.query<MoveMark>(sql, [origin]);
    return row;
  }

  /** Whether this database got these rows, and still has all of them. */
  async knows(sent: readonly SentRows[]): Promise<boolean> {
    if (sent.length === 0) return true;
    if (!this.#hasRows) return false;
    const found = await this.side.reader.query<{ writer: string; rows: number }>(
      `SELECT writer, count(*) AS rows FROM hopgate.spend_rows
         WHERE at >= $1 AND at <= $2 AND writer IN (${placeholders(sent.length, 3)}) GROUP BY 1`,
      [
        Math.min(...sent.map(({ first }) => first)),
        Math.max(...sent.map(({ last }) => last)),
        ...sent.map(({ writer }) => writer),
      ],
    );
    const there = new Map(found.map(({ writer, rows }) => [writer, rows]));
    return sent.every(({ writer, rows }) => (there.get(writer) ?? 0) >= rows);
  }

  /** Rows by day, without those that a file has itself. */
  async days(own: string | undefined): Promise<readonly DayCount[]> {
    if (!this.#hasRows) return [];
    return this.side.reader.query(
      `SELECT at - at % ${DAY_MS} AS day, count(*) AS rows, CAST(sum(rev) AS bigint) AS revs
         FROM hopgate.spend_rows WHERE writer <> $1 GROUP BY 1 ORDER BY 1`,
      [own ?? ''],
    );
  }

  /** The rows of one of these days, in pages. */
  async *rowsOf(day: number, own = ''): AsyncGenerator<readonly DatabaseRow[]> {
    const columns = columnsWith().flatMap(({ name, isShared }) => (isShared ? [] : [`s.${name}`]));
    yield* pagesOf<DatabaseRow>(
      this.side,
      `SELECT s.at, s.writer, s.n, s.rev, s.replica, ${columns.join(', ')},
           l.text AS labels_text, p.text AS price_text
         FROM hopgate.spend_rows s JOIN hopgate.spend_texts l ON l.id = s.labels
         LEFT JOIN hopgate.spend_texts p ON p.id = s.price
         WHERE s.at >= $1 AND s.at < $2 AND s.writer <> $3`,
      ['at', 'writer', 'n'],
      [day, day + DAY_MS, own],
    );
  }

  /** Hours whose totals count other tries than there are rows, in order. */
  async hoursWithoutRows(from: number, to: number): Promise<readonly number[]> {
    if (!this.#hasRows) return [];
    const rows = await this.side.reader.query<{ hour: number }>(
      `SELECT t.start AS hour FROM (SELECT start, sum(tries) AS tries FROM hopgate.spend_totals
           WHERE span = 0 AND start >= $1 AND start < $2 GROUP BY 1) t
         LEFT JOIN (SELECT time - time % ${HOUR_MS} AS start, count(*) AS tries FROM hopgate.spend_rows
           WHERE time >= $1 AND time < $2 GROUP BY 1) r ON r.start = t.start
         WHERE t.tries <> coalesce(r.tries, 0) ORDER BY 1`,
      [from, to],
    );
    return rows.map(({ hour }) => hour);
  }

  totalsOf = (hour: number) => hoursBeyond(this.side.reader, DATABASE_NAMES, within(hour, HOUR_MS));

  sessionsOf = (day: number) =>
    sessionsBeyond(this.side.reader, DATABASE_NAMES, within(day, DAY_MS));
}
