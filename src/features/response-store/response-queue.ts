/** Responses that are not in the database yet: in memory, within bounds, and in a file while the database is away. */

import { existsSync, rmSync } from 'node:fs';
import { batchesOf } from '../../lib/loop/batches.ts';
import { openSource, openSqlite } from '../../state/sql/sqlite.ts';
import { ResponseTables } from './response-tables.ts';
import { RESPONSES } from './schema.ts';
import {
  keyOf,
  type QueuedResponse,
  type ResponseLimits,
  type ResponseRow,
  type RowKey,
  rowOf,
} from './stored-response.ts';

// Of one transaction, which takes some milliseconds.
const BATCH = 64;
const BATCH_BYTES = 2_000_000;
/** What a row takes beside its texts. */
const OVERHEAD = 500;

export class ResponseQueue {
  /** In the order in which they came. */
  readonly #rows = new Map<string, QueuedResponse>();
  /** By the key of an item, the key of its row. */
  readonly #items = new Map<string, string>();

  constructor(private readonly limits: Pick<ResponseLimits, 'memoryRows' | 'memoryBytes'>) {}

  get isFull(): boolean {
    return this.size > this.limits.memoryRows;
  }

  get size(): number {
    return this.#rows.size;
  }

  /** It replaces the one of the same id. */
  add(row: QueuedResponse): void {
    this.remove(row);
    this.#rows.set(keyOf(row), row);
    for (const id of row.itemIds) this.#items.set(keyOf({ owner: row.owner, id }), keyOf(row));
  }

  get(key: RowKey): QueuedResponse | undefined {
    return this.#rows.get(keyOf(key));
  }

  withItem(owner: string, item: string): QueuedResponse | undefined {
    const key = this.#items.get(keyOf({ owner, id: item }));
    return key === undefined ? undefined : this.#rows.get(key);
  }

  /** The oldest ones, as rows. */
  batch(): readonly QueuedResponse[] {
    const [oldest = []] = batchesOf(
      this.#rows.values(),
      BATCH,
      BATCH_BYTES,
      ({ row }) => row.bytes,
    );
    return oldest;
  }

  /** Those that are written, unless they were replaced meanwhile. */
  done(batch: readonly QueuedResponse[]): void {
    for (const queued of batch) if (this.get(queued) === queued) this.remove(queued);
  }

  remove(key: RowKey): void {
    const row = this.get(key);
    if (row === undefined) return;
    this.#rows.delete(keyOf(row));
    for (const id of row.itemIds) {
      const item = keyOf({ owner: row.owner, id });
      if (this.#items.get(item) === keyOf(row)) this.#items.delete(item);
    }
  }

  /** What was begun until then with this space. */
  erase(space: string, at: number): void {
    for (const row of this.#rows.values()) {
      if (row.space === space && row.began <= at) this.remove(row);
    }
  }

  /** Packs everything, so that its size is known. */
  pack(): void {
    for (const queued of this.#rows.values()) void queued.row;
  }

  /** Drops the oldest beyond the limits, as far as sizes are known; the last one stays. @returns how many */
  trim(): number {
    const { memoryRows, memoryBytes } = this.limits;
    let bytes = 0;
    for (const queued of this.#rows.values()) bytes += OVERHEAD + queued.bytes;
    let dropped = 0;
    for (const queued of this.#rows.values()) {
      if ((this.size <= memoryRows && bytes <= memoryBytes) || this.size === 1) break;
      bytes -= OVERHEAD + queued.bytes;
      this.remove(queued);
      dropped++;
    }
    return dropped;
  }
}

export interface WaitingOptions {
  /** Undefined: nothing waits in a file. */
  readonly path: string | undefined;
  /** The file of an older version, which is taken over. */
  readonly oldPath: string | undefined;
  readonly onProblem: (what: string, cause: unknown) => void;
}

/** Treats a file that cannot be used as empty, and reports it: no method rejects. */
export class WaitingResponses {
  #file: ResponseTables | undefined;

  constructor(private readonly options: WaitingOptions) {}

  /** Whether an earlier process left a file. */
  get isThere(): boolean {
    const { path = '', oldPath = '' } = this.options;
    return existsSync(path) || existsSync(oldPath);
  }

  /** @returns whether it can be used */
  open(): boolean {
    const { path, onProblem } = this.options;
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
      this.options.onProblem('cannot use the file of responses that wait for the database', thrown);
      return undefined;
    }
  }

  /** A batch of the oldest rows. */
  async next(): Promise<readonly ResponseRow[]> {
    const { oldPath = '' } = this.options;
    if (existsSync(oldPath)) await this.use((file) => takeOldSpool(oldPath, file));
    const rows = await this.use(async (file) => {
      const [oldest = []] = batchesOf(
        await file.oldest(BATCH),
        BATCH,
        BATCH_BYTES,
        (one) => one.bytes,
      );
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
