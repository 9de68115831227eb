/** Removes samples that are too old or too many: successful ones first, failed ones last. */

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { isObject } from '../../lib/json/json.ts';
import type { SampleRow } from '../sample.ts';
import type { SampleIndex } from './index-store.ts';
import { readJson } from './read-meta.ts';
import { fileName, filesOf, parseName, STAGES, temporaryPath } from './sample-files.ts';

/** Limits; 0 means no limit. */
export interface Retention {
  /** Days. */
  readonly keepDays: number;
  /** Days for exchanges in which something failed. */
  readonly keepFailedDays: number;
  /** Bytes of all samples together. */
  readonly maxBytes: number;
  /** Most successful samples; as many failed ones may be kept in addition. */
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
 * At most `limit` samples over the limits, oldest first: successful samples by age, number and size; failed
 * ones by their own age and number, and by size only once no successful one is left.
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

/** Limits of one step. */
export interface RetentionStep {
  /** Samples. */
  readonly limit: number;
  /** Milliseconds; at least one sample is removed. */
  readonly ms: number;
}

/** Removes samples over the limits, as many as one step allows, and returns their ids. */
export function retain(
  index: SampleIndex,
  root: string,
  retention: Retention,
  now: number,
  step: RetentionStep = { limit: STEP, ms: Number.POSITIVE_INFINITY },
): readonly string[] {
  const until = performance.now() + step.ms;
  const ids: string[] = [];
  for (const row of overdue(index, retention, now, step.limit)) {
    removeFiles(root, row);
    ids.push(row.id);
    if (performance.now() > until) break;
  }
  index.remove(ids);
  return ids;
}

/** The recorder waits for removals once a limit is exceeded by this much. */
const SLACK = 0.1;
const SLACK_COUNT = 100;

/** Whether the limits are exceeded so far that nothing may be added. */
export function isFull(index: SampleIndex, { maxBytes, maxCount }: Retention): boolean {
  const [fine, failed] = [index.totals(false), index.totals(true)];
  const most = maxCount * (1 + SLACK) + SLACK_COUNT;
  return (
    (maxBytes > 0 && fine.bytes + failed.bytes > maxBytes * (1 + SLACK)) ||
    (maxCount > 0 && (fine.count > most || failed.count > most))
  );
}

/**
 * Removes the files of a sample, the meta file last, so that an interrupted removal can be completed. The
 * meta file names them; the folder is listed only where that file cannot be read and the sample has
 * several hops or tries.
 */
export function removeFiles(root: string, { id, entry, tries, hops }: SampleRow): void {
  const folder = join(root, entry);
  const meta = fileName(id, 'meta', false);
  const names = new Set<string>();
  for (const stage of STAGES) {
    names.add(fileName(id, stage, false));
    names.add(fileName(id, stage, true));
  }
  const parsed = readJson(join(folder, meta));
  const stages = isObject(parsed) && Array.isArray(parsed.edges) ? parsed.edges : undefined;
  for (const stageInfo of stages ?? []) {
    const name = isObject(stageInfo) ? String(stageInfo.file) : '';
    if (parseName(name)?.id === id) names.add(name);
  }
  if (stages === undefined && (hops > 1 || tries > 1)) {
    for (const { name } of filesOf(root, entry, id)) names.add(name);
  }
  for (const name of names) {
    if (name === meta) continue;
    rmSync(join(folder, name), { force: true });
    // A temporary file, where a process died before it moved the file into place.
    if (stages === undefined) rmSync(join(folder, temporaryPath(name)), { force: true });
  }
  rmSync(join(folder, temporaryPath(meta)), { force: true });
  rmSync(join(folder, meta), { force: true });
}
