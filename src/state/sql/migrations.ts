/** The tables of Postgres that all replicas share: brought up to date by one process at a time, before their first use. */

import type { Sql, SqlReader } from '../engines/engine.ts';

/** Resolves when the tables are there. What it rejects with is tried again with the next call. */
export type Prepared = () => Promise<void>;

const MIGRATION_MS = 10_000;

/**
 * Tables are in the schema `hopgate`. A migration that was published is never changed, and adds only what the version
 * before it can live with: two versions may run at once.
 * @param room whose tables these are; each room counts its own versions
 * @param migrations SQL, the first one for an empty database; each statement begins a line with CREATE, ALTER, DROP,
 *   INSERT, UPDATE or DELETE, and no other line begins with one of them
 */
export function prepared(database: Sql, room: string, migrations: readonly string[]): Prepared {
  let ready: Promise<void> | undefined;
  return () => {
    ready ??= migrate(database, room, migrations).catch((thrown: unknown) => {
      ready = undefined;
      throw thrown;
    });
    return ready;
  };
}

/** Tables of a newer version are used as they are. */
function migrate(database: Sql, room: string, migrations: readonly string[]): Promise<void> {
  return database.transaction(async (inside: SqlReader) => {
    await inside.query('SELECT pg_advisory_xact_lock(7496230)', []);
    const [there] = await inside.query<{ schema: string | null }>(
      "SELECT to_regnamespace('hopgate')::text AS schema",
      [],
    );
    if (there!.schema === null) await inside.query('CREATE SCHEMA hopgate', []);
    await inside.query(
      'CREATE TABLE IF NOT EXISTS hopgate.versions (room text PRIMARY KEY, version int NOT NULL)',
      [],
    );
    const [row] = await inside.query<{ version: number }>(
      'SELECT version FROM hopgate.versions WHERE room = $1',
      [room],
    );
    const from = row?.version ?? 0;
    if (from >= migrations.length) return;
    for (const sql of migrations.slice(from)) {
      for (const statement of statementsOf(sql)) await inside.query(statement, []);
    }
    await inside.query(
      'INSERT INTO hopgate.versions VALUES ($1, $2) ON CONFLICT (room) DO UPDATE SET version = $2',
      [room, migrations.length],
    );
  }, MIGRATION_MS);
}

/** A query with values takes one statement at a time. */
const statementsOf = (sql: string): readonly string[] =>
  sql
    .split(/\n(?=(?:CREATE|ALTER|DROP|INSERT|UPDATE|DELETE) )/)
    .filter((statement) => statement.trim() !== '');

/**
 * In SQL: has the database been restored from an older backup, or is it another one? Then numbers are given a second
 * time, and who has followed further must begin anew.
 * @param sequence its name
 * @param position an expression: the last number that was followed
 */
export const isBehind = (sequence: string, position: string): string =>
  `(SELECT CASE WHEN is_called THEN last_value ELSE 0 END < ${position} FROM ${sequence})`;
