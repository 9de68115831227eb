/** Opens the tables of the memory: in a file of this machine, when it is first needed, or in the Postgres of all replicas. */

import { EngineAway, type Sql } from '../../../state/engines/engine.ts';
import { prepared } from '../../../state/sql/migrations.ts';
import { openPostgres } from '../../../state/sql/postgres.ts';
import type { SqlDatabase } from '../../../state/sql/sql.ts';
import { openSqlite } from '../../../state/sql/sqlite.ts';
import type { TextSeal } from '../../../state/text-seal.ts';
import { fileAt, setAside } from '../../../state/versioned-store.ts';
import { MEMORY_SCHEMA } from './schema.ts';
import { UNSEALED } from './sealed-events.ts';

export interface MemoryTables {
  readonly isFile: boolean;
  /** @throws SQLiteError, or an Error where a newer version made the file */
  open(): { readonly db: SqlDatabase; readonly seal: TextSeal };
  /** A damaged file, which is closed, is moved away. */
  setAside(cause: unknown): void;
}

/** Milliseconds in which the tables of a database must be ready. */
const PREPARE_MS = 2000;

/** @param path made 0600, its directory 0700 */
export function inFile(path: string): MemoryTables {
  let file = 0;
  return {
    isFile: true,
    open() {
      const db = openSqlite(MEMORY_SCHEMA, { path, shrinks: true });
      file = fileAt(path);
      return { db, seal: UNSEALED };
    },
    setAside: (cause) => setAside(path, file, cause),
  };
}

export function inDatabase(database: Sql, seal: TextSeal): MemoryTables {
  const { room, postgres } = MEMORY_SCHEMA;
  const prepare = prepared(database, room, postgres);
  const db = openPostgres(database, MEMORY_SCHEMA, () => inTime(prepare()));
  return { isFile: false, open: () => ({ db, seal }), setAside() {} };
}

/** Waits for the work for a while; work that takes longer serves the next call. @throws EngineAway */
async function inTime(work: Promise<void>): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    const away = () => reject(new EngineAway('database', `no tables within ${PREPARE_MS} ms`));
    timer = setTimeout(away, PREPARE_MS);
  });
  try {
    await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
