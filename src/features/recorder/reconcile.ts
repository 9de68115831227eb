/** Brings the index in line with the files: they are the truth, it only answers faster. */

import type { SampleMeta, SampleRow } from '../../conversation/sample.ts';
import { putUnerased } from './erase-space.ts';
import type { SampleIndex } from './index-store.ts';
import { rowOf } from './meta.ts';
import { readMeta } from './read-meta.ts';
import { ENTRIES, listEntry, metaPath, replaceFile } from './sample-files.ts';

export interface ReconcileOptions {
  /** The name of this process's recorder. */
  readonly own?: string;
  /** Write into the meta files that an exchange was cut. */
  readonly mark?: boolean;
}

/** Adds what the index does not know (or knows as open), removes what is gone. How many it changed. */
export function reconcile(
  index: SampleIndex,
  root: string,
  options: ReconcileOptions = {},
): number {
  const rows: SampleRow[] = [];
  const gone: string[] = [];
  for (const entry of ENTRIES) {
    const files = listEntry(root, entry);
    const known = index.ids(entry);
    for (const id of known.keys()) if (!files.has(id)) gone.push(id);
    for (const [id, own] of files) {
      const state = known.get(id);
      if (state === 'done' || state === 'cut') continue;
      const meta = readMeta(root, entry, id, own, options.own);
      if (meta.state === 'cut' && options.mark === true) markCut(root, meta);
      rows.push(rowOf(meta));
    }
  }
  index.remove(gone);
  putUnerased(index, root, rows);
  return rows.length + gone.length;
}

/** Writes down that an exchange was left open by a process that is gone. */
export function markCut(root: string, { run: _, ...meta }: SampleMeta): void {
  const edges = meta.edges.map((edge) => ({ ...edge, cut: true }));
  const text = JSON.stringify({ ...meta, state: 'cut', edges }, null, 1);
  replaceFile(metaPath(root, meta.entry, meta.id), text);
}
