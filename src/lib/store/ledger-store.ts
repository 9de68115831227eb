/** Entries under several keys each, on disk: bounded, shared by processes, written in batches off the request's path. */

import type { Database } from 'bun:sqlite';
import { isObject, parseJson } from '../json/json.ts';
import { fileAt, isDamage, type Migration, openStateFile, setAside } from './versioned-store.ts';

/** The first version of a ledger's file. */
export const ENTRIES = `
CREATE TABLE entries (id INTEGER PRIMARY KEY, used INTEGER NOT NULL, bytes INTEGER NOT NULL, body BLOB NOT NULL);
CREATE INDEX entries_used ON entries (used);
CREATE TABLE keys (key TEXT PRIMARY KEY, entry INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX keys_entry ON keys (entry);
CREATE TRIGGER entry_gone AFTER DELETE ON entries BEGIN DELETE FROM keys WHERE entry = old.id; END;
`;

/** Counts that triggers keep: asking a full table for its size at every write took 80 ms of the event loop. */
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
  /** Milliseconds since an entry was last asked for. */
  readonly age: number;
}

/** What one ledger is, wherever its file lies. */
export interface LedgerKind {
  /** How warnings call it: "hop ledger". */
  readonly name: string;
  /** They end with the tables of {@link ENTRIES} and {@link TOTALS}. */
  readonly migrations: readonly Migration[];
  /** Whose entry a key leads to, where it was put twice. */
  readonly keep: 'first' | 'newest';
  readonly limits: LedgerLimits;
  /** Milliseconds between a put and its way to the file. */
  readonly flushAfter: number;
}

export interface LedgerOptions {
  /** Made 0600, its directory 0700. */
  readonly path: string;
  /** In place of those of the kind. */
  readonly limits?: Partial<LedgerLimits>;
  readonly flushAfter?: number;
  /** Told of trouble with the file, once per kind of trouble. */
  readonly warn?: (message: string) => void;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

/** None of its functions throws: trouble is told to `warn`, and reads like an empty file. */
export interface LedgerFile<Entry> {
  readonly empty: boolean;
  /** What waits to be written is found too. */
  get(key: string): Entry | undefined;
  put(keys: readonly string[], entry: Entry): void;
  /** Changes when another connection has written. */
  version(): number;
  flush(): void;
  close(): void;
}

/** What waits at most when the file cannot be written. */
const WAITING = 500;
/** After this long (ms) a write that failed is tried again. */
const RETRY_AFTER = 2000;
/** An entry is marked as used again only after this long: reads should not cost writes. */
const TOUCH_AFTER = 3_600_000;

interface Waiting<Entry> {
  readonly keys: readonly string[];
  readonly entry: Entry;
}

/** Undefined, with a warning, where the file cannot be used: what to live on then is the caller's. */
export function openLedgerFile<Entry extends object>(
  kind: LedgerKind,
  options: LedgerOptions,
): LedgerFile<Entry> | undefined {
  const now = options.now ?? Date.now;
  const waiting: Waiting<Entry>[] = [];
  const byKey = new Map<string, Waiting<Entry>>();
  /** Ids of entries that were asked for, and when. */
  const touched = new Map<number, number>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let closed = false;
  let told = '';
  const trouble = (what: string, thrown: unknown) => {
    if (told === what) return;
    told = what;
    const why = thrown instanceof Error ? thrown.message : String(thrown);
    options.warn?.(`${kind.name}: ${what} (${why})`);
  };
  let file: Rows;
  let there: number;
  try {
    file = openRows(kind, options);
    there = fileAt(options.path);
  } catch (thrown) {
    trouble(`cannot open ${options.path}; keeping the latest answers in memory only`, thrown);
    return undefined;
  }

  /** A damaged file is set aside, and a new one takes what comes from now on. */
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
      trouble('cannot read', thrown);
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
      told = '';
    } catch (thrown) {
      trouble('cannot write', thrown);
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
      write();
      closed = true;
      clearTimeout(timer);
      file.close();
    },
  };
}

/** What does not work now is tried again with the next need. */
function attempt(work: () => void): void {
  try {
    work();
  } catch {
    // Told already: the trouble that led here.
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
  // Where the first counts, what another process put there stays.
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
    close: () => db.close(),
  };
}
