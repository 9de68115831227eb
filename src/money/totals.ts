/** Sums of spend rows by span, key, labels, model and target, and by session, before they are written. */

import { DAY, HOUR, MONTH, SUM_COLUMNS, type SumColumn, type Sums } from './schema.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;

interface Group extends Sums {
  /** Milliseconds since 1970: an hour, in totals of sessions a day. */
  readonly start: number;
  readonly key: string;
}

export interface TotalsGroup extends Group {
  /** JSON. */
  readonly labels: string;
  readonly model: string;
  readonly target: string;
}

export interface SessionGroup extends Group {
  readonly session: string;
  /** Ids of the first and the last of its rows; null: none of them is in the file. */
  first_row: number | null;
  last_row: number | null;
}

/** What is summed of a row, new or stored. */
export type SummedRow = Pick<TotalsGroup, 'key' | 'labels' | 'model' | 'target'> & {
  readonly time: number;
  readonly session: string | null | undefined;
  readonly cost: number | null | undefined;
};

/** Groups of rows; the number of groups is the caller's to bound. */
export class RowTotals {
  readonly hours = new Map<string, TotalsGroup>();
  readonly sessions = new Map<string, SessionGroup>();
  readonly #columns: readonly SumColumn[];
  readonly #nothing: Sums;
  /** Those of the row before: rows of one key often follow each other. */
  #lastRow: SummedRow | undefined;
  #lastGroup: TotalsGroup | undefined;

  constructor(columns = SUM_COLUMNS) {
    this.#columns = columns;
    this.#nothing = Object.fromEntries(columns.map((name) => [name, 0])) as Sums;
  }

  get size(): number {
    return this.hours.size + this.sessions.size;
  }

  /**
   * @param id of the row in the file; null: it is not there
   * @param sign -1: the row is taken back
   */
  add(row: SummedRow, id: number | null, sign: 1 | -1 = 1): void {
    const start = row.time - (row.time % HOUR_MS);
    const last = this.#lastRow;
    const group =
      last !== undefined &&
      this.#lastGroup?.start === start &&
      last.target === row.target &&
      last.key === row.key &&
      last.model === row.model &&
      last.labels === row.labels
        ? this.#lastGroup
        : this.#hour(start, row);
    this.#lastRow = row;
    this.#lastGroup = group;
    this.#sum(group, row, sign);
    const { session, key, time } = row;
    if (session === undefined || session === null) return;
    const own = this.#session({ start: time - (time % DAY_MS), session, key });
    own.first_row ??= id;
    own.last_row = id ?? own.last_row;
    this.#sum(own, row, sign);
  }

  addGroups(hours: Iterable<TotalsGroup>, sessions: Iterable<SessionGroup>): void {
    for (const one of hours) this.#merge(this.#hour(one.start, one), one);
    for (const one of sessions) this.#merge(this.#session(one), one);
  }

  /** Of each span, in the order in which everybody writes them. */
  spans(): readonly (TotalsGroup & { readonly span: number })[] {
    const all = new Map<string, TotalsGroup & { readonly span: number }>();
    for (const [name, group] of this.hours) {
      const rest = name.slice(name.indexOf(' '));
      for (const [span, start] of [
        [HOUR, group.start],
        [DAY, group.start - (group.start % DAY_MS)],
        [MONTH, monthOf(group.start)],
      ] as const) {
        const place = `${span} ${start}${rest}`;
        const known = all.get(place);
        if (known === undefined) all.set(place, { ...group, span, start });
        else this.#merge(known, group);
      }
    }
    return inOrder(all);
  }

  days(): readonly SessionGroup[] {
    return inOrder(this.sessions);
  }

  #hour(start: number, row: Omit<TotalsGroup, 'start' | SumColumn>): TotalsGroup {
    const { key, labels, model, target } = row;
    const name = `${start} ${key}\0${labels}\0${model}\0${target}`;
    let group = this.hours.get(name);
    if (group === undefined) {
      group = { start, key, labels, model, target, ...this.#nothing };
      this.hours.set(name, group);
    }
    return group;
  }

  #session({ start, session, key }: Pick<SessionGroup, 'start' | 'session' | 'key'>) {
    const name = `${start} ${session}\0${key}`;
    let group = this.sessions.get(name);
    if (group === undefined) {
      group = { start, session, key, first_row: null, last_row: null, ...this.#nothing };
      this.sessions.set(name, group);
    }
    return group;
  }

  #sum(sums: Sums, row: SummedRow, sign: 1 | -1): void {
    const values = row as unknown as Readonly<Record<string, number | null | undefined>>;
    for (const name of this.#columns) {
      const value = values[name];
      // Most are nothing.
      if (value) sums[name] += sign * value;
    }
    sums.tries += sign;
    if (row.cost === undefined || row.cost === null) sums.unpriced += sign;
  }

  #merge(sums: Sums, more: Sums): void {
    for (const name of this.#columns) sums[name] += more[name] ?? 0;
  }
}

const inOrder = <T>(groups: ReadonlyMap<string, T>): readonly T[] =>
  [...groups].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, group]) => group);

// The labels of a key are one object for as long as the key stays as it is.
const texts = new WeakMap<object, string>();

/** Labels as JSON, by name: the same labels are the same text. */
export function labelsText(labels: Readonly<Record<string, string>>): string {
  let text = texts.get(labels);
  if (text === undefined) {
    const sorted = Object.entries(labels).toSorted(([a], [b]) => (a < b ? -1 : 1));
    text = JSON.stringify(Object.fromEntries(sorted));
    texts.set(labels, text);
  }
  return text;
}

/** The beginning of a month (UTC). */
export function monthOf(time: number): number {
  const date = new Date(time);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1);
}
