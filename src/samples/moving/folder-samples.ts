/** The finished samples that a folder recorded itself, read from its files: nothing is made, and no index is asked. */

import type { EntryName } from '../../conversation/models/endpoint-names.ts';
import type { SampleMeta } from '../sample.ts';
import { spaceHash } from '../shared/uploader.ts';
import { readMeta, readWhole } from '../store/read-meta.ts';
import { ENTRIES, namesOf, parseName, type SampleFile } from '../store/sample-files.ts';
import type { KnownSamples } from './known-samples-store.ts';

export interface FolderSample {
  readonly id: string;
  readonly entry: EntryName;
  /** In milliseconds since 1970. */
  readonly time: number;
  /** Hash of its memory space. */
  readonly space: string | undefined;
  /** The shared list had it. */
  readonly isKnown: boolean;
}

const PAGE = 200;

/**
 * Some at a time, entry by entry.
 * @param until in milliseconds since 1970: those that began later are left out
 */
export function* folderSamples(
  root: string,
  known: KnownSamples,
  until: number,
): Generator<readonly FolderSample[]> {
  let page: FolderSample[] = [];
  for (const entry of ENTRIES) {
    for (const [id, files] of samplesOf(root, entry)) {
      const meta = readWhole(root, entry, id) ?? readMeta(root, entry, id, files);
      if (meta.state === 'open' || meta.time > until || !isOwn(meta, known)) continue;
      const space = meta.memory_space ?? '';
      page.push({
        id,
        entry,
        time: meta.time,
        space: space === '' ? undefined : spaceHash(space),
        isKnown: known.knows(id),
      });
      if (page.length < PAGE) continue;
      yield page;
      page = [];
    }
  }
  if (page.length > 0) yield page;
}

/** Those of others come with the shared list, under the names of their folders. */
const isOwn = ({ object }: SampleMeta, { replica }: KnownSamples): boolean =>
  object === undefined || object.key.split('/').at(-2) === replica;

function samplesOf(root: string, entry: EntryName): ReadonlyMap<string, readonly SampleFile[]> {
  const found = new Map<string, SampleFile[]>();
  for (const file of namesOf(root, entry)) {
    const parsed = parseName(file);
    if (parsed === undefined) continue;
    const { id, stage, name } = parsed;
    const own = found.get(id);
    if (own === undefined) found.set(id, [{ stage, name }]);
    else own.push({ stage, name });
  }
  return found;
}
