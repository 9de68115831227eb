/** The bounded store of image descriptions by image hash, on disk: each image is described once. */

import type { Database } from 'bun:sqlite';
import { preciseNow } from '../../lib/loop/precise-time.ts';
import {
  ERASURES_KEPT_MS,
  type HashedName,
  nameHash,
  RecentErasures,
} from '../../state/erasures.ts';
import { openStateFile } from '../../state/versioned-store.ts';

export interface DescriptionStore {
  get(key: string): string | undefined;
  /**
   * Stores a description and returns the stored text. Where another process was faster, that is its
   * text: a history must not change.
   */
  put(key: string, text: string): string;
  /** Resolves when `get` gives the text that counts for all processes; left out: it does at once. */
  settled?(key: string): Promise<void>;
  /** The descriptions of one memory space, which are erased with it. */
  of(space: string): Pick<DescriptionStore, 'get' | 'put' | 'settled'>;
  /** Removes the descriptions of a space; those in progress are not stored either. */
  eraseSpace(space: string | HashedName): void;
  close(): void;
  /** True with a file, false in memory only. */
  readonly persistent: boolean;
}

export interface DescriptionStoreOptions {
  /** The database file; left out: memory only. */
  readonly path?: string;
  /** Descriptions in the file; the least recently used are removed first. */
  readonly rows?: number;
  /** Descriptions in memory. */
  readonly memoryRows?: number;
  /** Called once per problem. */
  readonly warn?: (message: string, cause?: unknown) => void;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

const ROWS = 20_000;
const MEMORY_ROWS = 500;
/** Milliseconds after which another use is written to the file. */
const TOUCH_AFTER = 24 * 3_600_000;
const SCHEMA = `
CREATE TABLE descriptions (key TEXT PRIMARY KEY, text TEXT NOT NULL, used INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX descriptions_used ON descriptions (used);
`;
// Recent erasures, so that descriptions in progress in another process are not stored.
const ERASURES = 'CREATE TABLE erasures (space TEXT PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID';

/** Images of spaces that are being described at most. */
const MAX_REQUESTED = 1000;

/** Opens the store. Never throws: without a usable file it keeps fewer descriptions, in memory. */
export function openDescriptionStore(options: DescriptionStoreOptions = {}): DescriptionStore {
  const now = options.now ?? Date.now;
  const memory = new Map<string, string>();
  let db: Database | undefined;

  const closeFile = (what: string, cause: unknown) => {
    const message = cause instanceof Error ? cause.message : String(cause);
    options.warn?.(`image descriptions: ${what} (${message}); keeping them in memory only`, cause);
    try {
      db?.close();
    } catch {
      // The file is not used any more.
    }
    db = undefined;
  };
  /** Uses the file; undefined without one or where it fails. A busy file is tried again next time. */
  const withFile = <T>(what: string, question: (db: Database) => T): T | undefined => {
    if (db === undefined) return undefined;
    try {
      return question(db);
    } catch (thrown) {
      if (!/BUSY|LOCKED/.test(String((thrown as { code?: unknown }).code))) closeFile(what, thrown);
      return undefined;
    }
  };
  const remember = (key: string, text: string): string => {
    memory.delete(key);
    memory.set(key, text);
    if (memory.size > (options.memoryRows ?? MEMORY_ROWS)) {
      memory.delete(memory.keys().next().value!);
    }
    return text;
  };

  if (options.path !== undefined) {
    try {
      db = openFile(options.path);
    } catch (thrown) {
      closeFile(`cannot open ${options.path}`, thrown);
    }
  }

  const erasures = new RecentErasures();
  /** Times of the first request for images of spaces that have no description yet. */
  const requestedAt = new Map<string, number>();
  const limit = options.rows ?? ROWS;

  /** With a file, nothing is cached in memory: another process may erase the space. */
  function ofSpace(space: string): Pick<DescriptionStore, 'get' | 'put'> {
    const mark = nameHash(space);
    const keyOf = (key: string) => `${mark}:${key}`;
    return {
      get(key) {
        const own = keyOf(key);
        const text =
          memory.get(own) ?? withFile('cannot read', (file) => read(file, own, now())) ?? undefined;
        if (text === undefined && !requestedAt.has(own)) {
          if (requestedAt.size >= MAX_REQUESTED)
            requestedAt.delete(requestedAt.keys().next().value!);
          requestedAt.set(own, preciseNow());
        }
        return text;
      },
      put(key, text) {
        const own = keyOf(key);
        const began = requestedAt.get(own) ?? preciseNow();
        requestedAt.delete(own);
        if (erasures.hasSince(mark, began)) return text;
        if (db === undefined) return remember(own, memory.get(own) ?? text);
        const stored = withFile('cannot write', (file) =>
          erasedAt(file, mark) >= began ? text : write(file, own, text, now(), limit),
        );
        return stored ?? text;
      },
    };
  }

  return {
    of: ofSpace,
    eraseSpace(space) {
      const mark = nameHash(space);
      const at = preciseNow();
      erasures.add(mark, at);
      for (const key of memory.keys()) if (key.startsWith(`${mark}:`)) memory.delete(key);
      withFile('cannot erase', (file) => erase(file, mark, at));
    },
    get(key) {
      const known = memory.get(key);
      if (known !== undefined) return remember(key, known);
      const text = withFile('cannot read', (file) => read(file, key, now()));
      return text === undefined ? undefined : remember(key, text);
    },
    put(key, text) {
      const stored = withFile('cannot write', (file) => write(file, key, text, now(), limit));
      return remember(key, stored ?? memory.get(key) ?? text);
    },
    close() {
      try {
        db?.close();
      } catch {
        // Everything committed is safe.
      }
      db = undefined;
    },
    get persistent() {
      return db !== undefined;
    },
  };
}

function read(db: Database, key: string, now: number): string | undefined {
  const row = db
    .query<{ text: string; used: number }, [string]>(
      'SELECT text, used FROM descriptions WHERE key = ?',
    )
    .get(key);
  if (row === null) return undefined;
  if (row.used < now - TOUCH_AFTER) {
    db.query('UPDATE descriptions SET used = ? WHERE key = ?').run(now, key);
  }
  return row.text;
}

const erasedAt = (db: Database, mark: string): number =>
  db.query<{ at: number }, [string]>('SELECT at FROM erasures WHERE space = ?').get(mark)?.at ?? 0;

/** Removes the space's rows from the file and its log, and overwrites their pages. */
function erase(db: Database, mark: string, at: number): void {
  db.run('PRAGMA secure_delete = ON');
  db.transaction(() => {
    db.query('DELETE FROM erasures WHERE at < ?').run(at - ERASURES_KEPT_MS);
    db.query('INSERT OR REPLACE INTO erasures VALUES (?, ?)').run(mark, at);
    // Keys of a space begin with its hash and a colon; the semicolon is the next character.
    db.query('DELETE FROM descriptions WHERE key > ? AND key < ?').run(`${mark}:`, `${mark};`);
  }).immediate();
  db.run('PRAGMA secure_delete = OFF');
  db.run('PRAGMA wal_checkpoint(TRUNCATE)');
}

/** Inserts a description and returns the text that the file then contains. */
function write(db: Database, key: string, text: string, now: number, rows: number): string {
  return db
    .transaction(() => {
      db.query('INSERT OR IGNORE INTO descriptions (key, text, used) VALUES (?, ?, ?)').run(
        key,
        text,
        now,
      );
      db.query(
        `DELETE FROM descriptions WHERE key IN (
           SELECT key FROM descriptions WHERE key <> ? ORDER BY used
           LIMIT max(0, (SELECT count(*) FROM descriptions) - ?))`,
      ).run(key, rows);
      return read(db, key, now) ?? text;
    })
    .immediate();
}

const openFile = (path: string): Database =>
  openStateFile({
    path,
    migrations: [SCHEMA, ERASURES],
    pragmas: ['journal_size_limit = 4194304'],
  });
