/** A list in the order of arrival whose entries link each other, for what every request adds and soon removes. */

export interface Linked<T> {
  before: T | undefined;
  next: T | undefined;
}

/**
 * Not a `Set`: when a `Set` is rehashed, its old table, by then in the old generation, keeps its entries alive until a
 * full garbage collection (decision 21). An entry is in one list at a time.
 */
export class LinkedList<T extends Linked<T>> {
  first: T | undefined;
  #last: T | undefined;
  size = 0;

  /** Oldest first. The one that is given may be removed meanwhile, and no other. */
  *all(): Generator<T, void, void> {
    for (let entry = this.first; entry !== undefined; ) {
      const { next } = entry;
      yield entry;
      entry = next;
    }
  }

  add(entry: T): void {
    entry.before = this.#last;
    if (this.#last === undefined) this.first = entry;
    else this.#last.next = entry;
    this.#last = entry;
    this.size++;
  }

  /** The entry must be in this list. */
  remove(entry: T): void {
    const { before, next } = entry;
    if (before === undefined) this.first = next;
    else before.next = next;
    if (next === undefined) this.#last = before;
    else next.before = before;
    entry.before = undefined;
    entry.next = undefined;
    this.size--;
  }
}
