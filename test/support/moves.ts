/** For tests of moves: a database and folders for each test, what lies in them, and a database that is lost in the middle of a copy. */

import { afterAll, afterEach, beforeAll } from 'bun:test';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Sql } from '../../src/state/engines/engine.ts';
import type { PostgresDatabase } from '../../src/state/engines/postgres.ts';
import type { StateMove } from '../../src/state/move/paged-move.ts';
import { type DatabaseServer, newDatabase, startPostgres } from './engines/database-servers.ts';

const LONG = 20_000;

export interface MoveSetup {
  /** The server of all tests; there once they run. */
  readonly server: DatabaseServer;
  /** A database without tables, closed after the test. */
  emptyDatabase(): Promise<PostgresDatabase>;
  /** The folder of a machine, removed after the test. */
  newFolder(): string;
  /** Does this after the test, the last first. */
  afterTest(work: () => unknown): void;
}

/** A Postgres for the tests of a `describe`, in which this is called. */
export function moveSetup(): MoveSetup {
  let server: DatabaseServer;
  const cleanups: (() => unknown)[] = [];
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterEach(async () => {
    for (const one of cleanups.splice(0).reverse()) await one();
  });
  afterAll(() => server.stop());
  return {
    get server() {
      return server;
    },
    async emptyDatabase() {
      const { database } = await newDatabase(server);
      cleanups.push(() => database.close());
      return database;
    },
    newFolder() {
      const folder = mkdtempSync(join(tmpdir(), 'hopgate-move-'));
      cleanups.push(() => rmSync(folder, { recursive: true, force: true }));
      return folder;
    },
    afterTest(work) {
      cleanups.push(work);
    },
  };
}

/** What a look at both sides counts, without the sentences for people. */
export async function countsOf(move: Pick<StateMove, 'compare'>) {
  const { items, missing, conflicts } = await move.compare();
  return { items, missing, conflicts };
}

/** Every file of a folder with a hash of its bytes. What processes share while a database is open is no content. */
export const filesIn = (folder: string): Readonly<Record<string, string>> =>
  Object.fromEntries(
    readdirSync(folder, { recursive: true, encoding: 'utf8', withFileTypes: true })
      .filter((entry) => entry.isFile() && !entry.name.endsWith('-shm'))
      .map((entry) => join(entry.parentPath, entry.name))
      .sort()
      .map((path) => [path, Bun.hash(readFileSync(path)).toString(16)]),
  );

/** All rows of all tables, as text and with bytes as they are. */
export async function dumpOf(database: Sql): Promise<string> {
  const tables = await database.query<{ name: string }>(
    "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'hopgate' ORDER BY name",
    [],
    LONG,
  );
  const parts: string[] = [];
  for (const { name } of tables) {
    parts.push(name);
    for (const row of await database.query<object>(`SELECT * FROM hopgate.${name}`, [], LONG)) {
      for (const value of Object.values(row)) {
        parts.push(
          value instanceof Uint8Array ? Buffer.from(value).toString() : JSON.stringify(value),
        );
      }
    }
  }
  return parts.join('\n');
}

/** The same database, but something else happens before its n-th transaction from now on. */
export function beforeNth(inner: Sql, transaction: number, work: () => Promise<unknown>): Sql {
  let count = 0;
  return sameBut(inner, async (...given) => {
    if (++count === transaction) await work();
    return inner.transaction(...given);
  });
}

/** The same database, but its n-th transaction from now on fails: before it ends, or after, when its answer is lost. */
export function cutAt(inner: Sql, transaction: number, when: 'before' | 'after'): Sql {
  let count = 0;
  return sameBut(inner, async (work, deadlineMs) => {
    const isCut = ++count === transaction;
    const answer = await inner.transaction(async (inside) => {
      const result = await work(inside);
      if (isCut && when === 'before') throw new Error('cut');
      return result;
    }, deadlineMs);
    if (isCut) throw new Error('cut');
    return answer;
  });
}

function sameBut(inner: Sql, transaction: Sql['transaction']): Sql {
  return {
    get state() {
      return inner.state;
    },
    open: () => inner.open(),
    examine: () => inner.examine(),
    close: () => inner.close(),
    query: (...given) => inner.query(...given),
    transaction,
  };
}
