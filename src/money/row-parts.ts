/** A row of spend in two parts: columns that many rows have in common become JSON once, and stand beside its own. */

import { NO_TOKENS, type SpendRow, type SpendTokens } from './schema.ts';

/** Columns that hardly differ between rows of one target. */
export type CommonColumns = Omit<
  SpendRow,
  'time' | 'request' | 'session' | 'trace' | 'cost' | keyof SpendTokens
>;
/** What differs in each row; counts of nothing are left out. */
export type OwnColumns = Pick<SpendRow, 'time' | 'request' | 'session' | 'trace' | 'cost'> & {
  readonly [name in keyof SpendTokens]: number | undefined;
};

export interface CommonRow {
  readonly columns: CommonColumns;
  readonly json: string;
}

/** A row whose own columns stand beside a common row, or which has them all. */
export function wholeRow(own: OwnColumns | SpendRow, common?: CommonRow): SpendRow {
  const known = Object.entries(own).filter(([, value]) => value !== undefined);
  return { ...NO_TOKENS, ...common?.columns, ...Object.fromEntries(known) } as SpendRow;
}

/** Of one target: keys, models that were asked for, and ends. */
const MAX_OF_TARGET = 8;
const MAX_TARGETS = 1000;

export class CommonRows {
  readonly #known = new Map<string, CommonRow[]>();

  /** The same columns are the same object for as long as they are remembered. */
  of(columns: CommonColumns): CommonRow {
    let known = this.#known.get(columns.target);
    if (known === undefined) {
      if (this.#known.size >= MAX_TARGETS) this.#known.clear();
      known = [];
      this.#known.set(columns.target, known);
    }
    for (const one of known) if (isSame(one.columns, columns)) return one;
    const made = { columns, json: JSON.stringify({ ...NO_TOKENS, ...columns }) };
    known.unshift(made);
    if (known.length > MAX_OF_TARGET) known.pop();
    return made;
  }
}

const isSame = (a: CommonColumns, b: CommonColumns): boolean =>
  a.key === b.key &&
  a.model === b.model &&
  a.client === b.client &&
  a.status === b.status &&
  a.ended === b.ended &&
  a.upstream_key === b.upstream_key &&
  a.hop === b.hop &&
  a.attempt === b.attempt &&
  a.estimated === b.estimated &&
  a.requests === b.requests &&
  a.price === b.price &&
  a.labels === b.labels &&
  a.target === b.target;
