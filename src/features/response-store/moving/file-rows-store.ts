/** The file of responses as one side of a move: its rows in the order in which they were written, and how a row stands in it. */

import { type MovedInFile, movedInFile } from '../../../state/moving/moved-store.ts';
import type { Standing } from '../../../state/moving/paged-move.ts';
import { openSource, type SourceFile } from '../../../state/moving/source-store.ts';
import { isUsable } from '../shared/shared-row.ts';
import { VERSION } from '../sqlite-store.ts';
import { type StoredResponse, unpack } from '../stored-response.ts';

/** What a move asks of a row. */
export interface RowKey {
  readonly owner: string;
  readonly id: string;
  readonly space: string | null;
  /** When its request came, in milliseconds since 1970 by the clock of this machine: never later than it did. */
  readonly began: number;
  /** UTF-16 units of its texts. */
  readonly bytes: number;
}

export interface FileRow {
  readonly response: StoredResponse;
  /** The number of its conversation in this file. */
  readonly thread: number;
  /** When that was used last, in milliseconds since 1970. */
  readonly used: number;
}

const PAGE = 500;
/** The time of a response is that of its answer: its request came at most so much earlier. */
const MAX_MS = 3_600_000;

interface ListedRow extends Omit<RowKey, 'began'> {
  readonly place: number;
  readonly previous: string | null;
  /** Seconds since 1970. */
  readonly created: number;
}

type StoredRow = Parameters<typeof unpack>[0] & Pick<FileRow, 'thread' | 'used'>;

export class FileRows {
  readonly #file: SourceFile;
  readonly #moved: MovedInFile;
  unusable = 0;

  private constructor(file: SourceFile) {
    this.#file = file;
    this.#moved = movedInFile(file.db, false);
  }

  /** Undefined where there is no file. @throws Error with a message for people */
  static open(path: string): FileRows | undefined {
    const file = openSource(path, VERSION);
    return file && new FileRows(file);
  }

  count(): number {
    return this.#file.db.query<{ n: number }, []>('SELECT count(*) AS n FROM responses').get()!.n;
  }

  /** Rows whose ids the database cannot hold are left out, and counted. */
  *pages(): Generator<readonly RowKey[]> {
    const { db, version } = this.#file;
    const space = version > 1 ? 'space' : 'NULL AS space';
    this.unusable = 0;
    const query = db.query<ListedRow, [number]>(
      `SELECT rowid AS place, owner, id, previous, ${space}, created, bytes FROM responses
         WHERE rowid > ? ORDER BY rowid LIMIT ${PAGE}`,
    );
    for (let last = Number.MIN_SAFE_INTEGER; ; ) {
      const rows = query.all(last);
      const page = rows.filter(({ id, previous }) => isUsable(id) && isUsable(previous ?? ''));
      this.unusable += rows.length - page.length;
      if (page.length > 0) {
        yield page.map(({ created, ...row }) => ({ ...row, began: created * 1000 - MAX_MS }));
      }
      if (rows.length < PAGE) return;
      last = rows.at(-1)!.place;
    }
  }

  /** Undefined: it was removed meanwhile. */
  read({ owner, id }: RowKey): FileRow | undefined {
    const { db, version } = this.#file;
    const space = version > 1 ? 'space' : 'NULL AS space';
    const keeper = version > 2 ? 'keeper' : 'NULL AS keeper';
    const row = db
      .query<StoredRow, [string, string]>(
        `SELECT r.id, owner, created, previous, model, ${space}, ${keeper}, input, output, response, thread, used
           FROM responses r JOIN threads t ON t.id = r.thread WHERE owner = ? AND r.id = ?`,
      )
      .get(owner, id);
    return row === null ? undefined : { response: unpack(row), thread: row.thread, used: row.used };
  }

  standing({ owner, id, space, began }: RowKey): Standing {
    const { db, version } = this.#file;
    if (this.has(owner, id)) return 'there';
    if (this.#moved.form(owner, id) !== undefined) return 'removed';
    if (space === null || version < 3) return 'missing';
    const erased = db
      .query<{ at: number }, [string]>('SELECT at FROM erasures WHERE space = ?')
      .get(space);
    return erased !== null && erased.at >= began ? 'erased' : 'missing';
  }

  has(owner: string, id: string): boolean {
    const query = this.#file.db.query<unknown, [string, string]>(
      'SELECT 1 FROM responses WHERE owner = ? AND id = ?',
    );
    return query.get(owner, id) !== null;
  }

  /** What a move wrote into the file and is not there any more, some at a time. */
  *removed(): Generator<readonly Pick<RowKey, 'owner' | 'id'>[]> {
    for (const page of this.#moved.pages()) {
      yield page.filter(({ owner, id }) => !this.has(owner, id));
    }
  }

  close(): void {
    this.#file.db.close();
  }
}
