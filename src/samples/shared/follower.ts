/** Follows the shared list: what other replicas recorded comes into this folder, what was removed leaves it. */

import { isObject, tryParse } from '../../lib/json/json.ts';
import type { TextSeal } from '../../state/text-seal.ts';
import type { SampleMeta, SampleRow } from '../sample.ts';
import { isUsable, type LocalFolder } from './local-folder.ts';
import type { SharedRow, SharedTable } from './shared-table.ts';
import { metaPlace } from './uploader.ts';

export interface FollowerOptions {
  readonly folder: LocalFolder;
  readonly table: SharedTable;
  readonly seal: TextSeal;
  readonly onRow: (row: SampleRow) => void;
  readonly onRemoved: (ids: readonly string[]) => void;
  readonly onProblem: (what: string, cause: unknown) => void;
}

export class Follower {
  readonly #options: FollowerOptions;
  /** It was asked whether this folder was away for too long. */
  #checked = false;
  /** The list is followed from its beginning. */
  #startsOver = false;

  constructor(options: FollowerOptions) {
    this.#options = options;
  }

  /** Takes in everything that changed by now. @throws EngineAway */
  async run(): Promise<void> {
    const { folder, table } = this.#options;
    const { store } = folder;
    await this.#check();
    for (;;) {
      const rows = await table.changes(store.position);
      if (rows.length === 0) break;
      const gone: string[] = [];
      for (const row of rows) {
        if (row.state === 'gone') gone.push(row.id);
        else if (row.meta !== null) this.#take(row, row.meta);
      }
      if (gone.length > 0) this.#options.onRemoved(await folder.remove(gone));
      store.position = rows.at(-1)!.seq;
    }
    if (!this.#startsOver) return;
    for (let lost = store.unseen(); lost.length > 0; lost = store.unseen()) {
      this.#options.onRemoved(await folder.remove(lost.map(({ id }) => id)));
    }
    this.#startsOver = false;
  }

  /** The list forgets removed samples after a while: who was away for longer compares everything. */
  async #check(): Promise<void> {
    if (this.#checked) return;
    const { store } = this.#options.folder;
    if (store.position > 0 && store.position < (await this.#options.table.forgotten())) {
      store.startOver();
      this.#startsOver = true;
    }
    this.#checked = true;
  }

  /** To be called after the list could not be followed for a while. */
  recheck(): void {
    this.#checked = false;
  }

  #take({ id, replica }: SharedRow, sealed: Uint8Array): void {
    const { folder, seal, onRow, onProblem } = this.#options;
    const text = seal.open(sealed, metaPlace(id));
    const value = text && tryParse(Buffer.from(text).toString('utf8'));
    const meta = isObject(value) ? (value as unknown as SampleMeta) : undefined;
    if (meta?.id !== id || !isUsable(meta)) {
      onProblem(
        'samples of another replica cannot be read: is its secret in engines.seal?',
        `replica ${replica}`,
      );
      return;
    }
    const row = folder.take(meta);
    if (row !== undefined) onRow(row);
  }
}
