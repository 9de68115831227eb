/** Removes what is over the limits, and the objects of what was removed; one replica at a time does it for all. */

import { limitParallel } from '../../lib/loop/limit-parallel.ts';
import type { Objects } from '../../state/engines/engine.ts';
import type { Retention } from '../store/retention.ts';
import { removeBodies } from './bodies.ts';
import type { SharedObject, SharedTable } from './shared-table.ts';

export interface CleanerOptions {
  readonly table: SharedTable;
  readonly objects: Objects;
  readonly replica: string;
  readonly retention: () => Retention;
  /** Other replicas have something to follow. */
  readonly onChange: () => void;
}

const PARALLEL = 4;

export class Cleaner {
  readonly #options: CleanerOptions;

  constructor(options: CleanerOptions) {
    this.#options = options;
  }

  /** Nothing happens where another replica does it. @throws EngineAway */
  async run(): Promise<void> {
    const { table, replica, retention } = this.#options;
    const isMine = () => table.leads(replica);
    if (!(await isMine())) return;
    await this.#removeAll(() => table.erased(), isMine);
    await this.#removeAll(() => table.overdue(retention()), isMine);
    for (;;) {
      const left = await table.unchecked();
      if (left.length === 0 || !(await isMine())) break;
      await this.#clear(left);
    }
    await table.forget();
  }

  /**
   * Removes all samples of a memory space that began before it was erased; resolves when the object store lists nothing
   * of them. @throws EngineAway: then the cleaning replica goes on with it
   */
  async eraseSpace(hash: string): Promise<number> {
    return this.#removeAll(
      () => this.#options.table.erased(hash),
      async () => true,
    );
  }

  async #removeAll(
    page: () => Promise<readonly string[]>,
    goesOn: () => Promise<boolean>,
  ): Promise<number> {
    const { table, onChange } = this.#options;
    let count = 0;
    for (let ids = await page(); ids.length > 0; ids = await page()) {
      const removed = await table.remove(ids);
      count += removed.length;
      onChange();
      await this.#clear(removed);
      if (!(await goesOn())) break;
    }
    return count;
  }

  async #clear(removed: readonly SharedObject[]): Promise<void> {
    const { table, objects } = this.#options;
    const limited = limitParallel(PARALLEL);
    await Promise.all(removed.map((one) => limited(() => removeBodies(objects, one))));
    await table.checked(removed.map(({ id }) => id));
  }
}
