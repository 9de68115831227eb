/** The folder of samples as one replica's part of the shared list: takes in what others recorded, marks what is uploaded, removes what is gone. */

import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { runInSlices } from '../../lib/loop/steps.ts';
import type { SampleMeta, SampleRow, SharedBodies } from '../sample.ts';
import { putUnerased } from '../store/erase-space.ts';
import { openIndex, type SampleIndexFile } from '../store/index-store.ts';
import { rowOf } from '../store/meta.ts';
import { readMeta, readWhole } from '../store/read-meta.ts';
import { removeFiles } from '../store/retention.ts';
import {
  ENTRIES,
  entryFolder,
  filesOf,
  isId,
  metaPath,
  parseName,
  replaceFile,
} from '../store/sample-files.ts';
import type { KnownSample, SharingStore } from './sharing-store.ts';

export class LocalFolder {
  readonly root: string;
  readonly store: SharingStore;
  #index: SampleIndexFile | undefined;

  constructor(root: string, store: SharingStore) {
    this.root = root;
    this.store = store;
  }

  get index(): SampleIndexFile {
    this.#index ??= openIndex(this.root);
    return this.#index;
  }

  /** A finished sample of this folder; undefined: it was removed. */
  read({ id, entry }: KnownSample): SampleMeta | undefined {
    const whole = readWhole(this.root, entry, id);
    if (whole !== undefined) return whole;
    const files = filesOf(this.root, entry, id);
    return files.length === 0 ? undefined : readMeta(this.root, entry, id, files);
  }

  /** Takes in a sample of the shared list; returns its row where it is new here and stays. */
  take(meta: SampleMeta): SampleRow | undefined {
    const { id, entry, object } = meta;
    const path = metaPath(this.root, entry, id);
    if (existsSync(path)) {
      if (object !== undefined) this.mark(this.read(meta) ?? meta, object);
      this.store.add(meta);
      return undefined;
    }
    entryFolder(this.root, entry);
    replaceFile(path, JSON.stringify(meta, null, 1));
    const row = rowOf(meta);
    const erased = putUnerased(this.index, this.root, [row]);
    this.store.add(meta);
    return erased.length === 0 ? row : undefined;
  }

  /** Writes into a sample where its bodies are. One that was removed meanwhile does not come back. */
  mark(meta: SampleMeta, object: SharedBodies): void {
    const path = metaPath(this.root, meta.entry, meta.id);
    if (existsSync(path)) replaceFile(path, JSON.stringify({ ...meta, object }, null, 1));
  }

  /** Removes samples that are gone from the shared list; returns those that were here. */
  async remove(ids: readonly string[]): Promise<readonly string[]> {
    const here = ids.filter((id) => {
      const entry = ENTRIES.find((one) => existsSync(metaPath(this.root, one, id)));
      if (entry === undefined) return false;
      removeFiles(this.root, rowOf(this.read({ id, entry })!));
      return true;
    });
    this.index.remove(ids);
    for (const id of ids) this.store.remove(id);
    if (here.length > 0) {
      await runInSlices(this.index.texts.tidy());
      await runInSlices(this.index.texts.scrub());
      this.index.scrub();
    }
    return here;
  }

  /** Removes bodies of samples that the object store has, until at most so many bytes of them are here. */
  evict(bytes: number): void {
    for (let some = this.store.beyond(bytes); some.length > 0; some = this.store.beyond(bytes)) {
      for (const one of some) {
        const meta = readWhole(this.root, one.entry, one.id);
        if (meta?.object !== undefined) {
          for (const { file } of meta.edges)
            rmSync(join(this.root, one.entry, file), { force: true });
        }
        this.store.hold(one, 0);
      }
    }
  }

  closeIndex(): void {
    this.#index?.close();
    this.#index = undefined;
  }

  close(): void {
    this.closeIndex();
    this.store.close();
  }
}

/** Whether names in a meta that came from outside can be used as names of files here. */
export function isUsable(meta: SampleMeta): boolean {
  const { id, entry, edges, object } = meta;
  return (
    typeof id === 'string' &&
    isId(id) &&
    ENTRIES.includes(entry) &&
    Array.isArray(edges) &&
    object !== undefined &&
    edges.every(({ file, stage }) => {
      const name = parseName(String(file));
      return name?.id === id && name.stage === stage && stage !== 'meta';
    })
  );
}
