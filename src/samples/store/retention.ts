/** Removes samples that are too old or too many: successful ones first, failed ones last. */

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { isObject } from '../../lib/json/json.ts';
import type { Steps } from '../../lib/loop/steps.ts';
import type { HashedName } from '../../state/erasures.ts';
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
 * At most `limit` samples over the limits: successful samples by age, number and size; failed ones by their own age and
 * number, and by size only once no successful one is left. Where they are too many or too large, the oldest go of the
 * owner that has most: what one key makes does not push out the samples of another.
 */
export function overdue(
  index: SampleIndex,
  retention: Retention,
  now: number,
  limit = STEP,
): readonly SampleRow[] {
  const { keepDays, keepFailedDays, maxBytes, maxCount } = retention;
  const out = new Map<string, SampleRow>();
  let bytes = index.totals(false).bytes + index.totals(true).bytes;
  for (const failed of [false, true]) {
    let { count } = index.totals(failed);
    const days = failed ? keepFailedDays : keepDays;
    const take = (row: SampleRow) => {
      out.set(row.id, row);
      count--;
      bytes -= row.bytes;
    };
    if (days > 0) {
      for (const row of index.oldest(failed, limit - out.size)) {
        if (row.time >= now - days * DAY) break;
        take(row);
      }
    }
    let shares: OwnedSamples | undefined;
    while (out.size < limit) {
      const many = maxCount > 0 && count > maxCount;
      if (!many && !(maxBytes > 0 && bytes > maxBytes)) break;
      shares ??= new OwnedSamples(index, failed, out, limit);
      const row = shares.next(many ? 'count' : 'bytes');
      if (row === undefined) break;
      take(row);
    }
  }
  return [...out.values()];
}

interface Owned {
  readonly owner: string;
  count: number;
  bytes: number;
  /** Its oldest samples, the next one last; read when they are needed. */
  rows?: SampleRow[];
}

/** The samples of each owner, given out one by one. */
class OwnedSamples {
  readonly #owners: Owned[];

  constructor(
    private readonly index: SampleIndex,
    private readonly failed: boolean,
    private readonly taken: ReadonlyMap<string, SampleRow>,
    private readonly limit: number,
  ) {
    this.#owners = index.owned(failed).map((one) => ({ ...one }));
    const by = new Map(this.#owners.map((one) => [one.owner, one]));
    for (const row of taken.values()) {
      const one = row.failed === failed ? by.get(row.owner) : undefined;
      if (one === undefined) continue;
      one.count--;
      one.bytes -= row.bytes;
    }
  }

  /** The oldest one of the owner that has most; undefined: those that are left still run. */
  next(by: 'count' | 'bytes'): SampleRow | undefined {
    for (;;) {
      let most: Owned | undefined;
      for (const one of this.#owners) {
        if (one.rows?.length !== 0 && (most === undefined || one[by] > most[by])) most = one;
      }
      if (most === undefined) return undefined;
      most.rows ??= this.index
        .oldest(this.failed, this.limit, most.owner)
        .filter(({ id }) => !this.taken.has(id))
        .reverse();
      const row = most.rows.pop();
      if (row === undefined) continue;
      most.count--;
      most.bytes -= row.bytes;
      return row;
    }
  }
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
