/** A copy of the keys in a file of this machine: a replica starts with it while the database is away. */

import type { Database } from 'bun:sqlite';
import { isObject, tryParse } from '../lib/json/json.ts';
import { openStateFile } from '../state/versioned-store.ts';
import type { KeyChange } from './key-records.ts';
import type { News, Position } from './key-store.ts';

// Rows may be newer than the head, never older: what is read after it is taken over once more.
const SCHEMA = `
CREATE TABLE keys (id TEXT PRIMARY KEY, version INTEGER NOT NULL, key TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE head (
  one INTEGER PRIMARY KEY CHECK (one = 1), seq INTEGER NOT NULL, hash TEXT NOT NULL, time INTEGER NOT NULL
);
`;

/** Rows that are written before other work has its turn. */
const PART = 1000;

export interface Snapshot {
  readonly keys: readonly KeyChange[];
  readonly position: Position;
  /** When it was written, in milliseconds since 1970. */
  readonly time: number;
}

/** Several processes of a machine may have the same file. Only digests of secrets are in it. */
export class KeySnapshotStore {
  readonly #db: Database;

  /** @throws SQLiteError, or an Error with a message for people when the file cannot be used */
  constructor(path: string) {
    this.#db = openStateFile({ path, tables: { version: 1, create: SCHEMA } });
  }

  /** Undefined: none was written to its end. */
  read(): Snapshot | undefined {
    return this.#db.transaction(() => {
      const head = this.#db
        .query<Position & { readonly time: number }, []>('SELECT seq, hash, time FROM head')
        .get();
      if (head === null) return undefined;
      const rows = this.#db.query<{ readonly key: string }, []>('SELECT key FROM keys').all();
      const keys = rows.flatMap(({ key }) => {
        const value = tryParse(key);
        return isObject(value) ? [value as unknown as KeyChange] : [];
      });
      return { keys, position: { seq: head.seq, hash: head.hash }, time: head.time };
    })();
  }

  /** Takes over what has changed, in parts. @throws SQLiteError */
  async write({ keys, position, whole }: News): Promise<void> {
    const put = this.#db.query(
      `INSERT INTO keys VALUES (?1, ?2, ?3) ON CONFLICT (id) DO UPDATE
         SET version = excluded.version, key = excluded.key WHERE excluded.version >= keys.version`,
    );
    if (whole)
      this.#db.transaction(() => this.#db.run('DELETE FROM head; DELETE FROM keys')).immediate();
    for (let i = 0; i < keys.length; i += PART) {
      if (i > 0) await Bun.sleep(0);
      const part = keys.slice(i, i + PART);
      this.#db
        .transaction(() => {
          for (const key of part) put.run(key.record.id, key.record.version, JSON.stringify(key));
        })
        .immediate();
    }
    this.#db
      .query('INSERT OR REPLACE INTO head VALUES (1, ?, ?, ?)')
      .run(position.seq, position.hash, Date.now());
  }

  close(): void {
    this.#db.close();
  }
}
