/** Stores entries under several keys each in SQLite: bounded, shared by processes, written in batches outside requests. */

import type { Database } from 'bun:sqlite';
import { isObject, parseJson } from '../lib/json/json.ts';
import {
  fileAt,
  isDamage,
  type Migration,
  openStateFile,
  setAside,
  waitForLastWrite,
} from './versioned-store.ts';

/** The first version of a ledger's file. */
export const ENTRIES = `
CREATE TABLE entries (id INTEGER PRIMARY KEY, used INTEGER NOT NULL, bytes INTEGER NOT NULL, body BLOB NOT NULL);
CREATE INDEX entries_used ON entries (used);
CREATE TABLE keys (key TEXT PRIMARY KEY, entry INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX keys_entry ON keys (entry);
CREATE TRIGGER entry_gone AFTER DELETE ON entries BEGIN DELETE FROM keys WHERE entry = old.id; END;
`;

/** Totals that triggers maintain: counting a full table at every write would block the event loop. */
export const TOTALS = `
CREATE TABLE totals (entries INTEGER NOT NULL, bytes INTEGER NOT NULL);
INSERT INTO totals SELECT count(*), coalesce(sum(bytes), 0) FROM entries;
CREATE TRIGGER entry_counted AFTER INSERT ON entries BEGIN
  UPDATE totals SET entries = entries + 1, bytes = bytes + new.bytes;
END;
CREATE TRIGGER entry_uncounted AFTER DELETE ON entries BEGIN
  UPDATE totals SET entries = entries - 1, bytes = bytes - old.bytes;
END;
`;

export interface LedgerLimits {
  readonly entries: number;
  /** Compressed bytes. */
  readonly bytes: number;
  /** Milliseconds since an entry was last read. */
  readonly age: number;
}

/** The definition of a ledger, independent of its file. */
export interface LedgerKind {
  /** Its name in warnings: "hop ledger". */
  readonly name: string;
  /** They end with the tables of {@link ENTRIES} and {@link TOTALS}. */
  readonly migrations: readonly Migration[];
  /** Which entry a key that was put twice leads to. */
  readonly keep: 'first' | 'newest';
  readonly limits: LedgerLimits;
  /** Milliseconds between a put and its write to the file. */
  readonly flushAfter: number;
}

export interface LedgerOptions {
  /** Created with mode 0600, its directory with 0700. */
  readonly path: string;
  /** Replace those of the kind. */
  readonly limits?: Partial<LedgerLimits>;
  readonly flushAfter?: number;
  /** Called for problems with the file, once for each kind. */
  readonly warn?: (message: string) => void;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

/** No function throws: problems go to `warn`, and reads behave as with an empty file. */
export interface LedgerFile<Entry> {
  readonly empty: boolean;
  /** Also finds entries that are not written yet. */
  get(key: string): Entry | undefined;
  put(keys: readonly string[], entry: Entry): void;
  /** Changes when another connection has written. */
  version(): number;
  flush(): void;
  close(): void;
}

/** The most entries that wait while the file cannot be written. */
const WAITING = 500;
/** Milliseconds until a failed write is tried again. */
const RETRY_AFTER = 2000;
/** Milliseconds until a read marks an entry as used again, so that reads cost few writes. */
const TOUCH_AFTER = 3_600_000;

interface Waiting<Entry> {
  readonly keys: readonly string[];
  readonly entry: Entry;
}

/** Undefined, with a warning, when the file cannot be used; the caller decides what to use instead. */
export function openLedgerFile<Entry extends object>(
  kind: LedgerKind,
  options: LedgerOptions,
): LedgerFile<Entry> | undefined {
  const now = options.now ?? Date.now;
  const waiting: Waiting<Entry>[] = [];
  const byKey = new Map<string, Waiting<Entry>>();
  /** Ids of entries that were read, and when. */
  const touched = new Map<number, number>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let closed = false;
  let reported = '';
  const warnOnce = (what: string, thrown: unknown) => {
    if (reported === what) return;
    reported = what;
    const why = thrown instanceof Error ? thrown.message : String(thrown);
    options.warn?.(`${kind.name}: ${what} (${why})`);
  };
  let file: Rows;
  let there: number;
  try {
    file = openRows(kind, options);
    there = fileAt(options.path);
  } catch (thrown) {
    warnOnce(`cannot open ${options.path}; keeping the latest answers in memory only`, thrown);
    return undefined;
  }

  /** Sets a damaged file aside and continues with a new one. */
  const renew = (thrown: unknown): void => {
    if (!isDamage(thrown)) return;
    file.close();
    try {
      setAside(options.path, there, thrown);
    } finally {
      file = openRows(kind, options);
      there = fileAt(options.path);
    }
  };

  const ask = <T>(question: (file: Rows) => T): T | undefined => {
    if (closed) return undefined;
    try {
      return question(file);
    } catch (thrown) {
      warnOnce('cannot read', thrown);
      attempt(() => renew(thrown));
      return undefined;
    }
  };

  const drop = (items: readonly Waiting<Entry>[]) => {
    for (const item of items) {
      for (const key of item.keys) if (byKey.get(key) === item) byKey.delete(key);
    }
  };

  function write(): void {
    clearTimeout(timer);
    timer = undefined;
    if (closed || (waiting.length === 0 && touched.size === 0)) return;
    try {
      const rows = waiting.map(({ keys, entry }) => ({ keys, body: encode(entry) }));
      file.apply(rows, touched, now());
      waiting.length = 0;
      byKey.clear();
      touched.clear();
      reported = '';
    } catch (thrown) {
      warnOnce('cannot write', thrown);
      attempt(() => renew(thrown));
      drop(waiting.splice(0, Math.max(0, waiting.length - WAITING)));
      schedule(RETRY_AFTER);
    }
  }

  function schedule(after = options.flushAfter ?? kind.flushAfter): void {
    if (closed || timer !== undefined) return;
    timer = setTimeout(write, after);
    timer.unref();
  }

  return {
    get empty() {
      return waiting.length === 0 && ask((rows) => rows.any()) !== true;
    },
    get(key) {
      const item = byKey.get(key);
      if (item !== undefined) return item.entry;
      return ask((rows) => {
        const row = rows.get(key);
        if (row === null) return undefined;
        if (row.used < now() - TOUCH_AFTER) {
          touched.set(row.id, now());
          schedule();
        }
        return decode<Entry>(row.body);
      });
    },
    put(keys, entry) {
      if (closed || keys.length === 0) return;
      const item = { keys, entry };
      waiting.push(item);
      for (const key of keys) {
        if (kind.keep === 'newest' || !byKey.has(key)) byKey.set(key, item);
      }
      schedule();
    },
    version: () => ask((rows) => rows.version()) ?? -1,
    flush: write,
    close() {
      if (closed) return;
      attempt(() => file.waitForLastWrite());
      write();
      closed = true;
      clearTimeout(timer);
      file.close();
    },
  };
}

/** Ignores an error; the next use tries again. */
function attempt(work: () => void): void {
  try {
    work();
  } catch {
    // The problem that led here is logged already.
  }
}

const encode = (entry: object): Uint8Array =>
  Bun.zstdCompressSync(Buffer.from(JSON.stringify(entry)));

function decode<Entry>(body: Uint8Array): Entry | undefined {
  const value = parseJson(Buffer.from(Bun.zstdDecompressSync(body)).toString());
  return isObject(value) ? (value as unknown as Entry) : undefined;
}

interface Packed {
  readonly keys: readonly string[];
  readonly body: Uint8Array;
}

interface Rows {
  get(key: string): { id: number; used: number; body: Uint8Array } | null;
  any(): boolean;
  version(): number;
  apply(rows: readonly Packed[], touched: ReadonlyMap<number, number>, now: number): void;
  waitForLastWrite(): void;
  close(): void;
}

/** @throws SQLiteError, or an Error where a newer version made the file */
function openRows({ migrations, keep, limits }: LedgerKind, options: LedgerOptions): Rows {
  const db = openStateFile({ path: options.path, migrations });
  try {
    return rowsOf(db, keep, { ...limits, ...options.limits });
  } catch (thrown) {
    db.close();
    throw thrown;
  }
}

function rowsOf(db: Database, keep: LedgerKind['keep'], limits: LedgerLimits): Rows {
  const get = db.query<{ id: number; used: number; body: Uint8Array }, [string]>(
    'SELECT id, used, body FROM entries WHERE id = (SELECT entry FROM keys WHERE key = ?)',
  );
  const any = db.query<{ id: number }, []>('SELECT id FROM entries LIMIT 1');
  const dataVersion = db.query<{ data_version: number }, []>('PRAGMA data_version');
  const insert = db.query<{ id: number }, [number, number, Uint8Array]>(
    'INSERT INTO entries (used, bytes, body) VALUES (?, ?, ?) RETURNING id',
  );
  // Where the first entry counts, that of another process stays.
  const link = db.query<unknown, [string, number]>(
    `INSERT OR ${keep === 'first' ? 'IGNORE' : 'REPLACE'} INTO keys (key, entry) VALUES (?, ?)`,
  );
  const touch = db.query<unknown, [number, number]>('UPDATE entries SET used = ? WHERE id = ?');
  const totals = db.query<{ entries: number; bytes: number }, []>(
    'SELECT entries, bytes FROM totals',
  );
  const dropOld = db.query<unknown, [number]>('DELETE FROM entries WHERE used < ?');
  const dropSome = db.query<unknown, [number]>(
    'DELETE FROM entries WHERE id IN (SELECT id FROM entries ORDER BY used, id LIMIT ?)',
  );
  const apply = db.transaction(
    (rows: readonly Packed[], touched: ReadonlyMap<number, number>, now: number) => {
      for (const { keys, body } of rows) {
        const { id } = insert.get(now, body.length, body)!;
        for (const key of keys) link.run(key, id);
      }
      for (const [id, at] of touched) touch.run(at, id);
      dropOld.run(now - limits.age);
      for (;;) {
        const { entries, bytes } = totals.get()!;
        if (entries === 0 || (entries <= limits.entries && bytes <= limits.bytes)) break;
        dropSome.run(Math.max(1, entries - limits.entries));
      }
    },
  );
  return {
    get: (key) => get.get(key),
    any: () => any.get() !== null,
    version: () => dataVersion.get()!.data_version,
    apply: (...work) => apply.immediate(...work),
    waitForLastWrite: () => waitForLastWrite(db),
    close: () => db.close(),
  };
}
