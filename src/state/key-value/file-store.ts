/** The SQLite file of a room: bounded, used by several processes, written in batches outside requests. */

import type { Database } from 'bun:sqlite';
import { preciseNow } from '../../lib/loop/precise-time.ts';
import { messageOf } from '../../lib/text/thrown.ts';
import { ERASURES_KEPT_MS } from '../erasures.ts';
import {
  fileAt,
  isDamage,
  openStateFile,
  REMOVED,
  setAside,
  waitForLastWrite,
} from '../versioned-store.ts';
import { compressed, decompressed } from './at-hand.ts';
import type { RoomFileKind, RoomKind } from './room.ts';

const TABLES = `
CREATE TABLE entries (id INTEGER PRIMARY KEY, used INTEGER NOT NULL, bytes INTEGER NOT NULL, body BLOB NOT NULL);
CREATE INDEX entries_used ON entries (used);
CREATE TABLE keys (key TEXT PRIMARY KEY, entry INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX keys_entry ON keys (entry);
CREATE TABLE totals (entries INTEGER NOT NULL, bytes INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS erasures (space TEXT PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID;
`;
// To count a full table at every write would block the event loop.
const COUNT = 'INSERT INTO totals SELECT count(*), coalesce(sum(bytes), 0) FROM entries;';

/** For files in which triggers keep keys and totals: now each write does. */
export const WITHOUT_TRIGGERS = `
DROP TRIGGER IF EXISTS entry_gone;
DROP TRIGGER IF EXISTS answer_gone;
DROP TRIGGER entry_counted;
DROP TRIGGER entry_uncounted;
CREATE TABLE erasures (space TEXT PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID;
`;

/** Moves rows of a table of its own, and drops it. @param select gives `key`, `value` and `used` */
export function intoEntries(select: string, table: string): (db: Database) => void {
  return (db) => {
    db.run(TABLES);
    const insert = db.query<{ id: number }, [number, number, Uint8Array]>(INSERT);
    const link = db.query<unknown, [string, number]>('INSERT INTO keys (key, entry) VALUES (?, ?)');
    const rows = db.query<{ key: string; value: string | number; used: number }, []>(select);
    for (const { key, value, used } of rows.iterate()) {
      const body = compressed(value);
      link.run(key, insert.get(used, body.length, body)!.id);
    }
    db.run(COUNT);
    db.run(`DROP TABLE ${table}`);
  };
}

const INSERT = 'INSERT INTO entries (used, bytes, body) VALUES (?, ?, ?) RETURNING id';

/** Entries that wait at most while the file cannot be written. */
const MAX_PENDING = 500;
/** Milliseconds until a failed write is tried again. */
const RETRY_AFTER = 2000;
/** Milliseconds until a read marks an entry as used again, so that reads cost few writes. */
const TOUCH_AFTER = 3_600_000;

/** A group, and its epoch as the writer knows it. */
export interface InGroup {
  readonly group: string;
  readonly epoch: string;
}

interface Pending<Entry> {
  readonly keys: readonly string[];
  readonly entry: Entry;
  readonly of: InGroup | undefined;
}

export interface RoomFileOptions {
  /** Created with mode 0600, its directory with 0700. */
  readonly path: string;
  /** Called for problems with the file, once for each kind. */
  readonly warn?: ((message: string) => void) | undefined;
  /** Another process has put something under this key, and that stays. */
  readonly onRefused: (key: string) => void;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/** The keys of a group begin with its name and a colon. */
export const keyInGroup = (group: string | undefined, key: string): string =>
  group === undefined ? key : `${group}:${key}`;

/** Once it is open no method throws: problems go to `warn`, and reads behave as with an empty file. */
export class RoomFile<Entry> {
  #rows: Rows;
  /** As of {@link fileAt}. */
  #inode: number;
  readonly #pending: Pending<Entry>[] = [];
  readonly #byKey = new Map<string, Pending<Entry>>();
  /** Ids of entries that were read, and when. */
  readonly #touched = new Map<number, number>();
  /** Erasures that the file does not have yet. */
  readonly #erasing = new Map<string, number>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #closed = false;
  #reported = '';

  /** @throws SQLiteError, or an Error where a newer version made the file */
  constructor(
    private readonly kind: RoomKind<Entry>,
    private readonly file: RoomFileKind,
    private readonly options: RoomFileOptions,
  ) {
    this.#rows = this.#open();
    this.#inode = fileAt(options.path);
  }

  get empty(): boolean {
    return this.#pending.length === 0 && this.#ask((rows) => rows.any()) !== true;
  }

  /** Changes when another connection has written. */
  get version(): number {
    return this.#ask((rows) => rows.version()) ?? -1;
  }

  /** Also finds entries that are not written yet. @param group of the key */
  get(key: string, group: string | undefined): Entry | undefined {
    const item = this.#byKey.get(key);
    if (item !== undefined) return this.#isVoid(item) ? undefined : item.entry;
    if (group !== undefined && this.#erasing.has(group)) return undefined;
    return this.#ask((rows) => {
      const row = rows.get(key);
      if (row === null) return undefined;
      const now = this.options.now();
      if (row.used < now - TOUCH_AFTER) {
        this.#touched.set(row.id, now);
        this.#schedule();
      }
      return decompressed(row.body).value as Entry;
    });
  }

  put(keys: readonly string[], entry: Entry, of: InGroup | undefined): void {
    if (this.#closed || keys.length === 0) return;
    this.#add({ keys, entry, of });
    this.#schedule();
  }

  epochOf(group: string): string {
    return String(this.#erasing.get(group) ?? this.#ask((rows) => rows.erasedAt(group)) ?? 0);
  }

  /** At once where the file can be written, else as soon as it can. */
  eraseGroup(group: string): void {
    this.#drop(this.#pending.filter(({ of }) => of?.group === group));
    this.#erasing.set(group, preciseNow());
    this.flush();
  }

  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#closed) return;
    if (this.#pending.length + this.#touched.size + this.#erasing.size === 0) return;
    try {
      if (fileAt(this.options.path) !== this.#inode) {
        this.options.warn?.(`${this.kind.title}: ${this.options.path}: ${REMOVED}`);
        this.#rows.close();
        this.#beginAnew();
      }
      for (const [group, at] of this.#erasing) {
        this.#rows.erase(group, at);
        this.#erasing.delete(group);
      }
      const refused = this.#rows.apply(this.#pending, this.#touched, this.options.now());
      this.#pending.length = 0;
      this.#byKey.clear();
      this.#touched.clear();
      this.#reported = '';
      for (const key of refused) this.options.onRefused(key);
    } catch (thrown) {
      this.#warnOnce('cannot write', thrown);
      this.#renew(thrown);
      this.#drop(this.#pending.slice(0, -MAX_PENDING));
      this.#schedule(RETRY_AFTER);
    }
  }

  close(): void {
    if (this.#closed) return;
    attempt(() => this.#rows.waitForLastWrite());
    this.flush();
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#pending.length = 0;
    this.#byKey.clear();
    this.#rows.close();
  }

  /** @throws SQLiteError, or an Error where a newer version made the file */
  #open(): Rows {
    const { version, upgrades } = this.file;
    const tables = { version, create: TABLES + COUNT, upgrades };
    // After many writes the log gets small again.
    const pragmas = ['journal_size_limit = 4194304'];
    const db = openStateFile({ path: this.options.path, tables, pragmas });
    try {
      return rowsOf(db, this.kind.keep, this.file);
    } catch (thrown) {
      db.close();
      throw thrown;
    }
  }

  /** Sets a damaged file aside and continues with a new one. */
  #renew(thrown: unknown): void {
    if (!isDamage(thrown)) return;
    attempt(() => {
      this.#rows.close();
      try {
        setAside(this.options.path, this.#inode, thrown);
      } finally {
        this.#beginAnew();
      }
    });
  }

  #beginAnew(): void {
    this.#rows = this.#open();
    this.#inode = fileAt(this.options.path);
  }

  #ask<T>(question: (rows: Rows) => T): T | undefined {
    if (this.#closed) return undefined;
    try {
      return question(this.#rows);
    } catch (thrown) {
      this.#warnOnce('cannot read', thrown);
      this.#renew(thrown);
      return undefined;
    }
  }

  /** Another process has erased the group. */
  #isVoid({ of }: Pending<Entry>): boolean {
    return of !== undefined && this.epochOf(of.group) !== of.epoch;
  }

  #drop(items: readonly Pending<Entry>[]): void {
    if (items.length === 0) return;
    const gone = new Set(items);
    const left = this.#pending.filter((item) => !gone.has(item));
    this.#pending.length = 0;
    this.#byKey.clear();
    for (const item of left) this.#add(item);
  }

  #add(item: Pending<Entry>): void {
    this.#pending.push(item);
    for (const key of item.keys) {
      if (this.kind.keep === 'newest' || !this.#byKey.has(key)) this.#byKey.set(key, item);
    }
  }

  #schedule(after = this.file.flushAfterMs): void {
    if (this.#closed || this.#timer !== undefined) return;
    this.#timer = setTimeout(() => this.flush(), after).unref();
  }

  #warnOnce(what: string, thrown: unknown): void {
    if (this.#reported === what) return;
    this.#reported = what;
    this.options.warn?.(`${this.kind.title}: ${what} (${messageOf(thrown)})`);
  }
}

/** Ignores an error; the next use tries again. */
function attempt(work: () => void): void {
  try {
    work();
  } catch {
    // The problem that led here is logged already.
  }
}

type Rows = ReturnType<typeof rowsOf>;

function rowsOf(db: Database, keep: RoomKind<never>['keep'], limits: RoomFileKind) {
  const get = db.query<{ id: number; used: number; body: Uint8Array }, [string]>(
    'SELECT id, used, body FROM entries WHERE id = (SELECT entry FROM keys WHERE key = ?)',
  );
  const any = db.query<{ id: number }, []>('SELECT id FROM entries LIMIT 1');
  const dataVersion = db.query<{ data_version: number }, []>('PRAGMA data_version');
  const insert = db.query<{ id: number }, [number, number, Uint8Array]>(INSERT);
  // Where the first entry counts, that of another process stays.
  const link = db.query<unknown, [string, number]>(
    `INSERT OR ${keep === 'first' ? 'IGNORE' : 'REPLACE'} INTO keys (key, entry) VALUES (?, ?)`,
  );
  const touch = db.query<unknown, [number, number]>('UPDATE entries SET used = ? WHERE id = ?');
  const totals = db.query<{ entries: number; bytes: number }, []>(
    'SELECT entries, bytes FROM totals',
  );
  const setTotals = db.query<unknown, [number, number]>('UPDATE totals SET entries = ?, bytes = ?');
  const oldest = db.query<{ id: number; used: number; bytes: number }, []>(
    'SELECT id, used, bytes FROM entries ORDER BY used, id LIMIT 1',
  );
  const unlink = db.query<unknown, [number]>('DELETE FROM keys WHERE entry = ?');
  const drop = db.query<unknown, [number]>('DELETE FROM entries WHERE id = ?');
  // The semicolon is the character behind the colon.
  const ofGroup = db.query<{ id: number; bytes: number }, [string, string]>(
    'SELECT id, bytes FROM entries WHERE id IN (SELECT entry FROM keys WHERE key > ? AND key < ?)',
  );
  const erasedAt = db.query<{ at: number }, [string]>('SELECT at FROM erasures WHERE space = ?');
  const dropErasures = db.query<unknown, [number]>('DELETE FROM erasures WHERE at < ?');
  const noteErasure = db.query<unknown, [string, number]>(
    'INSERT OR REPLACE INTO erasures VALUES (?, ?)',
  );

  const forget = (id: number) => {
    unlink.run(id);
    drop.run(id);
  };
  const apply = db.transaction(
    (items: readonly Pending<unknown>[], touched: ReadonlyMap<number, number>, now: number) => {
      const refused: string[] = [];
      let { entries, bytes } = totals.get()!;
      for (const { keys, entry, of } of items) {
        if (of !== undefined && String(erasedAt.get(of.group)?.at ?? 0) !== of.epoch) {
          refused.push(...keys);
          continue;
        }
        const body = compressed(entry);
        const { id } = insert.get(now, body.length, body)!;
        for (const key of keys) if (link.run(key, id).changes === 0) refused.push(key);
        entries++;
        bytes += body.length;
      }
      for (const [id, at] of touched) touch.run(at, id);
      for (;;) {
        const row = oldest.get();
        if (row === null) {
          entries = 0;
          bytes = 0;
          break;
        }
        const fits = entries <= limits.entries && bytes <= limits.bytes;
        if (fits && row.used >= now - limits.ageMs) break;
        forget(row.id);
        entries--;
        bytes -= row.bytes;
      }
      setTotals.run(entries, bytes);
      return refused;
    },
  );
  const erase = db.transaction((group: string, at: number) => {
    dropErasures.run(at - ERASURES_KEPT_MS);
    noteErasure.run(group, at);
    let { entries, bytes } = totals.get()!;
    for (const row of ofGroup.all(`${group}:`, `${group};`)) {
      forget(row.id);
      entries--;
      bytes -= row.bytes;
    }
    setTotals.run(entries, bytes);
  });
  return {
    get: (key: string) => get.get(key),
    any: () => any.get() !== null,
    version: () => dataVersion.get()!.data_version,
    erasedAt: (group: string) => erasedAt.get(group)?.at ?? 0,
    /** Overwrites the pages of the entries in the file, and empties its log. */
    erase(group: string, at: number) {
      db.run('PRAGMA secure_delete = ON');
      erase.immediate(group, at);
      db.run('PRAGMA secure_delete = OFF');
      db.run('PRAGMA wal_checkpoint(TRUNCATE)');
    },
    /** @returns keys under which another process was first, or whose group was erased */
    apply: (...work: Parameters<typeof apply>) => apply.immediate(...work),
    waitForLastWrite: () => waitForLastWrite(db),
    close: () => db.close(),
  };
}
