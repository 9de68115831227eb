/** SQLite files of state that are only looked at: nothing is made, migrated or set aside. */

import { existsSync } from 'node:fs';
import { messageOf } from '../../lib/text/thrown.ts';
import { openUnchanged } from '../versioned-store.ts';

/** Another process may write meanwhile. */
const BUSY_MS = 5000;

type Database = ReturnType<typeof openUnchanged>;

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
