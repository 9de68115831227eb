/** Responses that wait in a file of this machine while the database is away: the same tables, and the oldest go first. */

import { existsSync } from 'node:fs';
import { openSqlite } from '../../state/sql/sqlite.ts';
import { takeOldSpool } from './old-spool-store.ts';
import { ResponseTables } from './response-tables.ts';
import { RESPONSES } from './schema.ts';
import type { ResponseRow, RowKey } from './stored-response.ts';

export interface WaitingOptions {
  /** Undefined: nothing waits in a file. */
  readonly path: string | undefined;
  /** The file of an older version, which is taken over. */
  readonly oldPath: string | undefined;
  readonly onProblem: (what: string, cause: unknown) => void;
}

/** Of one batch. */
const MAX_ROWS = 64;
const MAX_BYTES = 2_000_000;

/** No method rejects: a file that cannot be used is a problem that is told, and is as if it were empty. */
export class WaitingResponses {
  readonly #options: WaitingOptions;
  #file: ResponseTables | undefined;

  constructor(options: WaitingOptions) {
    this.#options = options;
  }

  /** An earlier process has left something. */
  get isThere(): boolean {
    const { path = '', oldPath = '' } = this.#options;
    return existsSync(path) || existsSync(oldPath);
  }

  /** @returns whether it can be used */
  open(): boolean {
    const { path, onProblem } = this.#options;
    if (this.#file !== undefined || path === undefined) return this.#file !== undefined;
    try {
      this.#file = new ResponseTables(openSqlite(RESPONSES, { path, shrinks: true }));
    } catch (thrown) {
      onProblem(`cannot open ${path}`, thrown);
    }
    return this.#file !== undefined;
  }

  /** Undefined where there is no file, or it fails. */
  async use<T>(work: (file: ResponseTables) => Promise<T>): Promise<T | undefined> {
    if (this.#file === undefined) return undefined;
    try {
      return await work(this.#file);
    } catch (thrown) {
      this.#options.onProblem(
        'cannot use the file of responses that wait for the database',
        thrown,
      );
      return undefined;
    }
  }

  /** The rows that have waited longest, some of them. */
  async next(): Promise<readonly ResponseRow[]> {
    const { oldPath = '' } = this.#options;
    if (existsSync(oldPath)) await this.use((file) => takeOldSpool(oldPath, file));
    const rows = await this.use(async (file) =>
      file.rows(upTo(MAX_BYTES, await file.oldest(MAX_ROWS))),
    );
    return rows ?? [];
  }

  /** They are in the database. False: the file fails. */
  async done(rows: readonly RowKey[]): Promise<boolean> {
    const isDone = await this.use(async (file) => {
      await file.forget(rows);
      return true;
    });
    return isDone === true;
  }

  close(): void {
    this.#file?.close();
  }
}

/** The first ones, of so many bytes together; at least one. */
function upTo<Item extends { readonly bytes: number }>(
  most: number,
  items: readonly Item[],
): readonly Item[] {
  let bytes = 0;
  const end = items.findIndex((item, at) => {
    bytes += item.bytes;
    return at > 0 && bytes > most;
  });
  return end < 0 ? items : items.slice(0, end);
}
