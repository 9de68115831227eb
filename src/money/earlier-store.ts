/** Takes in what versions before the journal have left: tries of a killed process, and rows for a shared database. */

import type { Database } from 'bun:sqlite';
import { existsSync } from 'node:fs';
import { isRunning } from '../lib/process/running.ts';
import { openAsItIs } from '../state/versioned-store.ts';
import { type SpendRow, type SpendTokens, type StoredRow, TAKEN_OVER } from './schema.ts';
import type { NamedRow, SpendStore } from './spend-store.ts';
import { labelsText } from './totals.ts';

const AT_ONCE = 500;

/** A row as those versions wrote it down. */
interface EarlierRow
  extends Omit<SpendRow, 'labels' | 'upstream_key' | 'estimated' | keyof SpendTokens> {
  readonly labels: Readonly<Record<string, string>>;
  readonly upstreamKey?: string;
  readonly estimated: boolean;
  readonly tokens: Readonly<
    Record<
      'input' | 'output' | 'cacheRead' | 'cacheWrite' | 'cacheWrite1h' | 'reasoning' | 'searches',
      number
    >
  >;
}

function rowOf({ tokens, labels, upstreamKey, estimated, ...row }: EarlierRow): SpendRow {
  const { cacheRead, cacheWrite, cacheWrite1h, ...same } = tokens;
  return {
    ...row,
    ...same,
    labels: labelsText(labels),
    upstream_key: upstreamKey,
    estimated: estimated ? 1 : 0,
    cache_read: cacheRead,
    cache_write: cacheWrite,
    cache_write_1h: cacheWrite1h,
  };
}

/** A row of the file as a new one. */
export function rowFrom({ labels_text, price_text, ...stored }: StoredRow): SpendRow {
  const row = { ...stored, labels: labels_text, price: price_text };
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => [name, value ?? undefined]),
  ) as never as SpendRow;
}

/**
 * Takes it in.
 * @param path of the file of spend
 * @returns false: such a version still runs, and may be killed
 */
export async function takeEarlier(store: SpendStore, path: string): Promise<boolean> {
  if (!existsSync(path)) return true;
  // It is not brought up to date: a version that still runs writes to it.
  const db = openAsItIs(path);
  try {
    return await new EarlierFile(store, db).take();
  } finally {
    db.close();
  }
}

class EarlierFile {
  readonly #isFile: boolean;

  constructor(
    private readonly store: SpendStore,
    private readonly db: Database,
  ) {
    this.#isFile = store.database.form === 'file';
  }

  async take(): Promise<boolean> {
    if (!this.#has('writers')) return true;
    if (!this.#isFile && this.#has('unsent')) while (await this.#takeUnsent());
    return this.#takeRunning();
  }

  #has(table: string): boolean {
    return this.db.query('SELECT 1 FROM sqlite_master WHERE name = ?').get(table) !== null;
  }

  /** In the file: tries of a process that is gone are named as those of a journal are. */
  #nameRunning(writer: string): void {
    if (!this.#isFile) return;
    const { db } = this;
    db.transaction(() => {
      const all = db
        .query<RunningRow, [string]>('SELECT seq, row, spend FROM running WHERE writer = ?')
        .all(writer);
      for (const { seq, row, spend } of all) {
        const open = rowOf(JSON.parse(row));
        if (spend === null) {
          db.query('INSERT INTO spend_open VALUES (?, ?, ?, ?, ?)').run(
            ...([open.time, writer, seq, '', JSON.stringify(open)] as const),
          );
        } else {
          db.query('UPDATE spend SET at = ?, writer = ?, n = ?, rev = ? WHERE id = ?').run(
            ...([open.time, writer, seq, TAKEN_OVER, spend] as const),
          );
        }
      }
      db.query('DELETE FROM running WHERE writer = ?').run(writer);
    }).immediate();
  }

  /** Tries that ran in processes that are gone become rows as reserved. False: others run. */
  async #takeRunning(): Promise<boolean> {
    const { db } = this;
    const writers = db
      .query<Writer, []>(
        `SELECT r.writer AS id, w.pid, w.started FROM (SELECT DISTINCT writer FROM running) r
          LEFT JOIN writers w ON w.id = r.writer`,
      )
      .all();
    let isOver = true;
    for (const { id, pid, started } of writers) {
      if (pid !== process.pid && isRunning(pid ?? Number(id.split('-')[0]), started)) {
        isOver = false;
        continue;
      }
      this.#nameRunning(id);
      if (!this.#isFile) await this.#sendRunning(id);
      await this.store.ended(id);
    }
    return isOver;
  }

  async #sendRunning(writer: string): Promise<void> {
    const all = this.db
      .query<RunningRow, [string]>(
        'SELECT seq, row, spend FROM running WHERE writer = ? AND spend IS NULL',
      )
      .all(writer);
    const rows = all.map(({ seq, row }) => {
      const open = rowOf(JSON.parse(row));
      return { row: open, at: open.time, writer, n: seq, rev: TAKEN_OVER };
    });
    if (rows.length > 0) await this.store.put(rows);
    this.db.query('DELETE FROM running WHERE writer = ?').run(writer);
  }

  /** Rows that the shared database has not got. False: there are none. */
  async #takeUnsent(): Promise<boolean> {
    const { db } = this;
    const found = db
      .query<UnsentRow, []>(
        `SELECT spend.*, u.writer AS of_writer, u.n AS of_n, u.rev AS of_rev, u.at AS of_at,
            labels.text AS labels_text, prices.text AS price_text
          FROM unsent u JOIN spend ON spend.id = u.spend JOIN texts AS labels ON labels.id = spend.labels
            LEFT JOIN texts AS prices ON prices.id = spend.price
          WHERE u.refused = 0 AND u.rev > 0 LIMIT ${AT_ONCE}`,
      )
      .all();
    if (found.length === 0) return false;
    const rows = found.map(({ of_writer, of_n, of_rev, of_at, ...row }): NamedRow => {
      return { row: rowFrom(row), writer: of_writer, n: of_n, rev: of_rev, at: of_at };
    });
    await this.store.put(rows);
    db.transaction(() => {
      for (const { writer, n, rev } of rows) {
        db.query('DELETE FROM unsent WHERE writer = ? AND n = ? AND rev = ?').run(writer, n, rev);
      }
    }).immediate();
    return true;
  }
}

interface RunningRow {
  readonly seq: number;
  /** JSON. */
  readonly row: string;
  readonly spend: number | null;
}

interface Writer {
  readonly id: string;
  readonly pid: number | null;
  readonly started: string | null;
}

type UnsentRow = StoredRow & {
  readonly of_writer: string;
  readonly of_n: number;
  readonly of_rev: number;
  readonly of_at: number;
};
