/** Rows of the file of spend and the totals that count them: written and taken back together. */

import type { Database } from 'bun:sqlite';
import { DAY, HOUR, MONTH, SUM_COLUMNS, type Sums } from './schema.ts';
import type { SpendRow } from './spend.ts';
import { labelsText, monthOf, RowTotals } from './totals.ts';

const DAY_MS = 86_400_000;
const MAX_TEXTS = 10_000;

export class BookedRows {
  readonly #db: Database;
  readonly #sql: ReturnType<typeof statements>;
  readonly #onGone: (id: number, time: number) => void;
  readonly #textIds = new Map<string, number>();
  /** Pages written since the last checkpoint, at most. */
  logPages = 0;

  /** @param onGone a row was taken back, in the same transaction */
  constructor(db: Database, onGone: (id: number, time: number) => void) {
    this.#db = db;
    this.#sql = statements(db);
    this.#onGone = onGone;
  }

  transaction<T>(work: () => T): T {
    try {
      return this.#db.transaction(work).immediate();
    } catch (thrown) {
      // Ids of texts whose insertion was taken back.
      this.#textIds.clear();
      throw thrown;
    }
  }

  /** @returns the row's id */
  insert(row: SpendRow): number {
    const { tokens } = row;
    return Number(
      this.#sql.addRow.run(
        row.time,
        row.request,
        row.key,
        this.#textId(labelsText(row.labels)),
        row.session ?? null,
        row.client,
        row.model,
        row.target,
        row.upstreamKey ?? null,
        row.hop,
        row.attempt,
        row.status ?? null,
        row.ended,
        tokens.input,
        tokens.output,
        tokens.cacheRead,
        tokens.cacheWrite,
        tokens.cacheWrite1h,
        tokens.reasoning,
        tokens.searches,
        row.estimated ? 1 : 0,
        row.cost ?? null,
        row.price === undefined ? null : this.#textId(row.price),
        row.trace ?? null,
      ).lastInsertRowid,
    );
  }

  /** Adds to the totals. */
  add({ groups, sessions }: RowTotals): void {
    this.logPages += 3 * groups.size + sessions.size + 1;
    for (const group of groups.values()) {
      const { hour, key, model, target } = group;
      const labels = this.#textId(group.labels);
      const sums = sumsOf(group);
      for (const [span, start] of [
        [HOUR, hour],
        [DAY, hour - (hour % DAY_MS)],
        [MONTH, monthOf(hour)],
      ] as const) {
        this.#sql.addTotals.run(span, start, key, labels, model, target, ...sums);
      }
    }
    for (const group of sessions.values()) {
      const day = group.hour - (group.hour % DAY_MS);
      const { session, key, firstRow, lastRow } = group;
      this.#sql.addSessionTotals.run(day, session, key, ...sumsOf(group), firstRow, lastRow);
    }
  }

  /**
   * Rows go, and their part of the totals with them.
   * @param time of a single row; another one under its id stays
   */
  takeBack(ids: readonly number[], time?: number): void {
    const totals = new RowTotals();
    for (const id of ids) {
      const row = this.#sql.stored.get(id);
      if (row === null || (time !== undefined && row.time !== time)) continue;
      this.#sql.dropRow.run(id);
      this.#onGone(id, row.time);
      const minus: Record<string, number> = { tries: -1, estimated: -row.estimated };
      for (const name of SUM_COLUMNS) minus[name] ??= -Number(row[name as keyof StoredRow] ?? 0);
      minus.unpriced = row.cost === null ? -1 : 0;
      const { key, model, target, session, labels_text: labels } = row;
      const common = {
        hour: row.time - (row.time % 3_600_000),
        key,
        labels,
        ...(minus as never as Sums),
      };
      totals.groups.set(`${id}`, { ...common, model, target });
      if (session !== null) {
        totals.sessions.set(`${id}`, { ...common, session, firstRow: id, lastRow: id });
      }
    }
    this.add(totals);
  }

  #textId(text: string): number {
    let id = this.#textIds.get(text);
    if (id === undefined) {
      id = this.#sql.textId.get(text)?.id ?? this.#sql.addText.get(text)!.id;
      if (this.#textIds.size >= MAX_TEXTS) this.#textIds.clear();
      this.#textIds.set(text, id);
    }
    return id;
  }
}

const SUM_NAMES = SUM_COLUMNS.join(', ');
const SUM_PLACES = SUM_COLUMNS.map(() => '?').join(', ');
const ADDED = SUM_COLUMNS.map((name) => `${name} = ${name} + excluded.${name}`).join(', ');

function statements(db: Database) {
  return {
    textId: db.query<{ id: number }, [string]>('SELECT id FROM texts WHERE text = ?'),
    addText: db.query<{ id: number }, [string]>('INSERT INTO texts (text) VALUES (?) RETURNING id'),
    addRow: db.query(
      `INSERT INTO spend (time, request, key, labels, session, client, model, target, upstream_key, hop, attempt,
        status, ended, input, output, cache_read, cache_write, cache_write_1h, reasoning, searches, estimated, cost,
        price, trace) VALUES (${Array.from({ length: 24 }, () => '?').join(', ')})`,
    ),
    stored: db.query<StoredRow, [number]>(
      'SELECT spend.*, texts.text AS labels_text FROM spend JOIN texts ON texts.id = spend.labels WHERE spend.id = ?',
    ),
    dropRow: db.query<unknown, [number]>('DELETE FROM spend WHERE id = ?'),
    addTotals: db.query(
      `INSERT INTO totals (span, start, key, labels, model, target, ${SUM_NAMES})
        VALUES (?, ?, ?, ?, ?, ?, ${SUM_PLACES}) ON CONFLICT DO UPDATE SET ${ADDED}`,
    ),
    addSessionTotals: db.query(
      `INSERT INTO session_totals (start, session, key, ${SUM_NAMES}, first_row, last_row)
        VALUES (?, ?, ?, ${SUM_PLACES}, ?, ?) ON CONFLICT DO UPDATE SET ${ADDED},
        first_row = min(coalesce(first_row, excluded.first_row), coalesce(excluded.first_row, first_row)),
        last_row = max(coalesce(last_row, excluded.last_row), coalesce(excluded.last_row, last_row))`,
    ),
  };
}

interface StoredRow {
  readonly id: number;
  readonly time: number;
  readonly key: string;
  readonly model: string;
  readonly target: string;
  readonly session: string | null;
  readonly labels_text: string;
  readonly estimated: number;
  readonly cost: number | null;
}

const sumsOf = (sums: Sums): number[] => SUM_COLUMNS.map((name) => sums[name]);
