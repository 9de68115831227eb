/** Remembers what a move wrote into a file of state, in the file itself: what is removed afterwards does not come with the next move. */

import type { Database } from 'bun:sqlite';

// Beside the schema of the file and its versions: nobody else knows the table.
const TABLE = `
CREATE TABLE IF NOT EXISTS moved_items (
  owner TEXT NOT NULL, id TEXT NOT NULL, form TEXT NOT NULL, PRIMARY KEY (owner, id)
) WITHOUT ROWID`;

export interface MovedInFile {
  /** The form in which the item was written; undefined: no move wrote it. */
  form(owner: string, id: string): string | undefined;
  /** Pages of all items, in the order of owners and ids. */
  pages(): Iterable<readonly { readonly owner: string; readonly id: string }[]>;
  /** In the transaction that writes the item. */
  note(owner: string, id: string, form: string): void;
}

const PAGE = 500;

/** @param writes makes the table where it is missing */
export function movedInFile(db: Database, writes: boolean): MovedInFile {
  if (writes) db.run(TABLE);
  const isThere =
    writes || db.query("SELECT 1 FROM sqlite_master WHERE name = 'moved_items'").get() !== null;
  const find = isThere
    ? db.query<{ form: string }, [string, string]>(
        'SELECT form FROM moved_items WHERE owner = ? AND id = ?',
      )
    : undefined;
  return {
    form: (owner, id) => find?.get(owner, id)?.form,
    *pages() {
      if (!isThere) return;
      const query = db.query<{ owner: string; id: string }, [string, string]>(
        `SELECT owner, id FROM moved_items WHERE (owner, id) > (?, ?) ORDER BY owner, id LIMIT ${PAGE}`,
      );
      for (let owner = '', id = ''; ; ) {
        const page = query.all(owner, id);
        if (page.length > 0) yield page;
        if (page.length < PAGE) return;
        ({ owner, id } = page.at(-1)!);
      }
    },
    note(owner, id, form) {
      db.query('INSERT OR REPLACE INTO moved_items VALUES (?, ?, ?)').run(owner, id, form);
    },
  };
}
