/** Keeps a recorder's index and its limits: what is old or too much goes, a few milliseconds at a time. */

import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { SampleMeta } from '../sample.ts';
import { eraseSpace, putUnerased } from './erase-space.ts';
import { onRenewedIndex, openIndex, type SampleIndexFile } from './index-store.ts';
import { rowOf } from './meta.ts';
import { type ReconcileOptions, reconcile } from './reconcile.ts';
import { isFull, overdue, type Retention, retain } from './retention.ts';
import { ENTRIES } from './sample-files.ts';
import { inSlices } from './steps.ts';

export interface UpkeepOptions {
  readonly root: string;
  /** The name of this process's recorder. */
  readonly own: string;
  readonly retention: () => Retention;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Ids of samples that are gone; `purged`: because of a limit. */
  readonly gone: (ids: readonly string[], purged: boolean) => void;
  readonly trouble: (what: string, cause: unknown) => void;
}

/** One step of retention. */
const STEP = { limit: 50, ms: 2 };
/** After trouble with a removal it is tried again after so many milliseconds. */
const RETRY_AFTER = 30_000;
/** Who has to wait for room looks again after so many milliseconds. */
const LOOK_AFTER = 5;
/** An erasure begins again where the index turns out to be damaged under it. */
const ERASE_TRIES = 3;

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

export class Upkeep {
  readonly #options: UpkeepOptions;
  readonly #leave: () => void;
  readonly #erasures = new Set<Promise<unknown>>();
  #file: SampleIndexFile | undefined;
  #tidying: Promise<void> | undefined;
  #matching: Promise<void> | undefined;
  /** Nothing is removed before then: it did not work. */
  #stuckUntil = 0;
  #closed = false;

  constructor(options: UpkeepOptions) {
    this.#options = options;
    this.#leave = onRenewedIndex(options.root, (cause) => {
      options.trouble('the index was damaged or removed; it is made anew from the files', cause);
      this.match();
    });
  }

  /** Puts finished exchanges into the index; what they make too much begins to go. */
  put(metas: readonly SampleMeta[]): void {
    const { root, gone, trouble } = this.#options;
    try {
      const rows = metas.map((meta) => rowOf(meta));
      gone(putUnerased(this.#index, root, rows), false);
      this.#tidy();
    } catch (error) {
      // The files are there; whoever opens the index next finds them.
      trouble('the index cannot be written', error);
    }
  }

  /** Resolves once there is no more than the limits allow and a tenth of that. */
  async room(): Promise<void> {
    const index = this.#file;
    if (index === undefined) return;
    try {
      while (!this.#closed && isFull(index, this.#options.retention())) {
        this.#tidy();
        if (this.#tidying === undefined) return;
        await Bun.sleep(LOOK_AFTER);
      }
    } catch {
      // What is wrong with the index is told where it is written.
    }
  }

  /** Brings the index in line with the files, in the background. */
  match(): void {
    const { root, own, trouble } = this.#options;
    if (this.#closed || this.#matching !== undefined || !existsSync(root)) return;
    this.#matching = this.#reconcile({ own, mark: true })
      .then(() => this.#tidy())
      .catch((error) => trouble('the index cannot be opened', error))
      .finally(() => {
        this.#matching = undefined;
      });
  }

  /** Removes all samples of a memory space; their ids. @throws what the file system throws */
  async eraseSpace(space: string): Promise<readonly string[]> {
    if (!existsSync(this.#options.root)) return [];
    const erasing = this.#eraseSpace(space);
    this.#erasures.add(erasing);
    try {
      return await erasing;
    } finally {
      this.#erasures.delete(erasing);
    }
  }

  /** Resolves when nothing is over a limit any more. */
  async idle(): Promise<void> {
    await this.#tidying;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#leave();
    await Promise.allSettled([this.#tidying, this.#matching, ...this.#erasures]);
    this.#file?.close();
    this.#file = undefined;
  }

  get #index(): SampleIndexFile {
    this.#file ??= openIndex(this.#options.root);
    return this.#file;
  }

  /** Begins to remove what has to go, unless that is under way. */
  #tidy(): void {
    const { root, retention, now, gone, trouble } = this.#options;
    if (this.#closed || this.#tidying !== undefined || now() < this.#stuckUntil) return;
    const index = this.#index;
    if (overdue(index, retention(), now(), 1).length === 0) return;
    const removeAll = async () => {
      for (;;) {
        await turn();
        if (this.#closed) return;
        const ids = retain(index, root, retention(), now(), STEP);
        if (ids.length === 0) return;
        gone(ids, true);
      }
    };
    this.#tidying = removeAll()
      .catch((error) => {
        this.#stuckUntil = now() + RETRY_AFTER;
        trouble('what is over the limits cannot be removed', error);
      })
      .finally(() => {
        this.#tidying = undefined;
      });
  }

  async #reconcile(options: ReconcileOptions, stopped = () => this.#closed): Promise<void> {
    const { root } = this.#options;
    const index = this.#index;
    const names = new Map<string, readonly string[]>();
    for (const entry of ENTRIES) {
      names.set(entry, await readdir(join(root, entry)).catch(() => []));
    }
    await inSlices(reconcile(index, root, { ...options, names }), stopped);
  }

  async #eraseSpace(space: string): Promise<readonly string[]> {
    const { root, own, now } = this.#options;
    const gone: string[] = [];
    for (let tries = 0; tries < ERASE_TRIES; tries++) {
      const index = this.#index;
      const { renewals } = index;
      await this.#reconcile({ own }, () => false);
      gone.push(...((await inSlices(eraseSpace(index, root, space, now()))) ?? []));
      if (index.renewals === renewals) break;
    }
    this.#options.gone(gone, false);
    return gone;
  }
}
