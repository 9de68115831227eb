/** The orders in which samples can be listed, as SQL and for rows that are not in the index. */

import type { SampleRow, SampleSort, SampleSortName } from '../sample.ts';

interface Order {
  readonly sql: string;
  readonly of: (row: SampleRow, cost: number | null) => string | number | null;
  /** The value is a text. */
  readonly text?: boolean;
}

const number = (column: keyof SampleRow): Order => ({
  sql: column,
  of: (row) => row[column] as number | null,
});
const text = (column: keyof SampleRow): Order => ({
  sql: column,
  of: (row) => row[column] as string,
  text: true,
});

const ORDERS: Readonly<Record<SampleSortName, Order>> = {
  time: number('time'),
  status: number('status'),
  hops: number('hops'),
  tokens: number('input_tokens'),
  out: number('output_tokens'),
  cached: number('cached_tokens'),
  first: number('first_byte_ms'),
  total: number('total_ms'),
  bytes: number('bytes'),
  cost: { sql: 'cost', of: (_row, cost) => cost },
  model: text('model'),
  target: text('target'),
  client: text('client'),
  key: text('owner'),
  session: text('session'),
};

/** Unknown numbers come last in both directions. */
const LAST = { down: -1, up: 1e300 } as const;
const lastOf = ({ up }: SampleSort) => (up ? LAST.up : LAST.down);

/** The value by which a row is ordered, comparable with `<` among rows of the same order. */
export function sortValue(row: SampleRow, sort: SampleSort, cost: number | null): string | number {
  const order = ORDERS[sort.by];
  return order.of(row, cost) ?? lastOf(sort);
}

/** The same as an SQL expression. */
export function sortSql(sort: SampleSort): string {
  const { sql, text } = ORDERS[sort.by];
  return text === true ? sql : `coalesce(${sql}, ${lastOf(sort)})`;
}

/** A place in a sorted list. */
export interface Placed {
  readonly value: string | number;
  readonly time: number;
  readonly id: string;
}

/** Compares two places: negative when `a` comes first. Equal values stand newest first. */
export function comparePlaces(a: Placed, b: Placed, { up }: SampleSort): number {
  if (a.value !== b.value) return a.value < b.value === up ? -1 : 1;
  return b.time - a.time || (a.id === b.id ? 0 : a.id < b.id ? 1 : -1);
}
