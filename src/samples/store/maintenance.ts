/** Maintains the samples of a recorder in the background: index, limits and erased memory spaces. */

import { existsSync, type StatsFs } from 'node:fs';
import { readdir, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { PatientClock } from '../../lib/loop/patient-clock.ts';
import { othersTurn, runInSlices } from '../../lib/loop/steps.ts';
import type { HashedName } from '../../state/erasures.ts';
import type { SampleMeta } from '../sample.ts';
import { onIndexRebuilt, openIndex, type SampleIndexFile } from './index-store.ts';
import { rowOf } from './meta.ts';
import { type ReconcileOptions, reconcile } from './reconcile.ts';
import { eraseSpace, isFull, overdue, putUnerased, type Retention, retain } from './retention.ts';
import { ENTRIES } from './sample-files.ts';

export interface MaintenanceOptions {
  readonly root: string;
  /** The name of this process's recorder. */
  readonly own: string;
  readonly retention: () => Retention;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Called with ids of removed samples; `purged`: because of a limit. */
  readonly onRemoved: (ids: readonly string[], purged: boolean) => void;
  readonly onProblem: (what: string, cause: unknown) => void;
  /** For tests. */
  readonly statfs?: ((path: string) => Promise<StatsFs>) | undefined;
}

/** One step of retention. */
const STEP = { limit: 50, ms: 2 };
/** Milliseconds before a failed removal, or a failed reconciliation, is tried again. */
const RETRY_AFTER = 30_000;
/** Milliseconds between two checks for room. */
const LOOK_AFTER = 5;
/** The same where there was room: other processes add to the index, too. */
const ROOM_MS = 50;
/** The last room of a disk is for money, keys and limits: so much, or on a small disk this share of it. */
const RESERVE = { bytes: 64 * 2 ** 20, files: 1000, share: 0.05 };
const DISK_MS = 1000;
/** An erasure starts over when the index is rebuilt during it. */
const ERASE_TRIES = 3;

export class StoreMaintenance {
  readonly #leave: () => void;
  readonly #erasures = new Set<Promise<unknown>>();
  #file: SampleIndexFile | undefined;
  #clock: PatientClock | undefined;
  #tidying: Promise<void> | undefined;
  #matching: Promise<void> | undefined;
  #later: ReturnType<typeof setTimeout> | undefined;
  /** No removal before this time, since the last one failed. */
  #stuckUntil = 0;
  #closed = false;
  /** Until then, or until rows are added, there is room. */
  #roomUntil = 0;
  #diskUntil = 0;
  #hasDisk = true;

  constructor(private readonly options: MaintenanceOptions) {
    this.#leave = onIndexRebuilt(options.root, (cause) => {
      options.onProblem('the index was damaged or removed; it is rebuilt from the files', cause);
      this.reconcile();
    });
  }

  /** Puts finished exchanges into the index, and begins to remove what is over the limits. */
  put(metas: readonly SampleMeta[]): void {
    const { root, onRemoved, onProblem } = this.options;
    this.#roomUntil = 0;
    try {
      const rows = metas.map((meta) => rowOf(meta));
      onRemoved(putUnerased(this.#index, root, rows), false);
      this.#tidy();
    } catch (error) {
      // The files are complete: a reconciliation finds them.
      this.#reconcileLater();
      onProblem('the index cannot be written', error);
    }
  }

  /** Resolves once the limits are exceeded by at most a tenth. @throws Error while the disk is nearly full */
  async waitForRoom(): Promise<void> {
    if (performance.now() >= this.#diskUntil) await this.#lookAtDisk();
    if (!this.#hasDisk) throw new Error('the disk is nearly full');
    const index = this.#file;
    if (index === undefined || performance.now() < this.#roomUntil) return;
    try {
      while (!this.#closed && isFull(index, this.options.retention())) {
        this.#tidy();
        if (this.#tidying === undefined) return;
        await Bun.sleep(LOOK_AFTER);
      }
      this.#roomUntil = performance.now() + ROOM_MS;
    } catch {
      // Problems with the index are reported where it is written.
    }
  }

  async #lookAtDisk(): Promise<void> {
    this.#diskUntil = performance.now() + DISK_MS;
    const { root, statfs: look = statfs } = this.options;
    // Without the folder, writing makes it, or says what is wrong.
    this.#hasDisk = await look(root).then(leavesReserve, () => true);
  }

  /** Brings the index in line with the files, in the background. */
  reconcile(): void {
    const { root, own, onProblem } = this.options;
    if (this.#closed || this.#matching !== undefined || !existsSync(root)) return;
    clearTimeout(this.#later);
    this.#later = undefined;
    this.#matching = this.#reconcile({ own, mark: true })
      .then(() => this.#tidy())
      .catch((error) => {
        this.#reconcileLater();
        onProblem('the index cannot be opened', error);
      })
      .finally(() => {
        this.#matching = undefined;
      });
  }

  #reconcileLater(): void {
    this.#later ??= setTimeout(() => {
      this.#later = undefined;
      this.reconcile();
    }, RETRY_AFTER).unref();
  }

  /**
   * Removes all samples of a memory space, or those that began until then, and returns their ids.
   * @throws what the file system throws
   */
  async eraseSpace(space: string | HashedName, until?: number): Promise<readonly string[]> {
    if (!existsSync(this.options.root)) return [];
    const erasing = this.#eraseSpace(space, until);
    this.#erasures.add(erasing);
    try {
      return await erasing;
    } finally {
      this.#erasures.delete(erasing);
    }
  }

  /** Resolves when no sample is over a limit. */
  async idle(): Promise<void> {
    await this.#tidying;
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#later);
    this.#leave();
    await Promise.allSettled([this.#tidying, this.#matching, ...this.#erasures]);
    this.#file?.close();
    this.#file = undefined;
  }

  get #index(): SampleIndexFile {
    this.#file ??= openIndex(this.options.root);
    this.#clock ??= new PatientClock(this.#file.list({ limit: 1 })[0]?.time, this.options.now);
    return this.#file;
  }

  /** Begins to remove samples over the limits, unless a removal is under way. */
  #tidy(): void {
    const { root, retention, onRemoved, onProblem } = this.options;
    if (this.#closed || this.#tidying !== undefined) return;
    if (performance.now() < this.#stuckUntil) return;
    const index = this.#index;
    const clock = this.#clock!;
    if (overdue(index, retention(), clock.now(), 1).length === 0) return;
    const removeAll = async () => {
      for (;;) {
        await othersTurn();
        if (this.#closed) return;
        const ids = retain(index, root, retention(), clock.now(), STEP);
        if (ids.length === 0) break;
        onRemoved(ids, true);
      }
      await runInSlices(index.texts.tidy(), () => this.#closed);
    };
    this.#tidying = removeAll()
      .catch((error) => {
        this.#stuckUntil = performance.now() + RETRY_AFTER;
        onProblem('what is over the limits cannot be removed', error);
      })
      .finally(() => {
        this.#tidying = undefined;
      });
  }

  async #reconcile(options: ReconcileOptions, stopped = () => this.#closed): Promise<void> {
    const { root } = this.options;
    const index = this.#index;
    const names = new Map<string, readonly string[]>();
    for (const entry of ENTRIES) {
      names.set(entry, await readdir(join(root, entry)).catch(() => []));
    }
    await runInSlices(reconcile(index, root, { ...options, names }), stopped);
  }

  async #eraseSpace(space: string | HashedName, until?: number): Promise<readonly string[]> {
    const { root, own, now } = this.options;
    const gone: string[] = [];
    for (let tries = 0; tries < ERASE_TRIES; tries++) {
      const index = this.#index;
      const { rebuilds } = index;
      await this.#reconcile({ own }, () => false);
      gone.push(...((await runInSlices(eraseSpace(index, root, space, now(), until))) ?? []));
      if (index.rebuilds === rebuilds) break;
    }
    this.options.onRemoved(gone, false);
    return gone;
  }
}

/** A file system that counts no files has 0 of them in all. */
function leavesReserve({ blocks, bavail, bsize, files, ffree }: StatsFs): boolean {
  const { bytes, files: entries, share } = RESERVE;
  return (
    bavail * bsize >= Math.min(bytes, blocks * bsize * share) &&
    ffree >= Math.min(entries, files * share)
  );
}
