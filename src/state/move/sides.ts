/** The tables of a room on both sides of a move: the file of a machine, and the database of all replicas. */

import { existsSync } from 'node:fs';
import { randomBase36 } from '../../lib/text/ids.ts';
import type { Sql } from '../engines/engine.ts';
import { openPostgres } from '../sql/postgres.ts';
import {
  placeholders,
  type SqlDatabase,
  type SqlSchema,
  type SqlStatements,
  type SqlValue,
} from '../sql/sql.ts';
import { openSqlite, openSqliteToRead, type SqliteOptions } from '../sql/sqlite.ts';
import type { MoveDirection } from './paged-move.ts';

export interface MoveOptions {
  readonly database: Sql;
  /** The file of this machine. */
  readonly path: string;
  readonly to: MoveDirection;
}

/** The tables of a room on one side. */
export interface Side {
  readonly db: SqlDatabase;
  /** Outside of transactions, with time for long reads. */
  readonly reader: SqlStatements;
  /** Names of tables that are there. */
  readonly has: ReadonlySet<string>;
}

export interface Sides {
  /** Undefined: there is no file. */
  readonly file: Side | undefined;
  readonly database: Side;
  readonly source: Side | undefined;
  readonly target: Side | undefined;
  close(): void;
}

export interface OpenOptions {
  /**
   * What is written, and made where it is not there: a side that is only read is neither made nor changed, nor is
   * anything where there is no file to copy.
   */
  readonly writes?: 'target' | 'both' | undefined;
  /** Makes tables that moves alone use, on each side that is written. */
  readonly prepare?: (side: SqlDatabase) => Promise<unknown>;
  readonly file?: Partial<SqliteOptions>;
}

/** Milliseconds to wait for a gateway that writes. */
const BUSY_MS = 5000;
const READ_MS = 60_000;
/** For one transaction. */
export const WRITE_MS = 20_000;

/** @throws Error with a message for people */
export async function openSides(
  schema: SqlSchema,
  { database, path, to }: MoveOptions,
  { writes, prepare, file: options }: OpenOptions = {},
): Promise<Sides> {
  const isWritten = writes !== undefined && (to === 'embedded' || existsSync(path));
  const [writesFile, writesDatabase] = [
    isWritten && (writes === 'both' || to === 'embedded'),
    isWritten && (writes === 'both' || to === 'engines'),
  ];
  const opened = writesFile
    ? openSqlite(schema, { busyMs: BUSY_MS, ...options, path })
    : openSqliteToRead(schema, path);
  try {
    if (writesFile) await prepare?.(opened!);
    const tables = writesDatabase ? openPostgres(database, schema) : asItIs(database, schema);
    if (writesDatabase) await prepare?.(tables);
    const file = opened && (await sideOf(opened));
    const there = await sideOf(tables);
    const [source, target] = to === 'engines' ? [file, there] : [there, file];
    return { file, database: there, source, target, close: () => opened?.close() };
  } catch (thrown) {
    opened?.close();
    throw thrown;
  }
}

/**
 * Makes tables that moves alone use in a file, which gets a name among all machines. A file that begins anew is another.
 * @param name the statement that writes the name, `$1`, where there is none
 */
export const namedFile =
  (tables: readonly string[], name: string) =>
  async (side: SqlDatabase): Promise<void> => {
    if (side.form === 'database') return;
    await side.transaction(async (inside) => {
      for (const sql of tables) await inside.query(sql);
      await inside.query(name, [randomBase36(20)]);
    });
  };

const asItIs = (database: Sql, schema: SqlSchema) => openPostgres(database, schema, async () => {});

const ANY: SqlSchema = { room: '', sqlite: { version: 0, create: '' }, postgres: [] };

/** All tables of the database, to be read as they are. */
export const databaseSide = (database: Sql): Promise<Side> => sideOf(asItIs(database, ANY));

const NAMES = {
  file: "SELECT name FROM sqlite_master WHERE type = 'table'",
  database: "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'hopgate'",
};

async function sideOf(db: SqlDatabase): Promise<Side> {
  const reader: SqlStatements = { query: (sql, values) => db.query(sql, values, READ_MS) };
  const rows = await reader.query<{ name: string }>(NAMES[db.form]);
  return { db, reader, has: new Set(rows.map(({ name }) => name)) };
}

const PAGE = 500;

/** The rows of a statement in this order, in pages. @param sql ends with a condition, or with `WHERE true` */
export async function* pagesOf<Row extends object>(
  { reader }: Side,
  sql: string,
  order: readonly string[],
  values: readonly SqlValue[] = [],
): AsyncGenerator<readonly Row[]> {
  const columns = order.join(', ');
  const behind = ` AND (${columns}) > (${placeholders(order.length, values.length + 1)})`;
  for (let last: Row | undefined; ; ) {
    const from = last === undefined ? [] : order.map((name) => last![name as keyof Row]);
    const page: readonly Row[] = await reader.query<Row>(
      `${sql}${last === undefined ? '' : behind} ORDER BY ${columns} LIMIT ${PAGE}`,
      [...values, ...(from as SqlValue[])],
    );
    if (page.length > 0) yield page;
    if (page.length < PAGE) return;
    last = page.at(-1)!;
  }
}

/** Milliseconds by which the database's clock is ahead of this one's: at least, and at most. */
export interface ClockAhead {
  readonly least: number;
  readonly most: number;
}

/** @throws EngineAway */
export async function clockAhead(database: Sql): Promise<ClockAhead> {
  const before = Date.now();
  const [row] = await database.query<{ now: number }>(
    'SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS now',
    [],
    READ_MS,
  );
  return { least: row!.now - Date.now(), most: row!.now - before };
}
