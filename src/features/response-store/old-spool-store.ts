/** The file in which a version before had what waited for the database: its rows are taken over, and it goes. */

import { rmSync } from 'node:fs';
import { openSource } from '../../state/sql/sqlite-source.ts';
import type { ResponseTables } from './response-tables.ts';
import { rowOf } from './stored-response.ts';

const BATCH = 64;

/** @throws Error where a file cannot be used: the old one stays */
export async function takeOldSpool(path: string, tables: ResponseTables): Promise<void> {
  const old = openSource(path, 1);
  if (old !== undefined) {
    try {
      const query = old.db.query<{ seq: number; row: string }, [number]>(
        `SELECT seq, row FROM rows WHERE seq > ? ORDER BY seq LIMIT ${BATCH}`,
      );
      for (let last = 0; ; ) {
        const page = query.all(last);
        if (page.length === 0) break;
        await tables.write(
          page.flatMap(({ row }) => rowOf(row) ?? []),
          [],
        );
        last = page.at(-1)!.seq;
      }
    } finally {
      old.db.close();
    }
  }
  for (const end of ['', '-wal', '-shm']) rmSync(path + end, { force: true });
}
