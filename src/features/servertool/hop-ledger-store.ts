/** The ledger on disk: bounded, shared by processes, written in batches off the request's path. */

import type { Statement } from 'bun:sqlite';
import { isObject, parseJson } from '../../lib/json.ts';
import { openStateFile } from '../../lib/versioned-store.ts';
import type { HopEntry, HopLedger } from './ledger.ts';

const SCHEMA = `
CREATE TABLE entries (id INTEGER PRIMARY KEY, used INTEGER NOT NULL, bytes INTEGER NOT NULL, body BLOB NOT NULL);
CREATE INDEX entries_used ON entries (used);
CREATE TABLE keys (key TEXT PRIMARY KEY, entry INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX keys_entry ON keys (entry);
CREATE TRIGGER entry_gone AFTER DELETE ON entries BEGIN DELETE FROM keys WHERE entry = old.id; END;
`;

export interface LedgerLimits {
  readonly entries: number;
  /** Compressed bytes. */
  readonly bytes: number;
  /** Milliseconds since an entry was last asked for. */
  readonly age: number;
}

export interface LedgerOptions {
  /** Made 0600, its directory 0700. */
  readonly path: string;
  readonly limits?: Partial<LedgerLimits>;
  /**
   * Milliseconds between a write and its way to the file. Default 20: another process may get the
   * client's next request, and a tool of the client's can be that quick.
   */
  readonly flushAfter?: number;
  /** Told of trouble with the file, once per kind; the ledger then works from memory. */
  readonly warn?: (message: string) => void;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

const DEFAULTS: LedgerLimits = {
  entries: 20_000,
  bytes: 256 * 1024 * 1024,
  age: 30 * 24 * 3_600_000,
};

/** What waits in memory at most when the file cannot be written. */
const WAITING = 500;
/** An entry is marked as used again only after this long: reads should not cost writes. */
const TOUCH_AFTER = 3_600_000;

interface Waiting {
  readonly keys: readonly string[];
  readonly entry: HopEntry;
}

/** Opens the ledger. Never throws: without a usable file it keeps the latest entries in memory. */
export function openHopLedger(options: LedgerOptions): HopLedger {
  const limits = { ...DEFAULTS, ...options.limits };
  const now = options.now ?? Date.now;
  const waiting: Waiting[] = [];
  const byKey = new Map<string, Waiting>();
  /** Ids of entries that were asked for, and when. */
  const touched = new Map<number, number>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let closed = false;
  let told = '';
  const trouble = (what: string, thrown: unknown) => {
    if (told === what) return;
    told = what;
    const why = thrown instanceof Error ? thrown.message : String(thrown);
    options.warn?.(`hop ledger: ${what} (${why})`);
  };
  let file: LedgerFile | undefined;
  try {
    file = openFile(options.path);
  } catch (thrown) {
    trouble('cannot open the file; keeping the latest answers in memory only', thrown);
  }

  function write(): void {
    clearTimeout(timer);
    timer = undefined;
    if (file === undefined) {
      trim();
      return;
    }
    if (waiting.length === 0 && touched.size === 0) return;
    try {
      file.apply(waiting, touched, limits, now());
      waiting.length = 0;
      byKey.clear();
      touched.clear();
      told = '';
    } catch (thrown) {
      trouble('cannot write', thrown);
      trim();
      schedule(2000);
    }
  }

  function trim(): void {
    for (const { keys } of waiting.splice(0, Math.max(0, waiting.length - WAITING))) {
      for (const key of keys) byKey.delete(key);
    }
  }

  function schedule(after: number): void {
    if (closed || timer !== undefined) return;
    timer = setTimeout(write, after);
    timer.unref();
  }

  function read(key: string): HopEntry | undefined {
    if (file === undefined) return undefined;
    try {
      const row = file.get(key);
      if (row === null) return undefined;
      if (row.used < now() - TOUCH_AFTER) {
        touched.set(row.id, now());
        schedule(options.flushAfter ?? 20);
      }
      return decode(row.body);
    } catch (thrown) {
      trouble('cannot read', thrown);
      return undefined;
    }
  }

  return {
    get empty() {
      if (waiting.length > 0) return false;
      try {
        return file?.any() !== true;
      } catch {
        return true;
      }
    },
    find(keys) {
      for (const key of keys) {
        const entry = byKey.get(key)?.entry ?? read(key);
        if (entry !== undefined) return entry;
      }
      return undefined;
    },
    put(keys, entry) {
      if (closed || keys.length === 0) return;
      const item = { keys, entry };
      waiting.push(item);
      for (const key of keys) byKey.set(key, item);
      schedule(options.flushAfter ?? 20);
    },
    flush: write,
    close() {
      if (closed) return;
      write();
      closed = true;
      clearTimeout(timer);
      file?.close();
      file = undefined;
    },
  };
}

const encode = (entry: HopEntry): Uint8Array =>
  Bun.zstdCompressSync(Buffer.from(JSON.stringify(entry)));

function decode(body: Uint8Array): HopEntry | undefined {
  const value = parseJson(Buffer.from(Bun.zstdDecompressSync(body)).toString());
  return isObject(value) ? (value as unknown as HopEntry) : undefined;
}

interface LedgerFile {
  get(key: string): { id: number; used: number; body: Uint8Array } | null;
  any(): boolean;
  apply(
    waiting: readonly Waiting[],
    touched: ReadonlyMap<number, number>,
    limits: LedgerLimits,
    now: number,
  ): void;
  close(): void;
}

/** @throws SQLiteError, or an Error where a newer version made the file */
function openFile(path: string): LedgerFile {
  const db = openStateFile({ path, migrations: [SCHEMA] });
  const of = <Row, Args extends (string | number | Uint8Array)[]>(sql: string) =>
    db.query(sql) as unknown as Statement<Row, Args>;
  const get = of<{ id: number; used: number; body: Uint8Array }, [string]>(
    'SELECT id, used, body FROM entries WHERE id = (SELECT entry FROM keys WHERE key = ?)',
  );
  const any = of<{ id: number }, []>('SELECT id FROM entries LIMIT 1');
  const insert = of<{ id: number }, [number, number, Uint8Array]>(
    'INSERT INTO entries (used, bytes, body) VALUES (?, ?, ?) RETURNING id',
  );
  const link = of<unknown, [string, number]>(
    'INSERT OR REPLACE INTO keys (key, entry) VALUES (?, ?)',
  );
  const touch = of<unknown, [number, number]>('UPDATE entries SET used = ? WHERE id = ?');
  const totals = of<{ rows: number; bytes: number }, []>(
    'SELECT count(*) AS rows, total(bytes) AS bytes FROM entries',
  );
  const dropOld = of<unknown, [number]>('DELETE FROM entries WHERE used < ?');
  const dropSome = of<unknown, [number]>(
    'DELETE FROM entries WHERE id IN (SELECT id FROM entries ORDER BY used, id LIMIT ?)',
  );
  const apply = db.transaction(
    (
      items: readonly Waiting[],
      used: ReadonlyMap<number, number>,
      limits: LedgerLimits,
      now: number,
    ) => {
      for (const { keys, entry } of items) {
        const body = encode(entry);
        const { id } = insert.get(now, body.length, body)!;
        for (const key of keys) link.run(key, id);
      }
      for (const [id, at] of used) touch.run(at, id);
      dropOld.run(now - limits.age);
      for (;;) {
        const { rows, bytes } = totals.get()!;
        if (rows <= limits.entries && bytes <= limits.bytes) break;
        dropSome.run(Math.max(1, rows - limits.entries));
      }
    },
  );
  return {
    get: (key) => get.get(key),
    any: () => any.get() !== null,
    apply: (...work) => apply.immediate(...work),
    close: () => db.close(),
  };
}
