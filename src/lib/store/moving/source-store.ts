/** SQLite files of state that are only looked at: nothing is made, migrated or set aside. */

import { Database } from 'bun:sqlite';
import { existsSync } from 'node:fs';
import { openToRead } from '../versioned-store.ts';

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
    db = openUnchanged(path);
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
    const why = thrown instanceof Error ? thrown.message : String(thrown);
    throw new Error(`${path} cannot be read: ${why}`, { cause: thrown });
  }
}

/** Closing a connection that may write would move a log that was left behind into the file. */
function openUnchanged(path: string): Database {
  if (!existsSync(`${path}-wal`)) return openToRead(path, BUSY_MS);
  let db: Database | undefined;
  try {
    db = new Database(path, { readonly: true, strict: true });
    db.run(`PRAGMA busy_timeout = ${BUSY_MS}`);
    // The first query is what needs the other files.
    db.query('SELECT 1 FROM sqlite_master LIMIT 1').get();
    return db;
  } catch (thrown) {
    db?.close();
    if (/CANTOPEN|READONLY/.test(String((thrown as { code?: unknown }).code))) {
      return openToRead(path, BUSY_MS);
    }
    throw thrown;
  }
}
