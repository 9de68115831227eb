/** For tests of moves: what lies in a folder and in a database, and a database that is lost in the middle of a copy. */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Sql } from '../../src/lib/store/engines.ts';

const LONG = 20_000;

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
