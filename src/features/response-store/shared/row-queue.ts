/** Responses of this replica that are not in the database yet: in memory, and in a file while the database is away. */

import { existsSync } from 'node:fs';
import { keyOf } from '../pending-writes.ts';
import type { ResponseLimits } from '../stored-response.ts';
import { RowSpool, type SpooledRow } from './row-spool-store.ts';
import type { SharedRow } from './shared-row.ts';

export interface RowQueueOptions {
  /** Of the file; undefined: memory only. */
  readonly path: string | undefined;
  readonly limits: ResponseLimits;
  /** There was no room for so many. */
  readonly onDropped: (count: number) => void;
  readonly onProblem: (message: string, cause: unknown) => void;
}

/** Some rows to write; `done` removes them, unless they were replaced meanwhile. */
export interface RowBatch {
  readonly rows: readonly SharedRow[];
  done(): void;
}

const BATCH = 64;
const BATCH_BYTES = 2_000_000;
const OVERHEAD = 500;

const sizeOf = ({ items, response }: SharedRow): number =>
  OVERHEAD + items.length + response.length;

export class RowQueue {
  readonly #options: RowQueueOptions;
  /** In the order in which they came. */
  readonly #rows = new Map<string, SharedRow>();
  /** By the key of an item, the key of its row. */
  readonly #items = new Map<string, string>();
  #bytes = 0;
  #spool: RowSpool | undefined;
  #unusable = false;

  constructor(options: RowQueueOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#rows.size + (this.#spool?.size ?? 0);
  }

  /** Takes over what an earlier process could not write. */
  open(): void {
    const { path } = this.#options;
    if (path !== undefined && existsSync(path)) this.#opened();
  }

  add(row: SharedRow): void {
    const key = keyOf(row.owner, row.id);
    this.#drop(key);
    this.#rows.set(key, row);
    this.#bytes += sizeOf(row);
    for (const item of row.itemIds) this.#items.set(keyOf(row.owner, item), key);
    const { memoryRows, memoryBytes } = this.#options.limits;
    let dropped = 0;
    for (const oldest of this.#rows.keys()) {
      const fits = this.#rows.size <= memoryRows && this.#bytes <= memoryBytes;
      if (fits || oldest === key) break;
      this.#drop(oldest);
      dropped++;
    }
    if (dropped > 0) this.#options.onDropped(dropped);
  }

  get(owner: string, id: string): SharedRow | undefined {
    return this.#rows.get(keyOf(owner, id)) ?? this.#try((spool) => spool.get(owner, id));
  }

  withItem(owner: string, item: string): SharedRow | undefined {
    const key = this.#items.get(keyOf(owner, item));
    return key === undefined
      ? this.#try((spool) => spool.withItem(owner, item))
      : this.#rows.get(key);
  }

  /** The oldest ones; undefined: there are none. */
  batch(): RowBatch | undefined {
    const spooled = this.#try((spool) =>
      spool.size === 0 ? undefined : spool.first(BATCH, BATCH_BYTES),
    );
    if (spooled !== undefined) {
      const rows = spooled.flatMap(({ row }) => row ?? []);
      return { rows, done: () => this.#spoolDone(spooled) };
    }
    if (this.#rows.size === 0) return undefined;
    const rows: SharedRow[] = [];
    let bytes = 0;
    for (const row of this.#rows.values()) {
      if (rows.length === BATCH || bytes >= BATCH_BYTES) break;
      bytes += sizeOf(row);
      rows.push(row);
    }
    return {
      rows,
      done: () => {
        for (const row of rows) {
          const key = keyOf(row.owner, row.id);
          if (this.#rows.get(key) === row) this.#drop(key);
        }
      },
    };
  }

  /** Puts everything into the file: the database is away. Without a usable file it stays in memory. */
  spill(): void {
    if (this.#rows.size === 0 || this.#opened() === undefined) return;
    const rows = [...this.#rows.values()];
    const dropped = this.#try((spool) => spool.add(rows, this.#options.limits));
    if (dropped === undefined) return;
    for (const key of [...this.#rows.keys()]) this.#drop(key);
    if (dropped > 0) this.#options.onDropped(dropped);
  }

  remove(owner: string, id: string): void {
    this.#drop(keyOf(owner, id));
    this.#try((spool) => spool.remove(owner, id));
  }

  /** What was begun until then with this space. */
  erase(space: string, at: number): void {
    for (const [key, row] of this.#rows) {
      if (row.space === space && row.began <= at) this.#drop(key);
    }
    this.#try((spool) => spool.erase(space, at));
  }

  close(): void {
    this.spill();
    this.#try((spool) => spool.close());
    this.#spool = undefined;
    this.#unusable = true;
  }

  #drop(key: string): void {
    const row = this.#rows.get(key);
    if (row === undefined) return;
    this.#rows.delete(key);
    this.#bytes -= sizeOf(row);
    for (const item of row.itemIds) {
      const at = keyOf(row.owner, item);
      if (this.#items.get(at) === key) this.#items.delete(at);
    }
  }

  #spoolDone(rows: readonly SpooledRow[]): void {
    this.#try((spool) => spool.done(rows));
  }

  #opened(): RowSpool | undefined {
    const { path } = this.#options;
    if (this.#spool !== undefined || path === undefined || this.#unusable) return this.#spool;
    try {
      this.#spool = new RowSpool(path);
    } catch (thrown) {
      this.#fail(`cannot open ${path}`, thrown);
    }
    return this.#spool;
  }

  /** Undefined too where the file fails. */
  #try<T>(work: (spool: RowSpool) => T): T | undefined {
    if (this.#spool === undefined) return undefined;
    try {
      return work(this.#spool);
    } catch (thrown) {
      this.#fail('cannot use the file of responses that wait for the database', thrown);
      return undefined;
    }
  }

  #fail(what: string, thrown: unknown): void {
    this.#options.onProblem(what, thrown);
  }
}
