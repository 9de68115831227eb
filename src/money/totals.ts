/** Sums of spend rows by hour, key, labels, model and target, and by session, before they are written. */

import { NO_SUMS, type Sums } from './schema.ts';
import type { SpendRow } from './spend.ts';

const HOUR_MS = 3_600_000;

interface Group extends Sums {
  /** Milliseconds since 1970. */
  readonly hour: number;
  readonly key: string;
  /** JSON. */
  readonly labels: string;
}

export interface TotalsGroup extends Group {
  readonly model: string;
  readonly target: string;
}

export interface SessionGroup extends Group {
  readonly session: string;
  /** Ids of the first and the last of its rows; null: none of them is in the file. */
  firstRow: number | null;
  lastRow: number | null;
}

/** Groups of rows; the number of groups is the caller's to bound. */
export class RowTotals {
  readonly groups = new Map<string, TotalsGroup>();
  readonly sessions = new Map<string, SessionGroup>();
  /** Those of the row before: rows of one key often follow each other. */
  #lastRow: SpendRow | undefined;
  #lastGroup: TotalsGroup | undefined;

  get size(): number {
    return this.groups.size + this.sessions.size;
  }

  /** @param id of the row in the file; null: it is not there */
  add(row: SpendRow, id: number | null): void {
    const hour = row.time - (row.time % HOUR_MS);
    const last = this.#lastRow;
    const group =
      last !== undefined &&
      this.#lastGroup?.hour === hour &&
      last.target === row.target &&
      last.key === row.key &&
      last.model === row.model &&
      last.labels === row.labels
        ? this.#lastGroup
        : this.#groupOf(row, hour);
    this.#lastRow = row;
    this.#lastGroup = group;
    addRow(group, row);
    if (row.session !== undefined) this.#addToSession(row, row.session, hour, id);
  }

  #groupOf(row: SpendRow, hour: number): TotalsGroup {
    const labels = labelsText(row.labels);
    const name = `${hour} ${row.key}\0${labels}\0${row.model}\0${row.target}`;
    let group = this.groups.get(name);
    if (group === undefined) {
      const { key, model, target } = row;
      group = { hour, key, labels, model, target, ...NO_SUMS };
      this.groups.set(name, group);
    }
    return group;
  }

  #addToSession(row: SpendRow, session: string, hour: number, id: number | null): void {
    const sessionName = `${hour} ${row.key}\0${session}`;
    let own = this.sessions.get(sessionName);
    if (own === undefined) {
      const { key, labels } = row;
      const ids = { firstRow: id, lastRow: id };
      own = { hour, key, labels: labelsText(labels), session, ...ids, ...NO_SUMS };
      this.sessions.set(sessionName, own);
    }
    own.lastRow = id;
    addRow(own, row);
  }
}

function addRow(sums: Sums, { tokens, cost, estimated }: SpendRow): void {
  sums.tries++;
  sums.input += tokens.input;
  sums.output += tokens.output;
  sums.cache_read += tokens.cacheRead;
  sums.cache_write += tokens.cacheWrite;
  sums.cache_write_1h += tokens.cacheWrite1h;
  sums.reasoning += tokens.reasoning;
  sums.searches += tokens.searches;
  if (cost === undefined) sums.unpriced++;
  else sums.cost += cost;
  if (estimated) sums.estimated++;
}

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
