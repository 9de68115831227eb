/** The samples on disk together with the exchanges that this process holds in memory, as one store. */

import { RECENT_LIMITS, type RecentSamples } from '../../samples/record/recent.ts';
import type { Prices } from '../../samples/replay/cost.ts';
import type { SampleFilter, SampleRow, SampleStore } from '../../samples/sample.ts';
import { exportSample } from '../../samples/store/export-import.ts';
import { comparePlaces } from '../../samples/store/row-order.ts';
import { fits, NEWEST, placeOf, priced } from './list.ts';
import type { ReplicaSamples } from './options.ts';

/** The last exchanges of this process, and those that run, here or on other replicas. */
export function exchangesInMemory(
  recent: RecentSamples | undefined,
  running: readonly ReplicaSamples['running'][],
): RecentSamples {
  const only = (id: string) => {
    for (const place of running) {
      const meta = place?.find(id);
      if (meta !== undefined) return { meta, body: (stage: string) => place?.body?.(id, stage) };
    }
    return undefined;
  };
  return {
    limits: recent?.limits ?? RECENT_LIMITS,
    rows: () => [...(recent?.rows() ?? []), ...running.flatMap((place) => place?.rows() ?? [])],
    read: async (id) => recent?.read(id),
    find: (id) => recent?.find(id) ?? only(id),
  };
}

/**
 * Exchanges in memory are found once `recent.read` has masked them. Statistics count what is on disk alone,
 * and what is written goes to disk.
 */
export function withRecent(
  store: SampleStore,
  recent: RecentSamples,
  prices: () => Prices,
): SampleStore {
  const placed = (row: SampleRow, filter: SampleFilter) =>
    placeOf(priced(row, prices()), filter.sort);
  const rowsThatFit = (filter: SampleFilter) => {
    const { before, sort } = filter;
    return recent.rows().filter((row) => {
      if (!fits(priced(row, prices()), filter)) return false;
      if (before === undefined) return true;
      const last = { ...before, value: before.value ?? before.time };
      return comparePlaces(placed(row, filter), last, sort ?? NEWEST) > 0;
    });
  };
  const merged: SampleStore = {
    ...store,
    // Not the one of now: a folder that comes later has another index.
    get texts() {
      return store.texts;
    },
    list(filter = {}) {
      const found = rowsThatFit(filter);
      const rows = store.list(filter);
      if (found.length === 0) return rows;
      // One that ends on another replica is in both for a moment.
      const onDisk = new Set(rows.map(({ id }) => id));
      return [...found.filter(({ id }) => !onDisk.has(id)), ...rows]
        .map((row) => ({ row, place: placed(row, filter) }))
        .sort((a, b) => comparePlaces(a.place, b.place, filter.sort ?? NEWEST))
        .slice(0, filter.limit)
        .map(({ row }) => row);
    },
    find: (id) => recent.find(id)?.meta ?? store.find(id),
    row: (meta) => ({
      ...store.row(meta),
      ...(recent.find(meta.id) !== undefined && { in_memory: true }),
    }),
    read(meta, stage) {
      const sample = recent.find(meta.id);
      return sample === undefined ? store.read(meta, stage) : sample.body(stage);
    },
    export: (meta, redact) => exportSample(meta, (stage) => merged.read(meta, stage), redact),
  };
  return merged;
}
