/** Reads recorded exchanges: lists, bodies, files to carry elsewhere. Works while a gateway writes. */

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { GatewayError } from '../../conversation/errors.ts';
import type { ProtocolName } from '../../conversation/types.ts';
import type { SampleMeta, SampleStore } from '../sample.ts';
import { exportSample, importSample } from './carry.ts';
import { eraseSpace } from './erase-space.ts';
import { memoryIndex, openIndex, type SampleIndex } from './index-store.ts';
import { rowOf } from './meta.ts';
import { readMeta, readWhole } from './read-meta.ts';
import { reconcile } from './reconcile.ts';
import { removeFiles } from './retention.ts';
import { ENTRIES, filesOf, isId } from './sample-files.ts';
import { atOnce } from './steps.ts';

/**
 * Opens the samples of a folder; one that is not there yet is empty. Never throws.
 * @param kept a recorder of this process keeps the index in line with the files, so it is not done
 *   here; what asks the index then throws GatewayError overloaded while that is busy
 */
export function openSampleBook(root: string, kept = false): SampleStore {
  let index: SampleIndex | undefined;

  const ready = (): SampleIndex => {
    if (index !== undefined) return index;
    // A folder that nothing was recorded in is not made by looking into it.
    if (!existsSync(root)) return memoryIndex();
    try {
      const fill = (made: SampleIndex) => void atOnce(reconcile(made, root));
      index = openIndex(root, kept ? undefined : fill);
      if (!kept) fill(index);
    } catch (cause) {
      if (kept) throw new GatewayError('overloaded', 'The index of samples is busy.', { cause });
      // Read-only, or busy for long: the files tell the same, only slower.
      index = memoryIndex();
      atOnce(reconcile(index, root));
    }
    return index;
  };

  const meta = (entry: ProtocolName, id: string): SampleMeta | undefined => {
    const whole = readWhole(root, entry, id);
    if (whole !== undefined) return whole;
    const files = filesOf(root, entry, id);
    return files.length === 0 ? undefined : readMeta(root, entry, id, files);
  };

  const edgeOf = (of: SampleMeta, stage: string) => of.edges.find((edge) => edge.stage === stage);
  const pathOf = (of: SampleMeta, stage: string) => {
    const name = edgeOf(of, stage)?.file ?? `${of.id}_${stage}.json`;
    return join(root, of.entry, name);
  };

  const book: SampleStore = {
    root,
    list: (filter = {}) => ready().list(filter),
    statistics: (filter, bucketMs) => ready().statistics(filter, bucketMs),
    find(id) {
      if (isId(id)) {
        for (const entry of ENTRIES) {
          const found = meta(entry, id);
          if (found !== undefined) return found;
        }
      }
      // A piece of an id is enough where it fits only one.
      const [only, other] = book.matching(id, 2);
      return only === undefined || other !== undefined ? undefined : meta(only.entry, only.id);
    },
    matching: (part, limit) => (part === '' ? [] : ready().matching(part, limit)),
    read(of, stage) {
      if (edgeOf(of, stage) === undefined) return undefined;
      try {
        return readFileSync(pathOf(of, stage));
      } catch {
        return undefined;
      }
    },
    row: (of) => rowOf(of),
    path: pathOf,
    export: (of, redact) => exportSample(of, (stage) => book.read(of, stage), redact),
    import(sample) {
      const written = importSample(root, sample);
      index ??= openIndex(root);
      index.put([rowOf(written)]);
      return written;
    },
    remove(of) {
      removeFiles(root, rowOf(of));
      ready().remove([of.id]);
    },
    eraseSpace(space) {
      const files = ready();
      atOnce(reconcile(files, root));
      return atOnce(eraseSpace(files, root, space, Date.now())).length;
    },
    close() {
      index?.close();
      index = undefined;
    },
  };
  return book;
}
