/**
 * One SQL for two databases: a SQLite file of this machine, and the Postgres of all replicas. A room has one schema and
 * one store class over {@link SqlDatabase}; only the drivers beside this file know which of the two it is.
 *
 * What both understand, and statements keep to:
 * - Tables are written `hopgate.NAME`; placeholders `$1`, `$2` …
 * - `ON CONFLICT (…) DO UPDATE SET … excluded.…`, `RETURNING`, CTEs, window functions, row values, `CAST(… AS text)`
 *   (`::text` is Postgres alone; a statement that writes inside `WITH` too)
 * - Column types `text`, `bigint`, `double precision`, `bytea`, `boolean`. SQLite gives booleans back as 0 and 1, and
 *   `json` as text: {@link readBoolean} and {@link readJson} read both.
 * - Lists: {@link placeholders} for `IN`, {@link rowPlaceholders} for `VALUES`; {@link MAX_VALUES} in one statement.
 */

import { type Json, parseJson } from '../../lib/json/json.ts';
import type { Tables } from '../versioned-store.ts';

export type SqlValue = string | number | boolean | null | Uint8Array;

export interface SqlStatements {
  /** @returns the rows of a query, or of `RETURNING` */
  query<Row>(sql: string, values?: readonly SqlValue[]): Promise<readonly Row[]>;
}

export interface TransactionOptions {
  /** Milliseconds; SQLite has none. */
  readonly deadlineMs?: number;
  /**
   * Transactions with the same number go one after the other, over all processes. In a SQLite file all that write do.
   * Numbers of rooms differ (`test/state/advisory-locks.test.ts`).
   */
  readonly lock?: number;
  /** Others may have these numbers so at the same time, but nobody as their `lock`. */
  readonly sharedLocks?: readonly number[];
  /** What it removes from a file is overwritten there, and cannot be found in it any more. */
  readonly overwrites?: boolean;
  /** It may remove much: a file that `shrinks` gives the space back, some of it each time. */
  readonly frees?: boolean;
}

/** Statements of one room. Before the first one, its tables are brought up to date. */
export interface SqlDatabase extends SqlStatements {
  /** `file` of this machine, or `database` of all replicas: for messages. */
  readonly form: 'file' | 'database';
  /** SQL: milliseconds since 1970 by the clock of the database, of this moment. */
  readonly now: string;
  /**
   * @param deadlineMs in which Postgres must answer; 2000 if left out
   * @throws EngineAway, or the error of the database
   */
  query<Row>(
    sql: string,
    values?: readonly SqlValue[],
    deadlineMs?: number,
  ): Promise<readonly Row[]>;
  /**
   * All of it or nothing: what `work` throws undoes everything, and is thrown. `work` awaits nothing but `inside`,
   * and never this database itself, which would wait for the end of the transaction.
   */
  transaction<T>(
    work: (inside: SqlStatements) => Promise<T>,
    options?: TransactionOptions,
  ): Promise<T>;
  /** Reads as of one moment. */
  snapshot<T>(work: (inside: SqlStatements) => Promise<T>): Promise<T>;
  close(): void;
}

/**
 * The tables of a room. Migrations that were published never change; a statement that both databases understand is
 * written once and stands in both.
 */
export interface SqlSchema {
  /** Its name in Postgres, where each room counts its own versions. */
  readonly room: string;
  readonly sqlite: Tables;
  /** The n-th leads from version n to n+1, and adds only what the version before can live with: two versions may run at once. */
  readonly postgres: readonly string[];
}

/** Values of one statement: 32,766 in SQLite, 65,535 in Postgres. */
export const MAX_VALUES = 32_000;

/** `$1, $2, $3` */
export const placeholders = (count: number, first = 1): string =>
  Array.from({ length: count }, (_, i) => `$${first + i}`).join(', ');

/** `($1, $2), ($3, $4)` */
export const rowPlaceholders = (rows: number, columns: number): string =>
  Array.from({ length: rows }, (_, i) => `(${placeholders(columns, 1 + i * columns)})`).join(', ');

export const readBoolean = (value: number | boolean): boolean => Boolean(value);

/** A column of the type `json`. @throws SyntaxError */
export const readJson = (value: unknown): Json =>
  typeof value === 'string' ? parseJson(value) : (value as Json);
