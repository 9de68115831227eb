/** The index of samples: what can be asked without opening thousands of files; made anew from them when lost. */

import { Database, type SQLQueryBindings, type Statement } from 'bun:sqlite';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { SampleBook, SampleFilter, SampleRow } from '../../conversation/sample.ts';
import type { ProtocolName } from '../../conversation/types.ts';
import { openPrivate } from '../../lib/versioned-store.ts';
import { conditionsOf } from './index-query.ts';
import { statisticsOf } from './index-statistics.ts';

const VERSION = 3;
const SCHEMA = `
CREATE TABLE IF NOT EXISTS samples (
  id TEXT PRIMARY KEY, entry TEXT NOT NULL, state TEXT NOT NULL, time REAL NOT NULL,
  model TEXT NOT NULL, target TEXT NOT NULL, status INTEGER NOT NULL, error TEXT NOT NULL,
  failed INTEGER NOT NULL, stream INTEGER NOT NULL, tries INTEGER NOT NULL, hops INTEGER NOT NULL,
  notes TEXT NOT NULL, input_tokens REAL, output_tokens REAL, cached_tokens REAL,
  cache_write_tokens REAL, cache_write_1h_tokens REAL, reasoning_tokens REAL, first_byte_ms REAL,
  total_ms REAL, session TEXT NOT NULL, owner TEXT NOT NULL, bytes INTEGER NOT NULL,
  memory_space TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS samples_time ON samples (time);
CREATE INDEX IF NOT EXISTS samples_failed ON samples (failed, time);
CREATE INDEX IF NOT EXISTS samples_session ON samples (session, time);
CREATE INDEX IF NOT EXISTS samples_space ON samples (memory_space) WHERE memory_space != '';
CREATE TABLE IF NOT EXISTS erasures (space TEXT PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID;
PRAGMA user_version = ${VERSION};
`;
const COLUMNS = [
  'id',
  'entry',
  'state',
  'time',
  'model',
  'target',
  'status',
  'error',
  'failed',
  'stream',
  'tries',
  'hops',
  'notes',
  'input_tokens',
  'output_tokens',
  'cached_tokens',
  'cache_write_tokens',
  'cache_write_1h_tokens',
  'reasoning_tokens',
  'first_byte_ms',
  'total_ms',
  'session',
  'owner',
  'bytes',
  'memory_space',
] as const;

export interface Totals {
  readonly count: number;
  readonly bytes: number;
}

export interface SampleIndex {
  /** All of them in one transaction; known ids are replaced. */
  put(rows: readonly SampleRow[]): void;
  remove(ids: readonly string[]): void;
  /** Newest first. */
  list(filter: SampleFilter): readonly SampleRow[];
  statistics: SampleBook['statistics'];
  /** Ids of an entry with their state. */
  ids(entry: ProtocolName): ReadonlyMap<string, string>;
  totals(failed: boolean): Totals;
  /** The oldest ones, oldest first. */
  oldest(failed: boolean, limit: number): readonly SampleRow[];
  /** Samples of a memory space. */
  ofSpace(space: string): readonly SampleRow[];
  /** The space was erased at this time, in ms since 1970; its name is kept as a hash. */
  noteErasure(space: string, at: number): void;
  /** Those whose space was erased after they began. */
  erased(rows: readonly SampleRow[]): readonly SampleRow[];
  /** Leaves nothing of removed rows in the file and its log, as far as nobody reads them now. */
  scrub(): void;
  close(): void;
}

/**
 * Opens `<root>/index.db`, made (0600 in a folder 0700) when it is not there. A file that is no index
 * of this version is thrown away: it holds nothing that the samples do not.
 * @throws SQLiteError when neither works
 */
export function openIndex(root: string): SampleIndex {
  mkdirSync(root, { recursive: true, mode: 0o700 });
  const path = join(root, 'index.db');
  try {
    return indexOf(open(path));
  } catch (error) {
    if (/BUSY|LOCKED|READONLY|CANTOPEN/.test(String((error as { code?: unknown }).code)))
      throw error;
    for (const end of ['', '-wal', '-shm']) rmSync(path + end, { force: true });
    return indexOf(open(path));
  }
}

/** An index that is forgotten again, for folders that cannot be written. */
export function memoryIndex(): SampleIndex {
  const db = new Database(':memory:', { strict: true });
  db.run(SCHEMA);
  return indexOf(db);
}

function open(path: string): Database {
  const db = openPrivate(path, 300);
  try {
    // Nothing waits for the disk: an index that a power failure spoils is made anew from the files.
    db.run('PRAGMA synchronous = OFF');
    const version = db.query<{ user_version: number }, []>('PRAGMA user_version').get()!;
    if (version.user_version !== 0 && version.user_version !== VERSION) throw new Error('version');
    db.run('PRAGMA journal_mode = WAL');
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

/** Longer than an exchange lasts that began before. */
const ERASURES_KEPT = 86_400_000;
const hashOf = (space: string) => new Bun.CryptoHasher('sha256').update(space).digest('hex');

function indexOf(db: Database): SampleIndex {
  const of = <Row, Args extends SQLQueryBindings[]>(sql: string) =>
    db.query(sql) as unknown as Statement<Row, Args>;
  const insert = of<unknown, SQLQueryBindings[]>(
    `INSERT OR REPLACE INTO samples (${COLUMNS.join(', ')}) VALUES (${COLUMNS.map(() => '?').join(', ')})`,
  );
  const remove = of<unknown, [string]>('DELETE FROM samples WHERE id = ?');
  const ids = of<{ id: string; state: string }, [string]>(
    'SELECT id, state FROM samples WHERE entry = ?',
  );
  const totals = of<Totals, [number]>(
    'SELECT count(*) AS count, total(bytes) AS bytes FROM samples WHERE failed = ?',
  );
  const oldest = of<StoredRow, [number, number]>(
    `SELECT * FROM samples WHERE failed = ? AND state != 'open' ORDER BY time, id LIMIT ?`,
  );
  const ofSpace = of<StoredRow, [string]>('SELECT * FROM samples WHERE memory_space = ?');
  const noteErasure = of<unknown, [string, number]>(
    'INSERT OR REPLACE INTO erasures VALUES (?, ?)',
  );
  const forgetErasures = of<unknown, [number]>('DELETE FROM erasures WHERE at < ?');
  const erasure = of<{ at: number }, [string]>('SELECT at FROM erasures WHERE space = ?');
  const putAll = db.transaction((rows: readonly SampleRow[]) => {
    for (const row of rows)
      insert.run(
        ...COLUMNS.map((column) => row[column] ?? (column === 'memory_space' ? '' : null)),
      );
  });
  const removeAll = db.transaction((gone: readonly string[]) => {
    for (const id of gone) remove.run(id);
  });
  return {
    put: (rows) => {
      if (rows.length > 0) putAll.immediate(rows);
    },
    remove: (gone) => {
      if (gone.length > 0) removeAll.immediate(gone);
    },
    list: (filter) => {
      const { where, values } = conditionsOf(filter);
      const sql = `SELECT * FROM samples ${where} ORDER BY time DESC, id DESC LIMIT ?`;
      return of<StoredRow, SQLQueryBindings[]>(sql)
        .all(...values, filter.limit ?? -1)
        .map(rowOf);
    },
    statistics: (filter, bucketMs) =>
      statisticsOf(
        (sql, values) => of<never, SQLQueryBindings[]>(sql).all(...values),
        filter,
        bucketMs,
      ),
    ids: (entry) => new Map(ids.all(entry).map(({ id, state }) => [id, state])),
    totals: (failed) => totals.get(failed ? 1 : 0)!,
    oldest: (failed, limit) => oldest.all(failed ? 1 : 0, limit).map(rowOf),
    ofSpace: (space) => (space === '' ? [] : ofSpace.all(space).map(rowOf)),
    noteErasure: (space, at) => {
      forgetErasures.run(at - ERASURES_KEPT);
      noteErasure.run(hashOf(space), at);
    },
    erased: (rows) =>
      rows.filter(({ memory_space: space = '', time }) => {
        const gone = space === '' ? null : erasure.get(hashOf(space));
        return gone !== null && time <= gone.at;
      }),
    scrub: () => void of<unknown, []>('PRAGMA wal_checkpoint(TRUNCATE)').get(),
    close: () => db.close(),
  };
}
