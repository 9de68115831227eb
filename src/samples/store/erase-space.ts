/** Removes the samples of an erased memory space, and those that other processes still write later. */

import type { Steps } from '../../lib/loop/steps.ts';
import type { HashedName } from '../../state/erasures.ts';
import type { SampleRow } from '../sample.ts';
import type { SampleIndex } from './index-store.ts';
import { removeFiles } from './retention.ts';

/** Samples whose files are removed between two yields. */
const PAGE = 10;

/**
 * Removes all samples of a space that the index knows; returns their ids.
 * @param until those that began later stay, in ms since 1970; left out: none do
 */
export function* eraseSpace(
  index: SampleIndex,
  root: string,
  space: string | HashedName,
  now: number,
  until?: number,
): Steps<readonly string[]> {
  index.noteErasure(space, until ?? now);
  const ids: string[] = [];
  for (;;) {
    const rows = index.ofSpace(space, PAGE, until);
    if (rows.length === 0) break;
    ids.push(...removeAll(index, root, rows));
    yield;
  }
  if (ids.length > 0) {
    yield* index.texts.tidy();
    yield* index.texts.scrub();
  }
  index.scrub();
  return ids;
}

/**
 * Puts samples that were just written into the index. Those whose space another process erased while
 * they were recorded are removed instead. Returns the ids of the removed ones.
 */
export function putUnerased(
  index: SampleIndex,
  root: string,
  rows: readonly SampleRow[],
): readonly string[] {
  const erased = index.erased(rows);
  const gone = new Set(erased);
  index.put(rows.filter((row) => !gone.has(row)));
  return removeAll(index, root, erased);
}

function removeAll(
  index: SampleIndex,
  root: string,
  rows: readonly SampleRow[],
): readonly string[] {
  const ids = rows.map((row) => {
    removeFiles(root, row);
    return row.id;
  });
  index.remove(ids);
  return ids;
}
