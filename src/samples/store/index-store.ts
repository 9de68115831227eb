/** The SQLite index of samples: answers queries without opening the files, and is rebuilt from them when lost. */

import { Database, type SQLQueryBindings, type Statement } from 'bun:sqlite';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { EntryName } from '../../conversation/models/endpoint-names.ts';
import { runAtOnce, type Steps } from '../../lib/loop/steps.ts';
import { words } from '../../lib/text/words.ts';
import { HashedName, nameHash } from '../../state/erasures.ts';
import { fileAt, isDamage, openPrivate, useLog } from '../../state/versioned-store.ts';
import { hashedSpace } from '../mask/meta-mask.ts';
import type { SampleFilter, SampleRow } from '../sample.ts';
import { conditionsOf, type NamedRow, named, orderOf, sourceOf } from './index-query.ts';
import { TEXT_SCHEMA, textsOf } from './text-store.ts';

const VERSION = 8;
const SCHEMA = `
CREATE TABLE IF NOT EXISTS samples (
  number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, entry TEXT NOT NULL, state TEXT NOT NULL, time REAL NOT NULL,
  model TEXT NOT NULL, target TEXT NOT NULL, status INTEGER NOT NULL, error TEXT NOT NULL,
  failed INTEGER NOT NULL, stream INTEGER NOT NULL, tries INTEGER NOT NULL, hops INTEGER NOT NULL,
  notes TEXT NOT NULL, input_tokens REAL, output_tokens REAL, cached_tokens REAL,
  cache_write_tokens REAL, cache_write_1h_tokens REAL, reasoning_tokens REAL, first_byte_ms REAL,
  total_ms REAL, session TEXT NOT NULL, owner TEXT NOT NULL, client TEXT NOT NULL,
  made_by TEXT NOT NULL, bytes INTEGER NOT NULL, memory_space TEXT NOT NULL, texts_read INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS samples_time ON samples (time);
CREATE INDEX IF NOT EXISTS samples_failed ON samples (failed, time);
CREATE INDEX IF NOT EXISTS samples_owner ON samples (failed, owner, time, bytes);
CREATE INDEX IF NOT EXISTS samples_target ON samples (target);
CREATE INDEX IF NOT EXISTS samples_session ON samples (session, time);
CREATE INDEX IF NOT EXISTS samples_space ON samples (memory_space) WHERE memory_space != '';
CREATE TABLE IF NOT EXISTS erasures (space TEXT PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS totals (failed INTEGER PRIMARY KEY, count INTEGER NOT NULL, bytes INTEGER NOT NULL);
INSERT OR IGNORE INTO totals VALUES (0, 0, 0), (1, 0, 0);
${TEXT_SCHEMA}
PRAGMA user_version = ${VERSION};
`;
const COLUMNS = words(`
  id entry state time model target status error failed stream tries hops notes input_tokens
  output_tokens cached_tokens cache_write_tokens cache_write_1h_tokens reasoning_tokens
  first_byte_ms total_ms session owner client made_by bytes memory_space
`) as readonly (keyof SampleRow)[];
const ROW = COLUMNS.join(', ');
/** Columns that may be missing in a row. */
const EMPTY: Readonly<Record<string, string>> = { memory_space: '', client: '', made_by: '' };

/** What one owner has of the samples that are over. */
export interface OwnedTotals extends Totals {
  readonly owner: string;
}

export interface Totals {
  readonly count: number;
  readonly bytes: number;
}

/** A sample that is over, with its number in the index, which grows. */
export interface FinishedSample {
  readonly number: number;
  readonly id: string;
  readonly entry: EntryName;
}

/** The queries of one open database. */
export type SampleIndex = ReturnType<typeof indexOf>;

/** An index on disk; `rebuilds` counts how often its file was replaced since it was opened. */
export interface SampleIndexFile extends SampleIndex {
  readonly rebuilds: number;
}

const renewed = new Map<string, Set<(cause: unknown) => void>>();

/**
 * Calls `keeper` when an index of this process was damaged or removed and is empty now, so that it can fill
 * the index from the files, until the returned function is called.
 */
export function onIndexRebuilt(root: string, keeper: (cause: unknown) => void): () => void {
  const keepers = renewed.get(root) ?? new Set();
  renewed.set(root, keepers.add(keeper));
  return () => {
    keepers.delete(keeper);
    if (keepers.size === 0) renewed.delete(root);
  };
}

const codeOf = (error: unknown) => String((error as { code?: unknown } | null)?.code);

/**
 * Opens `<root>/index.db` and creates it (0600 in a folder 0700) when it is missing. A file of another
 * version, or one that turns out to be damaged, is replaced: it holds nothing that the samples do not. The
 * query that found the damage runs again on the new file.
 * @param fill fills a new index; by default the keepers of {@link onIndexRebuilt} do
 * @throws SQLiteError when neither works
 */
export function openIndex(root: string, fill?: (index: SampleIndex) => void): SampleIndexFile {
  const path = join(root, 'index.db');
  let renewals = 0;
  const notifyKeepers = (cause: unknown) => {
    for (const keeper of renewed.get(root) ?? []) keeper(cause);
  };
  let index = openFile(root, notifyKeepers);
  let file = fileAt(path);
  const renew = (cause: unknown) => {
    index.close();
    // Unless another connection has replaced it already.
    if (fileAt(path) === file) removeFile(path);
    index = openFile(root, notifyKeepers);
    file = fileAt(path);
    renewals++;
    if (fill !== undefined) fill(index);
    else notifyKeepers(cause);
  };
  const run = <T>(query: (of: SampleIndex) => T): T => {
    if (fileAt(path) !== file) renew(new Error('the file is gone'));
    try {
      return query(index);
    } catch (error) {
      if (!isDamage(error)) throw error;
      renew(error);
      return query(index);
    }
  };
  return {
    ...forwarded(index, run),
    texts: forwarded(index.texts, (query) => run((of) => query(of.texts))),
    get rebuilds() {
      return renewals;
    },
    close: () => index.close(),
  };
}

type Method = (...values: readonly unknown[]) => unknown;

/** The same methods; each call goes to what is open then. */
function forwarded<T extends object>(methods: T, run: (query: (of: T) => unknown) => unknown): T {
  const forward =
    (name: string) =>
    (...values: readonly unknown[]) =>
      run((of) => (of as Readonly<Record<string, Method>>)[name]!(...values));
  return Object.fromEntries(Object.keys(methods).map((name) => [name, forward(name)])) as T;
}

/** @param onDamage called when a damaged file was replaced */
function openFile(root: string, onDamage: (cause: unknown) => void): SampleIndex {
  mkdirSync(root, { recursive: true, mode: 0o700 });
  const path = join(root, 'index.db');
  try {
    return indexOf(open(path));
  } catch (error) {
    // Of another version, or damaged: no other error says anything of what is in the file.
    if (!isDamage(error) && error !== OTHER_VERSION && !/^SQLITE_ERROR/.test(codeOf(error)))
      throw error;
    removeFile(path);
    if (isDamage(error)) onDamage(error);
    return indexOf(open(path));
  }
}

function removeFile(path: string): void {
  for (const end of ['', '-wal', '-shm']) rmSync(path + end, { force: true });
}

/** An index in memory, for folders that cannot be written. */
export function memoryIndex(): SampleIndex {
  const db = new Database(':memory:', { strict: true });
  db.run(SCHEMA);
  return indexOf(db);
}

const BUSY_MS = 300;
const OTHER_VERSION = new Error('another version made the index');

function open(path: string): Database {
  const db = openPrivate(path, BUSY_MS);
  try {
    // No write waits for the disk: after a power failure the index is rebuilt from the files.
    db.run('PRAGMA synchronous = OFF');
    const version = db.query<{ user_version: number }, []>('PRAGMA user_version').get()!;
    if (version.user_version !== 0 && version.user_version !== VERSION) throw OTHER_VERSION;
    useLog(db, BUSY_MS);
    // Else SQLite writes pages to the disk, to take a statement back (decision 40).
    db.run('PRAGMA temp_store = MEMORY');
    db.run('PRAGMA secure_delete = ON');
    db.run('PRAGMA journal_size_limit = 8388608');
    db.transaction(() => db.run(SCHEMA)).immediate();
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

type StoredRow = Omit<SampleRow, 'failed' | 'stream'> & { failed: number; stream: number };

const rowOf = (row: StoredRow): SampleRow => ({
  ...row,
  failed: row.failed !== 0,
  stream: row.stream !== 0,
});

/** Milliseconds: longer than any exchange that began before the erasure. */
const ERASURES_KEPT = 86_400_000;
/** The hash for a row, which may hold a hash already. */
const hashIn = (space: string) =>
  space.startsWith('sha256:') ? space.slice('sha256:'.length) : nameHash(space);

/** Rows between two yields where patterns are compared. */
const NAMES_A_STEP = 200;

function indexOf(db: Database) {
  const of = <Row, Args extends SQLQueryBindings[]>(sql: string) =>
    db.query(sql) as unknown as Statement<Row, Args>;
  const insert = of<unknown, SQLQueryBindings[]>(
    `INSERT INTO samples (${COLUMNS.join(', ')}) VALUES (${COLUMNS.map(() => '?').join(', ')})`,
  );
  const remove = of<{ number: number; failed: 0 | 1; bytes: number }, [string]>(
    'DELETE FROM samples WHERE id = ? RETURNING number, failed, bytes',
  );
  const unsay = of<unknown, [number]>('INSERT OR IGNORE INTO unsaid VALUES (?)');
  const total = of<unknown, [number, number, number]>(
    'UPDATE totals SET count = count + ?, bytes = bytes + ? WHERE failed = ?',
  );
  const names = of<NamedRow, [number, number]>(
    'SELECT number, model, target, client, notes FROM samples WHERE number > ? ORDER BY number LIMIT ?',
  );
  const namesAfter = (number: number) => names.all(number, NAMES_A_STEP);
  const totals = of<{ count: number; bytes: number }, [number]>(
    'SELECT count, bytes FROM totals WHERE failed = ?',
  );
  const rows = (where: string, ...values: SQLQueryBindings[]): readonly SampleRow[] =>
    of<StoredRow, SQLQueryBindings[]>(`SELECT ${ROW} FROM ${where} LIMIT ?`)
      .all(...values)
      .map(rowOf);
  /** The name under which rows have a space of which only the hash is known. */
  const nameOf = (space: string | HashedName) =>
    space instanceof HashedName
      ? of<{ memory_space: string }, []>(
          `SELECT DISTINCT memory_space FROM samples WHERE memory_space != ''`,
        )
          .all()
          .find((row) => hashIn(row.memory_space) === space.hash)?.memory_space
      : space;
  const erasure = of<{ at: number }, [string]>('SELECT at FROM erasures WHERE space = ?');
  /** Removes rows, and puts others in place of those with their ids. */
  const change = db.transaction((gone: readonly string[], rows: readonly SampleRow[]) => {
    const sums = { 0: { count: 0, bytes: 0 }, 1: { count: 0, bytes: 0 } };
    const take = (id: string) => {
      const [old] = remove.all(id);
      if (old === undefined) return;
      sums[old.failed].count--;
      sums[old.failed].bytes -= old.bytes;
      unsay.run(old.number);
    };
    for (const id of gone) take(id);
    for (const row of rows) {
      take(row.id);
      insert.run(...COLUMNS.map((column) => row[column] ?? EMPTY[column] ?? null));
      const sum = sums[row.failed ? 1 : 0];
      sum.count++;
      sum.bytes += row.bytes;
    }
    for (const failed of [0, 1] as const) total.run(sums[failed].count, sums[failed].bytes, failed);
  });
  return {
    /** Inserts all rows in one transaction; known ids are replaced. */
    put(rows: readonly SampleRow[]): void {
      if (rows.length > 0) change.immediate([], rows);
    },
    remove(ids: readonly string[]): void {
      if (ids.length > 0) change.immediate(ids, []);
    },
    named: (filter: SampleFilter): Steps<SampleFilter> => named(filter, namesAfter),
    /** Newest first. */
    list(given: SampleFilter): readonly SampleRow[] {
      const filter = runAtOnce(named(given, namesAfter));
      const source = sourceOf(filter);
      const { where, values } = conditionsOf(filter);
      const sql = `${source.from} ${where} ${orderOf(filter)}`;
      return rows(sql, ...source.values, ...values, filter.limit ?? -1);
    },
    targets: (): readonly string[] =>
      of<{ target: string }, []>('SELECT DISTINCT target FROM samples')
        .all()
        .map(({ target }) => target),
    texts: textsOf(db),
    /** Samples whose ids contain this text, newest first. */
    matching: (part: string, limit: number): readonly SampleRow[] =>
      rows('samples WHERE instr(id, ?) > 0 ORDER BY time DESC, id DESC', part, limit),
    /** A page of ids of an entry with their states: those after `id`, in order. */
    idsAfter: (entry: EntryName, id: string, limit: number) =>
      of<{ id: string; state: string }, [string, string, number]>(
        'SELECT id, state FROM samples WHERE entry = ? AND id > ? ORDER BY id LIMIT ?',
      ).all(entry, id, limit),
    /** Kept beside the rows: the cost does not grow with the number of samples. */
    totals: (failed: boolean): Totals => totals.get(failed ? 1 : 0)!,
    /** What each owner has: the cost grows with the number of samples. */
    owned: (failed: boolean): readonly OwnedTotals[] =>
      of<OwnedTotals, [number]>(
        'SELECT owner, count(*) AS count, sum(bytes) AS bytes FROM samples WHERE failed = ? GROUP BY owner',
      ).all(failed ? 1 : 0),
    /** The oldest samples, oldest first; of one owner, or of all. */
    oldest(failed: boolean, limit: number, owner?: string): readonly SampleRow[] {
      const [own, values] = owner === undefined ? ['', []] : ['AND owner = ?', [owner]];
      const over = `samples WHERE failed = ? ${own} AND state != 'open' ORDER BY time, id`;
      return rows(over, failed ? 1 : 0, ...values, limit);
    },
    /** Samples of a memory space that began at this time or before, in ms since 1970; left out: all of them. */
    ofSpace(
      space: string | HashedName,
      limit: number,
      until = Number.MAX_SAFE_INTEGER,
    ): readonly SampleRow[] {
      const name = nameOf(space);
      if (name === undefined || name === '') return [];
      const hashed = space instanceof HashedName ? `sha256:${space.hash}` : hashedSpace(space);
      const where = `samples WHERE memory_space != '' AND memory_space IN (?, ?) AND time <= ?`;
      return rows(where, name, hashed, until, limit);
    },
    /** Samples that are over, in the order in which they came into the index; `number` goes on behind it. */
    finishedAfter: (number: number, limit: number) =>
      of<FinishedSample, [number, number]>(
        `SELECT number, id, entry FROM samples WHERE number > ? AND state != 'open' ORDER BY number LIMIT ?`,
      ).all(number, limit),
    /** Records that a space was erased at this time, in ms since 1970; its name is kept as a hash. */
    noteErasure(space: string | HashedName, at: number): void {
      db.run('DELETE FROM erasures WHERE at < ?', [at - ERASURES_KEPT]);
      db.run('INSERT OR REPLACE INTO erasures VALUES (?, ?)', [nameHash(space), at]);
    },
    /** Rows whose space was erased after they began. */
    erased: (rows: readonly SampleRow[]): readonly SampleRow[] =>
      rows.filter(({ memory_space: space = '', time }) => {
        const gone = space === '' ? null : erasure.get(hashIn(space));
        return gone !== null && time <= gone.at;
      }),
    /** Clears removed rows out of the file and its log, unless another connection still reads them. */
    scrub: (): void => void of<unknown, []>('PRAGMA wal_checkpoint(TRUNCATE)').get(),
    close: () => db.close(),
  };
}
