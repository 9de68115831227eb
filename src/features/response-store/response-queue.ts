/** Responses that are not in the database yet, with bounds on memory; found by their ids and by those of their items. */

import { keyOf, type QueuedResponse, type ResponseLimits, type RowKey } from './stored-response.ts';

// Of one transaction, which takes some milliseconds.
const BATCH = 64;
const BATCH_BYTES = 2_000_000;
/** What a row takes beside its texts. */
const OVERHEAD = 500;

export class ResponseQueue {
  readonly #limits: Pick<ResponseLimits, 'memoryRows' | 'memoryBytes'>;
  /** In the order in which they came. */
  readonly #rows = new Map<string, QueuedResponse>();
  /** By the key of an item, the key of its row. */
  readonly #items = new Map<string, string>();

  constructor(limits: Pick<ResponseLimits, 'memoryRows' | 'memoryBytes'>) {
    this.#limits = limits;
  }

  get isFull(): boolean {
    return this.size > this.#limits.memoryRows;
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
    const batch: QueuedResponse[] = [];
    let bytes = 0;
    for (const queued of this.#rows.values()) {
      if (batch.length === BATCH || bytes >= BATCH_BYTES) break;
      bytes += queued.row.bytes;
      batch.push(queued);
    }
    return batch;
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
    const { memoryRows, memoryBytes } = this.#limits;
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
