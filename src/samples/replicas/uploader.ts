/** Uploads what this folder recorded: says so in the shared list, stores the bodies, lists the sample for all replicas. */

import { limitParallel } from '../../lib/loop/limit-parallel.ts';
import { othersTurn } from '../../lib/loop/steps.ts';
import { nameHash } from '../../state/erasures.ts';
import type { SampleMeta, SharedBodies } from '../sample.ts';
import { rowOf } from '../store/meta.ts';
import { type BodyStore, bytesOf, planBodies, removeBodies, storeBodies } from './bodies.ts';
import { type KnownSample, type LocalFolder, metaPlace } from './folder-store.ts';
import { type SampleList, spaceHash } from './list.ts';

export interface UploaderOptions extends BodyStore {
  readonly folder: LocalFolder;
  readonly table: SampleList;
  /** Samples are listed for other replicas now. */
  readonly onListed: () => void;
  /** Samples are gone from here: their memory space was erased, or they were removed everywhere. */
  readonly onRemoved: (ids: readonly string[]) => void;
  readonly onProblem: (what: string, cause: unknown) => void;
  /** Called at each step, by its number in {@link STEPS}; tests end the process there. */
  readonly onStep?: (step: number) => Promise<void> | void;
}

/** The steps of an upload, as they are numbered. */
export const STEPS = { found: 1, reserved: 2, stored: 3, listed: 4, marked: 5 } as const;

/** Samples that are reserved together, and those that are uploaded at the same time. */
const BATCH = 8;
const PARALLEL = 2;
/** Rows of the local index that are read together. */
const PAGE = 200;
/** Bytes in a second that each upload takes at most. */
const BYTES_PER_SECOND = 16 * 2 ** 20;

interface Upload {
  readonly meta: SampleMeta;
  readonly bodies: SharedBodies;
}

export class Uploader {
  readonly #limited = limitParallel(PARALLEL);
  /** The number in the local index up to which everything is uploaded, and how often that index was rebuilt. */
  #number = 0;
  #rebuilds = 0;
  #closed = false;
  #running: Promise<void> | undefined;

  constructor(private readonly options: UploaderOptions) {}

  /** Uploads everything that is finished by now. @throws EngineAway, or the refusal of the object store */
  run(): Promise<void> {
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  /** How many finished samples are not in the shared list yet. */
  async pending(): Promise<number> {
    const { index, store } = this.options.folder;
    let count = 0;
    for (let after = this.#number; !this.#closed; await othersTurn()) {
      const page = index.finishedAfter(after, PAGE);
      if (page.length === 0) break;
      count += store.unknown(page.map(({ id }) => id));
      after = page.at(-1)!.number;
    }
    return count;
  }

  /** No upload begins any more. */
  close(): void {
    this.#closed = true;
  }

  async #run(): Promise<void> {
    while (!this.#closed) {
      const { found, last } = this.#next();
      if (found.length > 0) await this.#upload(found);
      if (last === this.#number) return;
      this.#number = last;
    }
  }

  /** The next samples that the shared list does not have, and the number behind them. */
  #next(): { readonly found: readonly KnownSample[]; readonly last: number } {
    const { folder } = this.options;
    if (folder.index.rebuilds !== this.#rebuilds) {
      this.#rebuilds = folder.index.rebuilds;
      this.#number = 0;
    }
    const found: KnownSample[] = [];
    let last = this.#number;
    for (const one of folder.index.finishedAfter(last, PAGE)) {
      if (!folder.store.knows(one.id)) found.push(one);
      last = one.number;
      if (found.length === BATCH) break;
    }
    return { found, last };
  }

  async #upload(found: readonly KnownSample[]): Promise<void> {
    const { folder, table } = this.options;
    await this.#step(STEPS.found);
    const uploads: Upload[] = [];
    for (const one of found) {
      const meta = folder.read(one);
      const key = meta && keyOf(meta, folder.store.replica);
      const bodies = meta && (await planBodies(folder.root, meta, key!));
      if (meta !== undefined && bodies !== undefined) uploads.push({ meta, bodies });
    }
    if (uploads.length === 0) return;
    const there = new Map(
      (await table.reserve(folder.store.replica, uploads.map(newSample))).map((row) => [
        row.id,
        row,
      ]),
    );
    await this.#step(STEPS.reserved);
    const removed: string[] = [];
    const jobs = uploads.map((upload) =>
      this.#limited(async () => {
        const { meta } = upload;
        const row = there.get(meta.id);
        if (row === undefined || row.state === 'gone') removed.push(meta.id);
        else if (row.replica !== folder.store.replica) {
          folder.store.add(meta);
          this.options.onProblem(
            `${meta.id} is not shared: another replica has a sample of this name`,
            row.replica,
          );
        } else if (row.state === 'done') this.#done(upload);
        else if (!(await this.#store(upload))) removed.push(meta.id);
      }),
    );
    const results = await Promise.allSettled(jobs);
    if (removed.length > 0) this.options.onRemoved(await folder.remove(removed));
    const failed = results.find((result) => result.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  }

  /** False: the sample was removed meanwhile. */
  async #store(upload: Upload): Promise<boolean> {
    const { folder, table, objects, seal, onListed } = this.options;
    const { meta, bodies } = upload;
    try {
      await storeBodies(this.options, folder.root, meta, bodies, (bytes) =>
        Bun.sleep((bytes / BYTES_PER_SECOND) * 1000),
      );
    } catch (thrown) {
      // Its limits or an erasure removed it here while it was read.
      if (folder.read(meta) !== undefined) throw thrown;
      await table.remove([meta.id]);
      await removeBodies(objects, bodies);
      return false;
    }
    await this.#step(STEPS.stored);
    const { run: _, ...shared } = { ...meta, object: bodies };
    const text = Buffer.from(JSON.stringify(shared));
    if (!(await table.complete(meta.id, seal.seal(text, metaPlace(meta.id))))) {
      await removeBodies(objects, bodies);
      return false;
    }
    await this.#step(STEPS.listed);
    onListed();
    this.#done(upload);
    await this.#step(STEPS.marked);
    return true;
  }

  #done({ meta, bodies }: Upload): void {
    const { folder } = this.options;
    folder.mark(meta, bodies);
    folder.store.add(meta);
    folder.store.hold(meta, bytesOf(bodies));
  }

  async #step(step: number): Promise<void> {
    await this.options.onStep?.(step);
  }
}

/** By day and replica, so that a list of the store can be read by people. */
const keyOf = ({ id, time }: SampleMeta, replica: string) =>
  `samples/${new Date(time).toISOString().slice(0, 10)}/${replica}/${id}`;

function newSample({ meta, bodies }: Upload) {
  const { id, time, failed, owner, memory_space: space } = rowOf(meta);
  return {
    id,
    key: bodies.key,
    time,
    failed,
    bytes: bytesOf(bodies),
    parts: bodies.parts,
    space: space === undefined || space === '' ? undefined : spaceHash(space),
    owner: nameHash(owner),
  };
}
