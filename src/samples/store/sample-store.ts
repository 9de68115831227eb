/** Opens the samples of a folder: lists, bodies, export, import, removal. Works while a gateway writes. */

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { GatewayError } from '../../conversation/errors.ts';
import type { EntryName } from '../../conversation/models/endpoint-names.ts';
import { runAtOnce } from '../../lib/loop/steps.ts';
import type { SampleFilter, SampleMeta, SampleStore } from '../sample.ts';
import { exportSample, importSample } from './export-import.ts';
import { memoryIndex, openIndex, type SampleIndex } from './index-store.ts';
import { rowOf } from './meta.ts';
import { readMeta, readWhole } from './read-meta.ts';
import { reconcile } from './reconcile.ts';
import { eraseSpace } from './retention.ts';
import { ENTRIES, filesOf, isId } from './sample-files.ts';

/** Rows of one query of {@link SampleStore.pages}. */
const PAGE = 500;

/**
 * Opens the samples of a folder; a missing folder is an empty store. Never throws.
 * @param indexed a recorder of this process keeps the index in line with the files, so the store does not;
 *   methods that query the index then throw GatewayError overloaded while it is busy
 * @param fetch brings bodies here that another replica recorded; left out: only what lies here can be read
 */
export function openSampleStore(
  root: string,
  indexed = false,
  fetch?: SampleStore['fetch'],
): SampleStore {
  let index: SampleIndex | undefined;

  const ready = (): SampleIndex => {
    if (index !== undefined) return index;
    // Reading does not create the folder.
    if (!existsSync(root)) return memoryIndex();
    try {
      const fill = (made: SampleIndex) => void runAtOnce(reconcile(made, root));
      index = openIndex(root, indexed ? undefined : fill);
      if (!indexed) fill(index);
    } catch (cause) {
      if (indexed) throw new GatewayError('overloaded', 'The index of samples is busy.', { cause });
      // The index is read-only or busy for long: the files hold the same, but reading them is slower.
      index = memoryIndex();
      runAtOnce(reconcile(index, root));
    }
    return index;
  };

  /** From the files of a sample whose meta file is missing: this lists all names of the entry. */
  const gathered = (entry: EntryName, id: string): SampleMeta | undefined => {
    const files = filesOf(root, entry, id);
    return files.length === 0 ? undefined : readMeta(root, entry, id, files);
  };
  const among = (entries: readonly EntryName[], id: string): SampleMeta | undefined => {
    for (const look of [readWhole.bind(undefined, root), gathered]) {
      for (const entry of entries) {
        const found = look(entry, id);
        if (found !== undefined) return found;
      }
    }
    return undefined;
  };

  const stageInfoOf = (of: SampleMeta, stage: string) =>
    of.edges.find((stageInfo) => stageInfo.stage === stage);
  const pathOf = (of: SampleMeta, stage: string) => {
    const name = stageInfoOf(of, stage)?.file ?? `${of.id}_${stage}.json`;
    return join(root, of.entry, name);
  };

  const store: SampleStore = {
    root,
    list: (filter = {}) => ready().list(filter),
    targets: () => ready().targets(),
    get texts() {
      return ready().texts;
    },
    named: (filter) => ready().named(filter),
    *pages(filter) {
      let before: SampleFilter['before'];
      for (;;) {
        const rows = ready().list({ ...filter, ...(before && { before }), limit: PAGE });
        yield rows;
        if (rows.length < PAGE) return;
        const { time, id } = rows.at(-1)!;
        before = { time, id };
      }
    },
    find(id) {
      const found = isId(id) ? among(ENTRIES, id) : undefined;
      if (found !== undefined) return found;
      // A part of an id is enough where only one id has it.
      const [only, other] = store.matching(id, 2);
      return only === undefined || other !== undefined ? undefined : among([only.entry], only.id);
    },
    matching: (part, limit) => (part === '' ? [] : ready().matching(part, limit)),
    fetch: async (of) => fetch?.(of),
    read(of, stage) {
      if (stageInfoOf(of, stage) === undefined) return undefined;
      try {
        return readFileSync(pathOf(of, stage));
      } catch {
        return undefined;
      }
    },
    row: (of) => rowOf(of),
    path: pathOf,
    export: (of, redact) => exportSample(of, (stage) => store.read(of, stage), redact),
    import(sample) {
      const written = importSample(root, sample);
      index ??= openIndex(root);
      index.put([rowOf(written)]);
      return written;
    },
    eraseSpace(space) {
      const files = ready();
      runAtOnce(reconcile(files, root));
      return runAtOnce(eraseSpace(files, root, space, Date.now())).length;
    },
    close() {
      index?.close();
      index = undefined;
    },
  };
  return store;
}
