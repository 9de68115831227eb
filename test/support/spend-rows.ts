/** Rows of spend, and a store that has them. */

import { openSpend, type SpendOptions } from '../../src/money/open-spend.ts';
import type { SpendRow } from '../../src/money/schema.ts';
import { ADDED, type Column, NO_TOKENS } from '../../src/money/schema.ts';
import type { SpendStore } from '../../src/money/spend-store.ts';

export const SPEND_TIME = Date.UTC(2027, 0, 15, 12);

/** What stands in columns that were added to the tables: nothing. */
export const NOTHING_ADDED = Object.fromEntries(
  ADDED.map(({ name, type }: Column) => [name, type === 'text' ? '' : 0]),
) as Pick<SpendRow, (typeof ADDED)[number]['name']>;

export const spendRow = (more: Partial<SpendRow> = {}): SpendRow => ({
  ...NO_TOKENS,
  ...NOTHING_ADDED,
  request: 'req_1',
  time: SPEND_TIME,
  key: 'ci',
  labels: '{"team":"web"}',
  session: undefined,
  client: 'test',
  model: 'm',
  target: 'up/m',
  upstream_key: undefined,
  hop: 1,
  attempt: 1,
  status: 200,
  ended: 'done',
  input: 10,
  output: 5,
  estimated: 0,
  cost: 1000,
  price: '{}',
  trace: undefined,
  requests: 1,
  ...more,
});

let writers = 0;

/** As a journal's keeper writes them, some at a time. */
export async function putRows(store: SpendStore, rows: readonly SpendRow[], size = 500) {
  const writer = `test-${++writers}`;
  for (let at = 0; at < rows.length; at += size) {
    const entries = rows.slice(at, at + size).map((row, i) => ({ n: at + i + 1, value: { row } }));
    await store.fold(writer, at, at + entries.length, entries);
  }
}

const failing = (message: string) => {
  throw new Error(message);
};

/** The journal of a process; nothing of it goes wrong. */
export const openedSpend = (path: string, more: Partial<SpendOptions> = {}) =>
  openSpend({
    path,
    keep: () => ({ rows: 0, totals: 0 }),
    onProblem: failing,
    onRecovered: () => {},
    onRefused: failing,
    onLost: () => {},
    ...more,
  });
