/** The file of limits as one side of a move: its windows, and what of them came from which database. */

import type { Database } from 'bun:sqlite';
import { randomBase36 } from '../../lib/text/ids.ts';
import { openSource } from '../../state/moving/source-store.ts';
import { openStateFile } from '../../state/versioned-store.ts';
import { LIMITS_SCHEMA } from '../limits-store.ts';
import { type Count, type Counted, type CountSide, isCount, isNotice, PAGE } from './counts.ts';

// Beside the schema of the file and its versions: only moves know them. A file that begins anew is another origin.
const TABLES = [
  `CREATE TABLE IF NOT EXISTS moved_windows (
    database TEXT NOT NULL, law TEXT NOT NULL, start INTEGER NOT NULL, used INTEGER NOT NULL, keep_until INTEGER NOT NULL,
    PRIMARY KEY (database, law, start)) WITHOUT ROWID`,
  'CREATE TABLE IF NOT EXISTS origin (id TEXT PRIMARY KEY) WITHOUT ROWID',
];
/** Milliseconds to wait for a gateway that writes. */
const BUSY_MS = 5000;
const ALL_UNITS = Number.MAX_SAFE_INTEGER;

interface WindowRow {
  readonly law: string;
  readonly start: number;
  readonly used: number;
  readonly taken: number;
  readonly keep_until: number;
}

interface NoticeRow {
  readonly law: string;
  readonly start: number;
  readonly mark: number;
  readonly keep_until: number;
}

export class FileCounts implements CountSide {
  readonly #db: Database;
  /** Moves have written here before. */
  readonly #isMarked: boolean;
  /** The name of the database; undefined: it has none yet, and nothing came from it. */
  readonly #database: string | undefined;

  private constructor(db: Database, database: string | undefined) {
    this.#db = db;
    this.#database = database;
    this.#isMarked = db.query("SELECT 1 FROM sqlite_master WHERE name = 'origin'").get() !== null;
  }

  /** Undefined: there is no file. */
  static toRead(path: string, database: string | undefined): FileCounts | undefined {
    const source = openSource(path, LIMITS_SCHEMA.length);
    return source && new FileCounts(source.db, database);
  }

  static toWrite(path: string, database: string | undefined): FileCounts {
    const db = openMarked(path);
    return new FileCounts(db, database);
  }

  /** The name of a file that is there, among all machines. */
  static originOf(path: string): string {
    const db = openMarked(path);
    try {
      return readOrigin(db)!;
    } finally {
      db.close();
    }
  }

  /** Undefined: nothing was moved from here yet. */
  get origin(): string | undefined {
    return this.#isMarked ? readOrigin(this.#db) : undefined;
  }

  count(): number {
    return this.#db
      .query<{ count: number }, [number]>(
        `SELECT (SELECT count(*) FROM windows WHERE keep_until > ?1)
           + (SELECT count(*) FROM notices WHERE keep_until > ?1) AS count`,
      )
      .get(Date.now())!.count;
  }

  *pages(): Iterable<readonly Counted[]> {
    const now = Date.now();
    const marked = this.#isMarked && this.#database !== undefined ? [this.#database] : [];
    const taken =
      marked.length === 0
        ? '0'
        : 'coalesce((SELECT m.used FROM moved_windows m WHERE m.database = ?4 AND m.law = w.law AND m.start = w.start), 0)';
    const windows = this.#db.query<WindowRow, (string | number)[]>(
      `SELECT law, start, used, ${taken} AS taken, keep_until FROM windows w
        WHERE (law, start) > (?1, ?2) AND keep_until > ?3 ORDER BY law, start LIMIT ${PAGE}`,
    );
    for (let law = '', start = Number.MIN_SAFE_INTEGER; ; ) {
      const rows = windows.all(law, start, now, ...marked);
      if (rows.length > 0) yield rows.map(countOf);
      if (rows.length < PAGE) break;
      ({ law, start } = rows.at(-1)!);
    }
    const notices = this.#db.query<NoticeRow, [string, number, number, number]>(
      `SELECT law, start, mark, keep_until FROM notices
        WHERE (law, start, mark) > (?, ?, ?) AND keep_until > ? ORDER BY law, start, mark LIMIT ${PAGE}`,
    );
    for (let law = '', start = Number.MIN_SAFE_INTEGER, mark = -1; ; ) {
      const rows = notices.all(law, start, mark, now);
      if (rows.length > 0) {
        yield rows.map((row) => ({ ...placeOf(row), kind: 'notice', mark: row.mark }));
      }
      if (rows.length < PAGE) return;
      ({ law, start, mark } = rows.at(-1)!);
    }
  }

  has(page: readonly Counted[]): readonly boolean[] {
    const notice = this.#db.query('SELECT 1 FROM notices WHERE law = ? AND start = ? AND mark = ?');
    return page.map((one) =>
      isCount(one)
        ? this.#takenOf(one) === one.own
        : notice.get(one.law, one.start, one.mark) !== null,
    );
  }

  add(page: readonly Counted[]): void {
    const count = this.#db.query(
      `INSERT INTO windows (law, start, used, keep_until) VALUES (?1, ?2, max(0, ?3), ?4)
        ON CONFLICT (law, start) DO UPDATE SET used = min(${ALL_UNITS}, max(0, used + ?3))`,
    );
    const mark = this.#db.query('INSERT OR REPLACE INTO moved_windows VALUES (?, ?, ?, ?, ?)');
    const notice = this.#db.query('INSERT OR IGNORE INTO notices VALUES (?, ?, ?, ?)');
    this.#db
      .transaction(() => {
        for (const one of page.filter(isCount)) {
          const { law, start, keepUntil, own } = one;
          const news = own - this.#takenOf(one);
          if (news === 0) continue;
          count.run(law, start, news, keepUntil);
          mark.run(this.#database!, law, start, own, keepUntil);
        }
        for (const { law, start, mark, keepUntil } of page.filter(isNotice)) {
          notice.run(law, start, mark, keepUntil);
        }
        this.#db.query('DELETE FROM moved_windows WHERE keep_until < ?').run(Date.now());
      })
      .immediate();
  }

  close(): void {
    this.#db.close();
  }

  /** What of this window came from the database. */
  #takenOf({ law, start }: Count): number {
    if (!this.#isMarked || this.#database === undefined) return 0;
    const row = this.#db
      .query<{ used: number }, [string, string, number]>(
        'SELECT used FROM moved_windows WHERE database = ? AND law = ? AND start = ?',
      )
      .get(this.#database, law, start);
    return row?.used ?? 0;
  }
}

function openMarked(path: string): Database {
  const db = openStateFile({ path, migrations: LIMITS_SCHEMA, busy: BUSY_MS });
  try {
    db.transaction(() => {
      for (const sql of TABLES) db.run(sql);
      if (readOrigin(db) === undefined) {
        db.query('INSERT INTO origin VALUES (?)').run(randomBase36(20));
      }
    }).immediate();
    return db;
  } catch (thrown) {
    db.close();
    throw thrown;
  }
}

const readOrigin = (db: Database): string | undefined =>
  db.query<{ id: string }, []>('SELECT id FROM origin').get()?.id;

const placeOf = ({ law, start, keep_until }: Omit<NoticeRow, 'mark'>) => ({
  law,
  start,
  keepUntil: Math.min(ALL_UNITS, keep_until),
});

const countOf = (row: WindowRow): Count => ({
  ...placeOf(row),
  kind: 'window',
  own: row.used - row.taken,
});
