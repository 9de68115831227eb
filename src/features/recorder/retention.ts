/** Which samples go when there are too many or they are too old: the failed ones last. */

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { SampleRow } from '../../conversation/sample.ts';
import type { SampleIndex } from './index-store.ts';
import { fileName, listEntry, type SampleFile } from './sample-files.ts';

/** 0 = no limit, everywhere. */
export interface Retention {
  /** Days. */
  readonly keepDays: number;
  /** Days for exchanges in which something failed. */
  readonly keepFailedDays: number;
  /** Bytes of all samples together. */
  readonly maxBytes: number;
  /** How many samples that did not fail; of the failed ones as many again. */
  readonly maxCount: number;
}

export const DEFAULT_RETENTION: Retention = {
  keepDays: 14,
  keepFailedDays: 90,
  maxBytes: 2 ** 31,
  maxCount: 20_000,
};

const DAY = 86_400_000;
const STEP = 200;

/**
 * What has to go, oldest first, at most `limit` samples: fine ones that are too old, too many or too
 * much; failed ones for their own age and number, and for space only once no fine one is left.
 */
export function overdue(
  index: SampleIndex,
  retention: Retention,
  now: number,
  limit = STEP,
): readonly SampleRow[] {
  const { keepDays, keepFailedDays, maxBytes, maxCount } = retention;
  const out: SampleRow[] = [];
  let bytes = index.totals(false).bytes + index.totals(true).bytes;
  for (const failed of [false, true]) {
    let { count } = index.totals(failed);
    const days = failed ? keepFailedDays : keepDays;
    for (const row of index.oldest(failed, limit - out.length)) {
      const old = days > 0 && row.time < now - days * DAY;
      const many = maxCount > 0 && count > maxCount;
      const much = maxBytes > 0 && bytes > maxBytes;
      if (!old && !many && !much) break;
      out.push(row);
      count--;
      bytes -= row.bytes;
    }
  }
  return out;
}

/** Removes a step's worth of what has to go; the ids of what went. */
export function retain(
  index: SampleIndex,
  root: string,
  retention: Retention,
  now: number,
): readonly string[] {
  const ids = overdue(index, retention, now).map((row) => {
    removeFiles(root, row);
    return row.id;
  });
  index.remove(ids);
  return ids;
}

// The usual names are tried first, so that a folder of thousands need not be listed for each of them.
const STAGES = [
  'client-request',
  'provider-request',
  'provider-response',
  'provider-error',
  'client-response',
];

/** Removes the files of a sample, the meta file last: a removal that is cut short can be seen and ended. */
export function removeFiles(root: string, { id, entry, tries, hops }: SampleRow): void {
  const folder = join(root, entry);
  const plain = hops <= 1 && tries <= 1;
  const files: readonly SampleFile[] = plain ? [] : (listEntry(root, entry).get(id) ?? []);
  const names = new Set(files.map(({ name }) => name));
  for (const stage of STAGES) {
    names.add(fileName(id, stage, false));
    names.add(fileName(id, stage, true));
  }
  const meta = fileName(id, 'meta', false);
  for (const name of names) if (name !== meta) rmSync(join(folder, name), { force: true });
  rmSync(join(folder, meta), { force: true });
}
