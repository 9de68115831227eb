/** The changes of the response store that are not in its file yet, with bounds on memory. */

import {
  itemIdsOf,
  type PackedRow,
  pack,
  type ResponseLimits,
  type StoredResponse,
} from './stored-response.ts';

/** A queued change. `row` becomes `packed` when it is written, off the request's path. */
export interface PendingWrite {
  readonly owner: string;
  readonly id: string;
  /** Neither `row` nor `packed`: the response is deleted. */
  row?: StoredResponse;
  packed?: PackedRow;
  readonly itemIds: readonly string[];
}

export const keyOf = (owner: string, id: string) => `${owner}\n${id}`;

export class PendingWrites {
  readonly #writes = new Map<string, PendingWrite>();
  /** The id of the response that contains an item, by the item's key. */
  readonly #responseOfItem = new Map<string, string>();
  readonly #limits: Pick<ResponseLimits, 'memoryRows' | 'memoryBytes'>;
  /** The size of the packed rows. */
  #bytes = 0;

  constructor(limits: Pick<ResponseLimits, 'memoryRows' | 'memoryBytes'>) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#writes.size;
  }

  /** In the order in which they were queued. */
  values(): IterableIterator<PendingWrite> {
    return this.#writes.values();
  }

  get(owner: string, id: string): PendingWrite | undefined {
    return this.#writes.get(keyOf(owner, id));
  }

  /** The id of the queued response that has this item in its output. */
  responseOf(owner: string, item: string): string | undefined {
    return this.#responseOfItem.get(keyOf(owner, item));
  }

  /** Queues a row, or without one a deletion. It replaces a queued change of the same response. */
  add(owner: string, id: string, row?: StoredResponse): void {
    const old = this.get(owner, id);
    if (old) this.remove(old);
    const itemIds = row === undefined ? [] : itemIdsOf(row);
    this.#writes.set(keyOf(owner, id), { owner, id, row, itemIds });
    for (const item of itemIds) this.#responseOfItem.set(keyOf(owner, item), id);
  }

  /** Removes a change, unless another one has replaced it. */
  remove(write: PendingWrite): void {
    const { owner, id, packed, itemIds } = write;
    if (this.get(owner, id) !== write) return;
    this.#writes.delete(keyOf(owner, id));
    this.#bytes -= packed?.bytes ?? 0;
    for (const item of itemIds) {
      if (this.responseOf(owner, item) === id) this.#responseOfItem.delete(keyOf(owner, item));
    }
  }

  /** Turns the row of a change into text. */
  pack(write: PendingWrite): void {
    if (!write.row) return;
    write.packed = pack(write.row);
    write.row = undefined;
    this.#bytes += write.packed.bytes;
  }

  /** Drops the oldest changes beyond the limits; the number of dropped changes. */
  trim(): number {
    let dropped = 0;
    for (const write of this.#writes.values()) {
      if (this.#writes.size <= this.#limits.memoryRows && this.#bytes <= this.#limits.memoryBytes) {
        break;
      }
      this.remove(write);
      dropped++;
    }
    return dropped;
  }
}
