/** The file of limits, `state/limits.db`: what windows have counted, how rates stood, which warnings were sent. */

import type { Database } from 'bun:sqlite';
import { messageOf } from '../lib/text/thrown.ts';
import { fileAt, isDamage, openStateFile, REMOVED, setAside } from '../state/versioned-store.ts';
import type { TotalRows, Totals, WindowKey } from './bank.ts';
import type { Clock } from './limits.ts';
import { LIMITS_SCHEMA } from './schema.ts';

/**
 * Milliseconds to wait for another process's write, on the event loop. Only the two programs of a restart write the same
 * file, for a millisecond each; on a busy machine one of them may be stopped in it, and a budget that went on without
 * the file would be exceeded.
 */
const BUSY_MS = 500;
/** After a failure, the file is left alone for so long. */
const AWAY_MS = 1000;
/** What the process before wrote about rates is of use for so long. */
const RATES_READ_MS = 120_000;
/** A process that hands over counts for so long after its last word. */
const SLOTS_MS = 10_000;
/** Rows that one cleaning deletes. */
const CLEANED_AT_ONCE = 1000;

export interface LimitsStoreOptions {
  /** Created with mode 0600, its directory with 0700. */
  readonly path: string;
  readonly clock: Clock;
  /** The file cannot be used: called once, until it works again. */
  readonly onProblem: (message: string) => void;
}

/** Never throws: where the file cannot be used, the caller goes on with what it has in memory. */
export class LimitsStore implements Totals {
  readonly #holder = Math.floor(Math.random() * 2 ** 52);
  #db: Database | undefined;
  /** Which file it is, as of {@link fileAt}. */
  #file = 0;
  #awayUntil = Number.NEGATIVE_INFINITY;
  #reported = false;
  #closed = false;
  #readsRates = true;
  readonly #opened: { readonly wall: number; readonly monotonic: number };

  constructor(private readonly options: LimitsStoreOptions) {
    const { clock } = options;
    this.#opened = { wall: clock.wall(), monotonic: clock.monotonic() };
  }

  update(work: (rows: TotalRows) => void): boolean {
    return this.#use(false, (db) => {
      const read = db.query<{ used: number }, [string, number]>(
        'SELECT used FROM windows WHERE law = ? AND start = ?',
      );
      const write = db.query(
        'INSERT INTO windows (law, start, used, keep_until) VALUES (?, ?, ?, ?) ON CONFLICT (law, start) DO UPDATE SET used = excluded.used',
      );
      const rows: TotalRows = {
        get: ({ law, start }) => read.get(law, start)?.used,
        set({ law, start, keepUntil }, total) {
          write.run(law, start, total, keepUntil);
        },
      };
      db.transaction(() => work(rows)).immediate();
      return true;
    });
  }

  rate(id: string): { readonly debt: number; readonly passed: number } | undefined {
    const { clock } = this.options;
    if (!this.#readsRates) return undefined;
    if (clock.monotonic() - this.#opened.monotonic > RATES_READ_MS) this.#readsRates = false;
    const row = this.#use(
      null,
      (db) =>
        db
          .query<{ debt: number; at: number }, [string]>('SELECT debt, at FROM rates WHERE law = ?')
          .get(id),
      false,
    );
    return row === null ? undefined : { debt: row.debt, passed: clock.wall() - row.at };
  }

  /** Writes down how rates stand; debts as the engine counts them. */
  saveRates(rates: readonly { readonly id: string; readonly debt: number }[]): void {
    if (rates.length === 0) return;
    const at = this.options.clock.wall();
    this.#use(undefined, (db) => {
      const write = db.query('INSERT OR REPLACE INTO rates (law, debt, at) VALUES (?, ?, ?)');
      db.transaction(() => {
        for (const { id, debt } of rates) write.run(id, debt, at);
      }).immediate();
    });
  }

  /** In a process that hands over: the slots that it still holds. */
  saveSlots(slots: readonly { readonly id: string; readonly held: number }[]): void {
    const until = this.options.clock.wall() + SLOTS_MS;
    this.#use(undefined, (db) => {
      db.transaction(() => {
        db.query('DELETE FROM slots WHERE holder = ?').run(this.#holder);
        const write = db.query('INSERT INTO slots (law, holder, held, until) VALUES (?, ?, ?, ?)');
        for (const { id, held } of slots) write.run(id, this.#holder, held, until);
      }).immediate();
    });
  }

  /** The slots of processes that hand over to this one, by limit; undefined: not known now. */
  slotsOfOthers(): ReadonlyMap<string, number> | undefined {
    const now = this.options.clock.wall();
    return this.#use(
      undefined,
      (db) => {
        const rows = db
          .query<{ law: string; held: number }, [number, number, number]>(
            // One that was written under a clock that was ahead is no longer believed than any other.
            'SELECT law, sum(held) AS held FROM slots WHERE holder <> ? AND until > ? AND until <= ? GROUP BY law',
          )
          .all(this.#holder, now, now + SLOTS_MS);
        return new Map(rows.map(({ law, held }) => [law, held]));
      },
      false,
    );
  }

  /** Whether this mark is reached for the first time in its period. Without the file, every one is. */
  isNew({ law, start, keepUntil }: WindowKey, mark: number): boolean {
    return this.#use(true, (db) => {
      const { changes } = db
        .query('INSERT OR IGNORE INTO notices (law, start, mark, keep_until) VALUES (?, ?, ?, ?)')
        .run(law, start, mark, keepUntil);
      return changes > 0;
    });
  }

  /**
   * Deletes what is of no use any more: a period is kept for once its length after its end, for a clock that is
   * set back. A clock that is set forth deletes nothing.
   */
  clean(): void {
    const { clock } = this.options;
    const passed = clock.monotonic() - this.#opened.monotonic;
    const now = Math.min(clock.wall(), this.#opened.wall + passed);
    this.#use(undefined, (db) => {
      for (const table of ['windows', 'notices']) {
        db.query(
          `DELETE FROM ${table} WHERE rowid IN (SELECT rowid FROM ${table} WHERE keep_until < ? LIMIT ${CLEANED_AT_ONCE})`,
        ).run(now);
      }
      db.query('DELETE FROM rates WHERE at < ?').run(now - 86_400_000);
      db.query('DELETE FROM slots WHERE until < ?').run(now);
    });
  }

  close(): void {
    this.#closed = true;
    this.#db?.close();
    this.#db = undefined;
  }

  /** @param writes false: its success says nothing of whether the file can be written again */
  #use<T>(otherwise: T, work: (db: Database) => T, writes = true): T {
    const { path, clock, onProblem } = this.options;
    const now = clock.monotonic();
    if (this.#closed || now < this.#awayUntil) return otherwise;
    try {
      if (this.#db !== undefined && fileAt(path) !== this.#file) this.#leaveRemoved();
      if (this.#db === undefined) {
        this.#db = openStateFile({ path, tables: LIMITS_SCHEMA.sqlite, busy: BUSY_MS });
        this.#file = fileAt(path);
      }
      const result = work(this.#db);
      if (writes) this.#reported = false;
      return result;
    } catch (thrown) {
      this.#awayUntil = now + AWAY_MS;
      if (isDamage(thrown)) this.#startAnew(path, thrown);
      if (!this.#reported) {
        this.#reported = true;
        onProblem(messageOf(thrown));
      }
      return otherwise;
    }
  }

  /** SQLite goes on in the removed file, which is lost with the process. */
  #leaveRemoved(): void {
    this.#db?.close();
    this.#db = undefined;
    this.options.onProblem(REMOVED);
  }

  #startAnew(path: string, thrown: unknown): void {
    if (this.#db === undefined) return;
    this.#db.close();
    this.#db = undefined;
    try {
      setAside(path, this.#file, thrown);
    } catch {
      // It cannot be moved: the next use fails again.
    }
  }
}
