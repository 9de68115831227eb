/** The SQLite driver: a file of this machine, by calls that end at once. */

import type { Database } from 'bun:sqlite';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { messageOf } from '../../lib/text/thrown.ts';
import { type Migration, openStateFile, openUnchanged, type Tables } from '../versioned-store.ts';
import type { SqlDatabase, SqlSchema, SqlStatements, SqlValue, TransactionOptions } from './sql.ts';

export interface SqliteOptions {
  readonly path: string;
  /** Milliseconds to wait for another process's write, on the event loop. */
  readonly busyMs?: number;
  /** A commit survives a power cut. */
  readonly durable?: boolean;
  /** A new file can give back the space of removed rows, and its log stays small. */
  readonly shrinks?: boolean;
}

const SHRINKING = ['auto_vacuum = INCREMENTAL', 'journal_size_limit = 16777216'];
/** Pages that one transaction gives back. */
const FREED_PAGES = 256;

/** @throws SQLiteError, or an Error with a message for people when the file cannot be used */
export function openSqlite(
  schema: SqlSchema,
  { path, busyMs, durable, shrinks }: SqliteOptions,
): SqlDatabase {
  const db = openStateFile({
    path,
    tables: tablesOf(schema),
    ...(busyMs !== undefined && { busy: busyMs }),
    ...(shrinks === true && { pragmas: SHRINKING }),
  });
  if (durable === true) db.run('PRAGMA synchronous = FULL');
  return new SqliteDatabase(db);
}

/**
 * A file to look at, which stays as it is. One of an older version is copied to a temporary file, and the copy brought
 * up to date.
 * @returns undefined where there is no file, or nothing in it yet
 * @throws Error with a message for people where a newer version made the file, or it cannot be read
 */
export function openSqliteToRead(schema: SqlSchema, path: string): SqlDatabase | undefined {
  const file = openFileToRead(schema, path);
  return file && new SqliteDatabase(file.db, file.onClose);
}

/** A file as of {@link openSqliteToRead}; `onClose` is called after it is closed. */
export function openFileToRead(
  schema: SqlSchema,
  path: string,
): { readonly db: Database; readonly onClose?: () => void } | undefined {
  const tables = tablesOf(schema);
  const source = openSource(path, tables.version);
  if (source === undefined || source.version === tables.version) return source;
  const folder = mkdtempSync(join(tmpdir(), 'hopgate-'));
  const onClose = () => rmSync(folder, { recursive: true, force: true });
  try {
    const copy = join(folder, 'copy.db');
    // The copy is another file, which the pragma keeps from being written, too.
    source.db.run('PRAGMA query_only = OFF');
    source.db.query('VACUUM INTO ?').run(copy);
    return { db: openStateFile({ path: copy, tables }), onClose };
  } catch (thrown) {
    onClose();
    throw new Error(`${path} cannot be read: ${messageOf(thrown)}`, { cause: thrown });
  } finally {
    source.db.close();
  }
}

const tablesOf = ({ sqlite: { version, create, upgrades = {} } }: SqlSchema): Tables => ({
  version,
  create: own(create),
  upgrades: Object.fromEntries(Object.entries(upgrades).map(([from, step]) => [from, own(step)])),
});

const own = (step: Migration) => (typeof step === 'string' ? ownTables(step) : step);

/** A file has no schemas: it is the room's own. */
const ownTables = (sql: string): string => sql.replaceAll('hopgate.', '');

class SqliteDatabase implements SqlDatabase {
  readonly form = 'file';
  readonly now = `CAST(unixepoch('subsec') * 1000 AS integer)`;
  /** Statements as they were written, and as SQLite reads them. */
  readonly #texts = new Map<string, string>();
  /** Resolves with the transaction that is open: others must not get into it. */
  #open: Promise<void> | undefined;

  constructor(
    private readonly db: Database,
    private readonly onClose?: () => void,
  ) {}

  // Statements are handed on as `{ query }`.
  readonly query: SqlStatements['query'] = async <Row>(
    sql: string,
    values: readonly SqlValue[] = [],
  ) => {
    while (this.#open !== undefined) await this.#open;
    return this.#all<Row>(sql, values);
  };

  transaction<T>(
    work: (inside: SqlStatements) => Promise<T>,
    options?: TransactionOptions,
  ): Promise<T> {
    return this.#within('BEGIN IMMEDIATE', work, options);
  }

  snapshot<T>(work: (inside: SqlStatements) => Promise<T>): Promise<T> {
    return this.#within('BEGIN', work);
  }

  close(): void {
    this.db.close();
    this.onClose?.();
  }

  async #within<T>(
    begin: string,
    work: (inside: SqlStatements) => Promise<T>,
    { overwrites = false, frees = false }: TransactionOptions = {},
  ): Promise<T> {
    while (this.#open !== undefined) await this.#open;
    if (overwrites) this.db.run('PRAGMA secure_delete = ON');
    this.db.run(begin);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#open = promise;
    try {
      const result = await work({ query: async (sql, values = []) => this.#all(sql, values) });
      this.db.run('COMMIT');
      // The write-ahead log still contains the rows.
      if (overwrites) this.db.run('PRAGMA wal_checkpoint(TRUNCATE)');
      if (frees) this.db.run(`PRAGMA incremental_vacuum(${FREED_PAGES})`);
      return result;
    } catch (thrown) {
      // Some errors, a full disk among them, have undone everything already.
      if (this.db.inTransaction) this.db.run('ROLLBACK');
      throw thrown;
    } finally {
      if (overwrites) this.db.run('PRAGMA secure_delete = OFF');
      this.#open = undefined;
      resolve();
    }
  }

  #all<Row>(sql: string, values: readonly SqlValue[]): Row[] {
    let text = this.#texts.get(sql);
    if (text === undefined) {
      text = ownTables(sql).replaceAll(/\$(\d+)/g, '?$1');
      this.#texts.set(sql, text);
    }
    // As one list: thousands of arguments cost more than what is done with them.
    return this.db.query<Row, SqlValue[]>(text).all(values as never);
  }
}

/** Another process may write meanwhile. */
const BUSY_MS = 5000;

/** A file that is there, and the number of its schema. */
export interface SourceFile {
  readonly db: Database;
  readonly version: number;
}

/**
 * @param newest the newest schema that can be read
 * @returns undefined where there is no file, or nothing in it yet
 * @throws Error with a message for people where a newer version made the file, or it cannot be read
 */
export function openSource(path: string, newest: number): SourceFile | undefined {
  if (!existsSync(path)) return undefined;
  let db: Database | undefined;
  try {
    db = openUnchanged(path, BUSY_MS);
    const { version } = db
      .query<{ version: number }, []>('SELECT user_version AS version FROM pragma_user_version')
      .get()!;
    if (version > newest) {
      throw new Error(
        `a newer version of hopgate made it (schema ${version}, this one knows ${newest})`,
      );
    }
    if (version > 0) return { db, version };
    db.close();
    return undefined;
  } catch (thrown) {
    db?.close();
    const why = messageOf(thrown);
    throw new Error(`${path} cannot be read: ${why}`, { cause: thrown });
  }
}
