/** The session ledger on disk: bounded, shared by processes, written in batches off the stream's path. */

import { isObject, parseJson } from '../../lib/json.ts';
import { openStateFile } from '../../lib/versioned-store.ts';
import { type Entry, memorySessionLedger, type SessionLedger } from './ledger.ts';

const SCHEMA = `
CREATE TABLE answers (id INTEGER PRIMARY KEY, used INTEGER NOT NULL, bytes INTEGER NOT NULL, body BLOB NOT NULL);
CREATE INDEX answers_used ON answers (used);
CREATE TABLE keys (key TEXT PRIMARY KEY, answer INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX keys_answer ON keys (answer);
CREATE TRIGGER answer_gone AFTER DELETE ON answers BEGIN DELETE FROM keys WHERE answer = old.id; END;
`;

export interface SessionLedgerLimits {
  readonly entries: number;
  /** Compressed bytes. */
  readonly bytes: number;
  /** Milliseconds since an answer was last asked for. */
  readonly age: number;
}

export interface SessionLedgerStoreOptions {
  /** Made 0600, its directory 0700. */
  readonly path: string;
  readonly limits?: Partial<SessionLedgerLimits>;
  /** Milliseconds between an answer and its way to the file. Default 50. */
  readonly flushAfter?: number;
  /** Told of trouble with the file, once per kind; the ledger then works from memory. */
  readonly warn?: (message: string) => void;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

const DEFAULTS: SessionLedgerLimits = {
  entries: 50_000,
  bytes: 256 * 1024 * 1024,
  age: 30 * 24 * 3_600_000,
};

/** What waits at most when the file cannot be written. */
const WAITING = 500;
/** An answer is marked as used again only after this long: reads should not cost writes. */
const TOUCH_AFTER = 3_600_000;
/** How long (ms) the file is taken for unchanged: no longer than others' answers need to get there. */
const SETTLED = 20;
/** Keys known to be unknown: histories are full of calls that nobody reasoned about. */
const MISSING = 50_000;

interface Waiting {
  readonly keys: readonly string[];
  readonly entry: Entry;
}

/** Opens the ledger. Never throws: without a usable file it remembers as long as the process lives. */
export function openSessionLedger(options: SessionLedgerStoreOptions): SessionLedger {
  const limits = { ...DEFAULTS, ...options.limits };
  const now = options.now ?? Date.now;
  const memory = memorySessionLedger();
  const waiting: Waiting[] = [];
  /** Rows that were asked for, and when. */
  const touched = new Map<number, number>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let closed = false;
  let told = '';
  let file: LedgerFile | undefined;
  /** Whether the file has anything; asked again until it has. */
  let filled = false;
  const missing = new Set<string>();
  let version = -1;
  let checked = 0;

  const trouble = (what: string, thrown: unknown) => {
    if (told === what) return;
    told = what;
    const why = thrown instanceof Error ? thrown.message : String(thrown);
    options.warn?.(`session ledger: ${what} (${why})`);
  };
  try {
    file = openFile(options.path);
  } catch (thrown) {
    trouble('cannot open the file; keeping it in memory', thrown);
  }

  function write(): void {
    clearTimeout(timer);
    timer = undefined;
    if (file === undefined || (waiting.length === 0 && touched.size === 0)) return;
    try {
      file.apply(waiting, touched, limits, now());
      waiting.length = 0;
      touched.clear();
      told = '';
    } catch (thrown) {
      trouble('cannot write', thrown);
      waiting.splice(0, Math.max(0, waiting.length - WAITING));
      schedule(2000);
    }
  }

  function schedule(after = options.flushAfter ?? 50): void {
    if (closed || file === undefined || timer !== undefined) return;
    timer = setTimeout(write, after);
    timer.unref();
  }

  function read(key: string): Entry | undefined {
    try {
      const row = file?.get(key);
      if (!row) return undefined;
      if (row.used < now() - TOUCH_AFTER) {
        touched.set(row.id, now());
        schedule();
      }
      return decode(row.body);
    } catch (thrown) {
      trouble('cannot read', thrown);
      return undefined;
    }
  }

  /** Another process may have written what was missing. */
  function forgetMissing(): void {
    if (now() - checked < SETTLED) return;
    checked = now();
    let current = version;
    try {
      current = file?.version() ?? version;
    } catch (thrown) {
      trouble('cannot read', thrown);
    }
    if (current !== version || missing.size > MISSING) missing.clear();
    version = current;
  }

  function find(keys: readonly string[]): Entry | undefined {
    const known = memory.find(keys);
    if (known !== undefined || file === undefined) return known;
    forgetMissing();
    for (const key of keys) {
      if (missing.has(key)) continue;
      const entry = read(key);
      if (entry === undefined) {
        missing.add(key);
        continue;
      }
      memory.put([key], entry);
      return entry;
    }
    return undefined;
  }

  return {
    get empty() {
      if (!memory.empty || filled) return false;
      try {
        filled = file?.any() === true;
      } catch {
        return true;
      }
      return !filled;
    },
    find,
    put(keys, entry) {
      if (closed) return;
      const free = keys.filter((key) => find([key]) === undefined);
      if (free.length === 0) return;
      memory.put(free, entry);
      for (const key of free) missing.delete(key);
      if (file === undefined) return;
      waiting.push({ keys: free, entry });
      schedule();
    },
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

const encode = (entry: Entry): Uint8Array =>
  Bun.zstdCompressSync(Buffer.from(JSON.stringify(entry)));

function decode(body: Uint8Array): Entry | undefined {
  const value = parseJson(Buffer.from(Bun.zstdDecompressSync(body)).toString());
  return isObject(value) ? (value as unknown as Entry) : undefined;
}

interface LedgerFile {
  get(key: string): { id: number; used: number; body: Uint8Array } | null;
  any(): boolean;
  /** Changes when another connection has written. */
  version(): number;
  apply(
    waiting: readonly Waiting[],
    touched: ReadonlyMap<number, number>,
    limits: SessionLedgerLimits,
    now: number,
  ): void;
  close(): void;
}

/** @throws SQLiteError, or an Error where a newer version made the file */
function openFile(path: string): LedgerFile {
  const db = openStateFile({ path, migrations: [SCHEMA] });
  const get = db.query<{ id: number; used: number; body: Uint8Array }, [string]>(
    'SELECT id, used, body FROM answers WHERE id = (SELECT answer FROM keys WHERE key = ?)',
  );
  const any = db.query<{ id: number }, []>('SELECT id FROM answers LIMIT 1');
  const dataVersion = db.query<{ data_version: number }, []>('PRAGMA data_version');
  const insert = db.query<{ id: number }, [number, number, Uint8Array]>(
    'INSERT INTO answers (used, bytes, body) VALUES (?, ?, ?) RETURNING id',
  );
  // What another process put there first stays.
  const link = db.query<unknown, [string, number]>(
    'INSERT OR IGNORE INTO keys (key, answer) VALUES (?, ?)',
  );
  const touch = db.query<unknown, [number, number]>('UPDATE answers SET used = ? WHERE id = ?');
  const totals = db.query<{ rows: number; bytes: number }, []>(
    'SELECT count(*) AS rows, total(bytes) AS bytes FROM answers',
  );
  const dropOld = db.query<unknown, [number]>('DELETE FROM answers WHERE used < ?');
  const dropSome = db.query<unknown, [number]>(
    'DELETE FROM answers WHERE id IN (SELECT id FROM answers ORDER BY used, id LIMIT ?)',
  );
  const apply = db.transaction(
    (
      items: readonly Waiting[],
      used: ReadonlyMap<number, number>,
      limits: SessionLedgerLimits,
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
    version: () => dataVersion.get()!.data_version,
    apply: (...work) => apply.immediate(...work),
    close: () => db.close(),
  };
}
