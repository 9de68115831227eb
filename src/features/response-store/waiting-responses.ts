/** Responses that wait in a file of this machine while the database is away. The oldest are written first. */

import { existsSync, rmSync } from 'node:fs';
import { batchesOf } from '../../state/move/paged-move.ts';
import { openSource, openSqlite } from '../../state/sql/sqlite.ts';
import { ResponseTables } from './response-tables.ts';
import { RESPONSES } from './schema.ts';
import { type ResponseRow, type RowKey, rowOf } from './stored-response.ts';

export interface WaitingOptions {
  /** Undefined: nothing waits in a file. */
  readonly path: string | undefined;
  /** The file of an older version, which is taken over. */
  readonly oldPath: string | undefined;
  readonly onProblem: (what: string, cause: unknown) => void;
}

/** Limits of one batch. */
const MAX_ROWS = 64;
const MAX_BYTES = 2_000_000;

/** Treats a file that cannot be used as empty, and reports it: no method rejects. */
export class WaitingResponses {
  readonly #options: WaitingOptions;
  #file: ResponseTables | undefined;

  constructor(options: WaitingOptions) {
    this.#options = options;
  }

  /** Whether an earlier process left a file. */
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

  /** @returns undefined where there is no file, or it fails */
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

  /** A batch of the oldest rows. */
  async next(): Promise<readonly ResponseRow[]> {
    const { oldPath = '' } = this.#options;
    if (existsSync(oldPath)) await this.use((file) => takeOldSpool(oldPath, file));
    const rows = await this.use(async (file) => {
      const [oldest = []] = batchesOf(await file.oldest(MAX_ROWS), MAX_ROWS, MAX_BYTES);
      return file.rows(oldest);
    });
    return rows ?? [];
  }

  /** Removes rows that are in the database now. False: the file fails. */
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

const BATCH = 64;

/** @throws Error where a file cannot be used: the old one stays */
async function takeOldSpool(path: string, tables: ResponseTables): Promise<void> {
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
