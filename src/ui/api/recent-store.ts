/** The samples on disk together with the exchanges that this process holds in memory, as one store. */

import type { RecentSamples } from '../../samples/record/recent.ts';
import type { SampleFilter, SampleRow, SampleStore } from '../../samples/sample.ts';
import { exportSample } from '../../samples/store/export-import.ts';
import { fits } from './list.ts';

const newestFirst = (a: SampleRow, b: SampleRow) => b.time - a.time || (a.id < b.id ? 1 : -1);

/**
 * Exchanges in memory are found once `recent.read` has masked them. Statistics count what is on disk alone,
 * and what is written goes to disk.
 */
export function withRecent(store: SampleStore, recent: RecentSamples): SampleStore {
  const rowsThatFit = (filter: SampleFilter) => {
    const { before } = filter;
    return recent.rows().filter((row) => {
      if (!fits(row, filter)) return false;
      const { time, id } = row;
      return before === undefined || time < before.time || (time === before.time && id < before.id);
    });
  };
  const merged: SampleStore = {
    ...store,
    list(filter = {}) {
      const found = rowsThatFit(filter);
      const rows = store.list(filter);
      if (found.length === 0) return rows;
      return [...found, ...rows].sort(newestFirst).slice(0, filter.limit);
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
