/** Takes in rows that versions before the journal have left beside the tables: of a killed process, and for a shared database. */

import type { Database } from 'bun:sqlite';
import { existsSync, readdirSync, readFileSync, unlinkSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { tryParse } from '../lib/json/json.ts';
import { isRunning } from '../lib/process/running.ts';
import { openAsItIs } from '../state/versioned-store.ts';
import { ENDED, type SpendRow, type SpendTokens, type StoredRow, TAKEN_OVER } from './schema.ts';
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

/** A line of `spend.db.tail-WRITER`; the first one of each file is another. */
interface TailLine {
  readonly line: number;
  readonly row: EarlierRow;
  /** The number of the try while it ran; 0: it had none. */
  readonly running: number;
  readonly n: number;
  readonly at: number;
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
  const left = new EarlierFiles(store, path);
  try {
    return await left.take();
  } finally {
    left.close();
  }
}

class EarlierFiles {
  /** It is not brought up to date: a version that still runs writes to it. */
  readonly #db: Database | undefined;
  readonly #isFile: boolean;

  constructor(
    private readonly store: SpendStore,
    private readonly path: string,
  ) {
    this.#isFile = store.database.form === 'file';
    this.#db = existsSync(path) ? openAsItIs(path) : undefined;
  }

  async take(): Promise<boolean> {
    const names = this.#tails();
    let isOver = true;
    for (const name of names) isOver = (await this.#takeTail(name)) && isOver;
    if (this.#db === undefined || !this.#has('writers')) return isOver;
    if (!this.#isFile && this.#has('unsent')) while (await this.#takeUnsent());
    return (await this.#takeRunning()) && isOver;
  }

  close(): void {
    this.#db?.close();
  }

  #has(table: string): boolean {
    return this.#db?.query('SELECT 1 FROM sqlite_master WHERE name = ?').get(table) != null;
  }

  #tails(): readonly string[] {
    try {
      const prefix = `${basename(this.path)}.tail-`;
      return readdirSync(dirname(this.path)).filter((name) => name.startsWith(prefix));
    } catch {
      return [];
    }
  }

  /** Rows that a process had not written to the file. False: it runs. */
  async #takeTail(name: string): Promise<boolean> {
    const path = join(dirname(this.path), name);
    const [head, ...lines] = readFileSync(path, 'utf8').split('\n').map(tryParse);
    const {
      writer = name.slice(name.indexOf('.tail-') + 6),
      pid,
      started,
    } = (head ?? {}) as Partial<Record<'writer' | 'started', string>> & { readonly pid?: number };
    if (pid !== process.pid && isRunning(pid ?? Number(writer.split('-')[0]), started ?? null)) {
      return false;
    }
    const through = this.#has('tails')
      ? (this.#db!.query<{ line: number }, [string]>('SELECT line FROM tails WHERE writer = ?').get(
          writer,
        )?.line ?? 0)
      : 0;
    const rows = (lines as readonly unknown[])
      .filter(isTailLine)
      .filter(({ line }) => line > through);
    this.#nameRunning(writer);
    for (let at = 0; at < rows.length; at += AT_ONCE) {
      const some = rows.slice(at, at + AT_ONCE);
      const last = some.at(-1)!.line;
      await this.store.writing(async (inside) => {
        await this.store.replace(
          inside,
          some.map(({ row, n, at }) => ({ row: rowOf(row), at, writer, n, rev: ENDED })),
        );
        if (!this.#isFile) return;
        await inside.query(
          `INSERT INTO hopgate.tails (writer, line, time) VALUES ($1, $2, $3)
            ON CONFLICT (writer) DO UPDATE SET line = excluded.line`,
          [writer, last, Date.now()],
        );
      });
    }
    if (this.#isFile) await this.store.ended(writer);
    unlinkSync(path);
    return true;
  }

  /** In the file: tries of a process that is gone are named as those of a journal are. */
  #nameRunning(writer: string): void {
    if (!this.#isFile || this.#db === undefined || !this.#has('running')) return;
    const db = this.#db;
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
    const db = this.#db!;
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
    const all = this.#db!.query<RunningRow, [string]>(
      'SELECT seq, row, spend FROM running WHERE writer = ? AND spend IS NULL',
    ).all(writer);
    const rows = all.map(({ seq, row }) => {
      const open = rowOf(JSON.parse(row));
      return { row: open, at: open.time, writer, n: seq, rev: TAKEN_OVER };
    });
    if (rows.length > 0) await this.store.put(rows);
    this.#db!.query('DELETE FROM running WHERE writer = ?').run(writer);
  }

  /** Rows that the shared database has not got. False: there are none. */
  async #takeUnsent(): Promise<boolean> {
    const db = this.#db!;
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

const isTailLine = (value: unknown): value is TailLine =>
  typeof value === 'object' && value !== null && 'line' in value && 'row' in value;
