/** The file that keeps what cannot be written to the database for longer: sealed rows, found by owner and id. */

import type { Database } from 'bun:sqlite';
import { openStateFile } from '../../../state/versioned-store.ts';
import type { ResponseLimits } from '../stored-response.ts';
import { rowOf, rowText, type SharedRow } from './shared-row.ts';

const MIGRATIONS = [
  `
CREATE TABLE rows (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, owner TEXT NOT NULL, id TEXT NOT NULL, space TEXT, began REAL NOT NULL,
  row TEXT NOT NULL, UNIQUE (owner, id)
);
CREATE INDEX rows_space ON rows (space) WHERE space IS NOT NULL;
CREATE TABLE items (owner TEXT NOT NULL, item TEXT NOT NULL, id TEXT NOT NULL, PRIMARY KEY (owner, item)) WITHOUT ROWID;
CREATE INDEX items_id ON items (owner, id);
CREATE TRIGGER row_gone AFTER DELETE ON rows BEGIN
  DELETE FROM items WHERE owner = old.owner AND id = old.id;
END;
`,
];

export interface SpooledRow {
  readonly seq: number;
  /** Undefined: it is damaged. */
  readonly row: SharedRow | undefined;
}

const BUSY_MS = 200;

/** Methods throw SQLiteError where the file cannot be used. */
export class RowSpool {
  readonly #db: Database;
  #rows: number;
  #bytes: number;

  /** @throws SQLiteError, or an Error where a newer version made the file */
  constructor(path: string) {
    const pragmas = ['auto_vacuum = INCREMENTAL', 'journal_size_limit = 16777216'];
    this.#db = openStateFile({ path, migrations: MIGRATIONS, busy: BUSY_MS, pragmas });
    const { rows, bytes } = this.#sizes();
    this.#rows = rows;
    this.#bytes = bytes;
  }

  get size(): number {
    return this.#rows;
  }

  /** Each replaces the row of the same id. @returns how many of the oldest were dropped for the limits */
  add(rows: readonly SharedRow[], limits: Pick<ResponseLimits, 'rows' | 'bytes'>): number {
    this.#inOne(() => {
      for (const row of rows) {
        const { owner, id, space, began, itemIds } = row;
        this.#db.query('DELETE FROM rows WHERE owner = ? AND id = ?').run(owner, id);
        this.#db
          .query('INSERT INTO rows (owner, id, space, began, row) VALUES (?, ?, ?, ?, ?)')
          .run(owner, id, space, began, rowText(row));
        for (const item of itemIds) {
          this.#db.query('INSERT OR REPLACE INTO items VALUES (?, ?, ?)').run(owner, item, id);
        }
      }
    });
    let dropped = 0;
    while (this.#rows > 1 && (this.#rows > limits.rows || this.#bytes > limits.bytes)) {
      this.#inOne(() =>
        this.#db
          .query('DELETE FROM rows WHERE seq IN (SELECT seq FROM rows ORDER BY seq LIMIT 16)')
          .run(),
      );
      dropped += 16;
    }
    return dropped;
  }

  get(owner: string, id: string): SharedRow | undefined {
    return this.#one('SELECT row FROM rows WHERE owner = ? AND id = ?', owner, id);
  }

  withItem(owner: string, item: string): SharedRow | undefined {
    return this.#one(
      'SELECT row FROM items JOIN rows USING (owner, id) WHERE owner = ? AND item = ?',
      owner,
      item,
    );
  }

  /** The oldest ones. */
  first(count: number, mostBytes: number): readonly SpooledRow[] {
    const found: SpooledRow[] = [];
    let bytes = 0;
    const rows = this.#db
      .query<{ seq: number; row: string }, [number]>(
        'SELECT seq, row FROM rows ORDER BY seq LIMIT ?',
      )
      .iterate(count);
    for (const { seq, row } of rows) {
      if (found.length > 0 && bytes + row.length > mostBytes) break;
      bytes += row.length;
      found.push({ seq, row: rowOf(row) });
    }
    return found;
  }

  /** Those that are written; a row that was replaced meanwhile stays. */
  done(rows: readonly SpooledRow[]): void {
    this.#inOne(() => {
      for (const { seq } of rows) this.#db.query('DELETE FROM rows WHERE seq = ?').run(seq);
    });
    if (this.#rows === 0) this.#db.run('PRAGMA incremental_vacuum');
  }

  remove(owner: string, id: string): void {
    this.#inOne(() => this.#db.query('DELETE FROM rows WHERE owner = ? AND id = ?').run(owner, id));
  }

  /** What was begun until then with this space; its pages are overwritten. */
  erase(space: string, at: number): void {
    this.#db.run('PRAGMA secure_delete = ON');
    this.#inOne(() =>
      this.#db.query('DELETE FROM rows WHERE space = ? AND began <= ?').run(space, at),
    );
    this.#db.run('PRAGMA secure_delete = OFF');
    this.#db.run('PRAGMA wal_checkpoint(TRUNCATE)');
  }

  close(): void {
    this.#db.close();
  }

  #one(sql: string, owner: string, key: string): SharedRow | undefined {
    const found = this.#db.query<{ row: string }, [string, string]>(sql).get(owner, key);
    return found === null ? undefined : rowOf(found.row);
  }

  #inOne(work: () => unknown): void {
    this.#db.transaction(work).immediate();
    const { rows, bytes } = this.#sizes();
    this.#rows = rows;
    this.#bytes = bytes;
  }

  #sizes(): { rows: number; bytes: number } {
    return this.#db
      .query<{ rows: number; bytes: number }, []>(
        'SELECT count(*) AS rows, total(length(row)) AS bytes FROM rows',
      )
      .get()!;
  }
}
