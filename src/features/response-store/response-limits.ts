/** Chooses the stored responses that go beyond the limits, so that no owner pushes out the responses of another. */

import { readBoolean } from '../../state/sql/sql.ts';
import type { ResponseLimits, RowKey } from './stored-response.ts';

export interface ShareRow extends RowKey {
  readonly thread: string;
  readonly seq: number;
  readonly bytes: number;
  readonly used: number;
  readonly idle: number | boolean;
}

/** A row, with the count and the bytes of its owner's rows up to it, from the newest on. */
interface Placed {
  readonly row: ShareRow;
  readonly rows: number;
  readonly bytes: number;
}

/**
 * The rows to remove. Rows are ordered by their place among the rows of their owner, the newest first, and those beyond
 * a limit go: they belong to the owners that have most. A conversation goes as a whole. Only the newest one of an owner,
 * if it is too large by itself, loses its oldest responses one by one.
 */
export function beyondLimits(all: readonly ShareRow[], limits: ResponseLimits): readonly RowKey[] {
  const kept = all.filter(({ idle }) => !readBoolean(idle));
  const newest = kept.sort(
    (a, b) =>
      b.used - a.used || (a.thread < b.thread ? -1 : a.thread > b.thread ? 1 : b.seq - a.seq),
  );
  const newestThread = new Map<string, string>();
  const totals = new Map<string, { rows: number; bytes: number }>();
  const placed = newest.map((row): Placed => {
    if (!newestThread.has(row.owner)) newestThread.set(row.owner, row.thread);
    const before = totals.get(row.owner) ?? { rows: 0, bytes: 0 };
    const own = { rows: before.rows + 1, bytes: before.bytes + row.bytes };
    totals.set(row.owner, own);
    return { row, ...own };
  });
  const beyond = new Set<ShareRow>();
  // Sorting keeps the order of equals: the newest first.
  placed.sort((a, b) => a.rows - b.rows);
  for (const { row } of placed.slice(limits.rows)) beyond.add(row);
  let bytes = 0;
  for (const { row } of placed.sort((a, b) => a.bytes - b.bytes)) {
    bytes += row.bytes;
    if (bytes > limits.bytes) beyond.add(row);
  }
  const cut = new Set([...beyond].map(({ owner, thread }) => `${owner}\n${thread}`));
  return all.filter(
    (row) =>
      readBoolean(row.idle) ||
      beyond.has(row) ||
      (newestThread.get(row.owner) !== row.thread && cut.has(`${row.owner}\n${row.thread}`)),
  );
}
