/** What this folder of samples knows of the shared list: how far it has followed, what is uploaded, which bodies lie here. */

import type { Database } from 'bun:sqlite';
import { join } from 'node:path';
import type { EntryName } from '../../conversation/models/endpoint-names.ts';
import { randomBase36 } from '../../lib/text/ids.ts';
import { openPrivate, openStateFile } from '../../state/versioned-store.ts';

/** `held`: bytes of its bodies on this disk; `used`: when they were written or read last, in ms since 1970. */
const MIGRATIONS = [
  `CREATE TABLE state (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE known (
  id TEXT PRIMARY KEY, entry TEXT NOT NULL, held INTEGER NOT NULL DEFAULT 0, used REAL NOT NULL DEFAULT 0,
  seen INTEGER NOT NULL DEFAULT 1
) WITHOUT ROWID;
CREATE INDEX known_held ON known (used) WHERE held > 0;`,
];

/** Of the newest schema of `shared.db`. */
export const SHARING_VERSION = MIGRATIONS.length;

export interface KnownSample {
  readonly id: string;
  readonly entry: EntryName;
}

/** Samples of one answer. */
const PAGE = 100;

export class SharingStore {
  readonly #db: Database;
  readonly #lockPath: string;
  #lock: Database | undefined;
  /** The name of this folder in the shared list, made once. */
  readonly replica: string;

  /** @throws SQLiteError */
  constructor(root: string) {
    this.#db = openStateFile({ path: join(root, 'shared.db'), migrations: MIGRATIONS, busy: 500 });
    this.#lockPath = join(root, 'shared.lock');
    this.#db
      .query("INSERT OR IGNORE INTO state VALUES ('replica', ?)")
      .run(randomBase36(12).toLowerCase());
    this.replica = this.#read('replica')!;
  }

  /**
   * Whether this process is the one that works for the folder: workers, and the two processes of a restart, have the
   * same. The system frees the lock when a process dies.
   */
  leads(): boolean {
    if (this.#lock !== undefined) return true;
    const lock = openPrivate(this.#lockPath, 0);
    try {
      lock.run('BEGIN EXCLUSIVE');
      this.#lock = lock;
      return true;
    } catch {
      lock.close();
      return false;
    }
  }

  /** How far the shared list was followed. */
  get position(): number {
    return Number(this.#read('position') ?? 0);
  }

  set position(seq: number) {
    this.#db.query("INSERT OR REPLACE INTO state VALUES ('position', ?)").run(`${seq}`);
  }

  /** The shared list has the sample. */
  knows(id: string): boolean {
    return this.#db.query('SELECT 1 FROM known WHERE id = ?').get(id) !== null;
  }

  add({ id, entry }: KnownSample): void {
    this.#db
      .query('INSERT INTO known (id, entry) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET seen = 1')
      .run(id, entry);
  }

  /** Its bodies lie here and were just used. */
  hold({ id, entry }: KnownSample, bytes: number): void {
    this.#db
      .query(
        `INSERT INTO known (id, entry, held, used) VALUES (?1, ?2, ?3, ?4)
           ON CONFLICT (id) DO UPDATE SET held = ?3, used = ?4`,
      )
      .run(id, entry, bytes, Date.now());
  }

  remove(id: string): void {
    this.#db.query('DELETE FROM known WHERE id = ?').run(id);
  }

  /** The list is followed from its beginning once more: what is not added again is gone. */
  startOver(): void {
    this.#db.run('UPDATE known SET seen = 0');
    this.position = 0;
  }

  /** A page of what was not added again. */
  unseen(): readonly KnownSample[] {
    return this.#db
      .query<KnownSample, [number]>('SELECT id, entry FROM known WHERE seen = 0 LIMIT ?')
      .all(PAGE);
  }

  /** Samples whose bodies lie here beyond this many bytes, the least recently used ones first; a page. */
  beyond(bytes: number): readonly KnownSample[] {
    const { held } = this.#db
      .query<{ held: number }, []>(
        'SELECT coalesce(sum(held), 0) AS held FROM known WHERE held > 0',
      )
      .get()!;
    let over = held - bytes;
    if (over <= 0) return [];
    const oldest = this.#db
      .query<KnownSample & { held: number }, [number]>(
        'SELECT id, entry, held FROM known WHERE held > 0 ORDER BY used LIMIT ?',
      )
      .all(PAGE);
    return oldest.filter((one) => {
      const wanted = over > 0;
      over -= one.held;
      return wanted;
    });
  }

  close(): void {
    this.#lock?.close();
    this.#lock = undefined;
    this.#db.close();
  }

  #read(name: string): string | undefined {
    return this.#db
      .query<{ value: string }, [string]>('SELECT value FROM state WHERE name = ?')
      .get(name)?.value;
  }
}
