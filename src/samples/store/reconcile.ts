/** Brings the index in line with the sample files, which hold the truth. */

import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { EntryName } from '../../conversation/models/endpoint-names.ts';
import { batchesOf } from '../../lib/loop/batches.ts';
import type { Steps } from '../../lib/loop/steps.ts';
import type { SampleMeta, SampleRow } from '../sample.ts';
import type { SampleIndex } from './index-store.ts';
import { rowOf } from './meta.ts';
import { readMeta } from './read-meta.ts';
import { putUnerased } from './retention.ts';
import {
  addFile,
  changedAt,
  ENTRIES,
  idOfTemporary,
  metaPath,
  namesOf,
  replaceFile,
  type SampleFile,
} from './sample-files.ts';

export interface ReconcileOptions {
  /** The name of this process's recorder. */
  readonly own?: string;
  /** Write the state `cut` into the meta files of cut exchanges. */
  readonly mark?: boolean;
  /** Names of all files by entry, where the caller has listed them already. */
  readonly names?: ReadonlyMap<string, readonly string[]>;
}

/** File names, or rows of the index, between two yields. */
const PAGE = 200;
/** Meta files that are read between two yields. */
const FEW = 10;
/** A temporary file of this age was left by a process that died. */
const LEFT_MS = 60_000;

/** Adds samples that the index does not know or knows as open, and removes missing ones. Returns the number of changes. */
export function* reconcile(
  index: SampleIndex,
  root: string,
  options: ReconcileOptions = {},
): Steps<number> {
  let changed = 0;
  for (const entry of ENTRIES) {
    const names = options.names?.get(entry) ?? namesOf(root, entry);
    yield;
    const files = yield* group(names, join(root, entry));
    const gone = yield* compare(index, entry, files);
    // Samples may have been recorded or removed meanwhile: the disk decides.
    for (const some of batchesOf(gone, FEW)) {
      const lost = some.filter((id) => !existsSync(metaPath(root, entry, id)));
      index.remove(lost);
      changed += lost.length;
      yield;
    }
    let rows: SampleRow[] = [];
    for (const [id, own] of files) {
      if (!own.some(({ name }) => existsSync(join(root, entry, name)))) continue;
      const meta = readMeta(root, entry, id, own, options.own);
      if (meta.state === 'cut' && options.mark === true) markCut(root, meta);
      rows.push(rowOf(meta));
      if (rows.length < FEW) continue;
      putUnerased(index, root, rows);
      changed += rows.length;
      rows = [];
      yield;
    }
    putUnerased(index, root, rows);
    changed += rows.length;
  }
  return changed;
}

/** Every sample of an entry with its files; old temporary files are removed. */
function* group(names: readonly string[], folder: string): Steps<Map<string, SampleFile[]>> {
  const found = new Map<string, SampleFile[]>();
  let seen = 0;
  for (const name of names) {
    if (++seen % PAGE === 0) yield;
    if (addFile(found, name) || idOfTemporary(name) === undefined) continue;
    const path = join(folder, name);
    if (changedAt(path) < Date.now() - LEFT_MS) rmSync(path, { force: true });
  }
  return found;
}

/** Removes from `files` what the index knows, and returns the ids that only the index knows. */
function* compare(
  index: SampleIndex,
  entry: EntryName,
  files: Map<string, SampleFile[]>,
): Steps<string[]> {
  const gone: string[] = [];
  for (let after = ''; ; ) {
    const known = index.idsAfter(entry, after, PAGE);
    for (const { id, state } of known) {
      if (!files.has(id)) gone.push(id);
      else if (state === 'done' || state === 'cut') files.delete(id);
    }
    if (known.length < PAGE) return gone;
    after = known.at(-1)!.id;
    yield;
  }
}

/** Marks an exchange as cut: the process that recorded it is gone. */
export function markCut(root: string, { run: _, ...meta }: SampleMeta): void {
  const edges = meta.edges.map((stageInfo) => ({ ...stageInfo, cut: true }));
  const text = JSON.stringify({ ...meta, state: 'cut', edges }, null, 1);
  replaceFile(metaPath(root, meta.entry, meta.id), text);
}
