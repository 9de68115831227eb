/** The spend database: writes rows and totals in one transaction, and takes over what killed processes left. */

import type { Database } from 'bun:sqlite';
import { isRunning, startOf } from '../lib/process/running.ts';
import { openStateFile, openToRead } from '../state/versioned-store.ts';
import { BookedRows } from './booked-rows-store.ts';
import type { LearnedAnswers } from './estimate.ts';
import {
  DAY,
  FILE_NAMES,
  HOUR,
  type HourTotals,
  MIGRATIONS,
  MONTH,
  type SessionTotals,
  type SpendReader,
} from './schema.ts';
import { ENDED, type RowName, Spool, TAKEN_OVER } from './shared/spool-store.ts';
import type { SpendRow } from './spend.ts';
import { RowTotals } from './totals.ts';

/** Milliseconds that a write may wait for another process, on the event loop. */
const BUSY_MS = 3;
/** Rows are inserted for so long in one transaction; totals and the commit come on top. */
const SLICE_MS = 1.5;
const ROWS_BETWEEN_LOOKS = 8;
/** Groups of totals in one transaction: each is up to three writes. */
const MAX_GROUPS = 60;
/** Targets that are remembered, the newest ones. */
const MAX_LEARNED = 2000;
/** Pages in the write-ahead log, as estimated, from which on they are brought into the file: in a step of its own. */
const CHECKPOINT_PAGES = 200;
const ROWS_OF_A_PAGE = 16;
const DAY_MS = 86_400_000;
/** What is known of the files of other processes is kept for so long. */
const TAILS_DAYS = 30;
const OWN_START = startOf(process.pid) ?? null;
/** A process that lives, but has not been seen for so long, is taken for dead until it reports. */
const STALE_MS = 60_000;

export interface WaitingRow {
  readonly row: SpendRow;
  /** Its number among the running tries of this process, if it is in the file as one; 0: it is not. */
  readonly running: number;
  /** Its number among all rows of this process, and its time as long as it ran, if it was in the file then. */
  readonly n: number;
  readonly at: number;
  /** Its line in the file of its process; left out: it is in none. */
  readonly line?: number;
}

export interface SpendStoreOptions {
  /** Rows go to a shared database, too. */
  readonly shared?: boolean;
  /** Milliseconds that a write may wait for another process. */
  readonly busy?: number;
}

export class SpendStore implements SpendReader {
  readonly names = FILE_NAMES;
  readonly #db: Database;
  readonly #writer: string;
  readonly #sql: ReturnType<typeof statements>;
  readonly #booked: BookedRows;
  /** Undefined: rows stay in this file. */
  readonly spool: Spool | undefined;

  /** @throws SQLiteError, or the file system's error */
  constructor(
    path: string,
    writer: string,
    { shared = false, busy = BUSY_MS }: SpendStoreOptions = {},
  ) {
    this.#db = openStateFile({ path, migrations: MIGRATIONS, busy });
    this.#writer = writer;
    this.#sql = statements(this.#db);
    this.spool = shared ? new Spool(this.#db) : undefined;
    this.#booked = new BookedRows(this.#db, (id, time) => this.spool?.forget(id, time));
  }

  /** Brings what was written into the file, if that is enough for one step of the event loop. False: it is not. */
  checkpoint(): boolean {
    if (this.#booked.logPages < CHECKPOINT_PAGES) return false;
    this.#booked.logPages = 0;
    this.#db.run('PRAGMA wal_checkpoint(PASSIVE)');
    return true;
  }

  /**
   * Writes some of the rows, for a few milliseconds. Returns how many; none or all of these are in the file.
   * @param first totals that are written before, as a whole
   * @throws SQLiteError and then nothing is written
   */
  write(rows: readonly WaitingRow[], first: RowTotals | undefined): number {
    return this.#booked.transaction(() => this.#writeRows(this.#writer, rows, first));
  }

  /** Writes what a killed process had not written, a slice at a time. Returns how many of the lines are done. */
  takeTail(writer: string, lines: readonly WaitingRow[]): number {
    return this.#booked.transaction(() => this.#writeRows(writer, lines, undefined));
  }

  #writeRows(writer: string, rows: readonly WaitingRow[], first: RowTotals | undefined): number {
    if (first !== undefined) this.#booked.add(first);
    const through = this.#sql.tail.get(writer)?.line ?? 0;
    const totals = new RowTotals();
    const began = performance.now();
    let done = 0;
    let last = through;
    for (const { row, running, n, at, line = 0 } of rows) {
      done++;
      if (line > 0 && line <= through) continue;
      if (running > 0) this.#endRunning(writer, running);
      const id = this.#booked.insert(row);
      this.spool?.ended({ writer, n, rev: ENDED, at }, id, row.time);
      totals.add(row, id);
      if (line > 0) last = line;
      if (totals.size >= MAX_GROUPS) break;
      if (done % ROWS_BETWEEN_LOOKS === 0 && performance.now() - began > SLICE_MS) break;
    }
    this.#booked.add(totals);
    if (last > through) this.#sql.setTail.run(writer, last, Date.now());
    this.#booked.logPages += done / ROWS_OF_A_PAGE;
    return done;
  }

  /** Writes tries that run, as the rows that they are if this process is killed. */
  writeRunning(tries: readonly { readonly seq: number; readonly row: SpendRow }[]): void {
    this.#booked.transaction(() => {
      this.#sql.seen.run(this.#writer, process.pid, OWN_START, Date.now());
      for (const { seq, row } of tries) {
        this.#sql.addRunning.run(this.#writer, seq, JSON.stringify(row));
        this.spool?.opened(this.#writer, seq, row.time);
      }
      this.#booked.logPages += tries.length / 4;
    });
  }

  all<Row>(sql: string, values: Readonly<Record<string, string | number>> = {}): readonly Row[] {
    return this.#db.query<Row, [Record<string, string | number>]>(sql).all({ ...values });
  }

  /** What earlier processes learned of targets, the newest first. */
  learned(): readonly LearnedAnswers[] {
    return this.#db
      .query<LearnedRow, []>('SELECT * FROM learned ORDER BY written DESC')
      .all()
      .map((row) => ({
        target: row.target,
        stream: row.stream === 1,
        bytesPerToken: row.bytes_per_token,
        mean: row.mean,
        spread: row.spread,
      }));
  }

  /** Writes what was learned of some targets. */
  writeLearned(all: readonly LearnedAnswers[]): void {
    const now = Date.now();
    this.#booked.transaction(() => {
      for (const { target, stream, bytesPerToken, mean, spread } of all) {
        this.#sql.addLearned.run(target, stream ? 1 : 0, bytesPerToken, mean, spread, now);
      }
      this.#sql.dropLearned.run();
    });
  }

  /** This process lives. */
  seen(): void {
    this.#sql.seen.run(this.#writer, process.pid, OWN_START, Date.now());
  }

  /**
   * Makes rows of the running tries of processes that were killed, a few at a time. True: there are more.
   * A process that only seemed dead takes its rows back when its tries end.
   */
  takeOver(most: number): boolean {
    const writers = this.#db
      .query<Writer, [string]>('SELECT id, pid, started, seen FROM writers WHERE id <> ?')
      .all(this.#writer);
    let left = most;
    for (const { id, pid, started, seen } of writers) {
      const dead = pid === process.pid || !isRunning(pid, started);
      if (!dead && Date.now() - seen < STALE_MS) continue;
      left -= this.#takeOver(id, dead, left);
      if (left <= 0) return true;
      if (dead) this.#sql.gone.run(id);
    }
    return false;
  }

  #takeOver(writer: string, dead: boolean, most: number): number {
    return this.#booked.transaction(() => {
      const left = this.#db
        .query<{ seq: number; row: string }, [string, number]>(
          'SELECT seq, row FROM running WHERE writer = ? AND spend IS NULL LIMIT ?',
        )
        .all(writer, most);
      const totals = new RowTotals();
      for (const { seq, row } of left) {
        const spend = JSON.parse(row) as SpendRow;
        const id = this.#booked.insert(spend);
        totals.add(spend, id);
        const name = { writer, n: seq, rev: TAKEN_OVER, at: spend.time };
        this.spool?.ended(name, id, spend.time);
        if (dead) {
          this.#db.query('DELETE FROM running WHERE writer = ? AND seq = ?').run(writer, seq);
        } else {
          this.#db
            .query('UPDATE running SET spend = ? WHERE writer = ? AND seq = ?')
            .run(id, writer, seq);
        }
      }
      this.#booked.add(totals);
      return left.length;
    });
  }

  /** Deletes some of the rows from before a time, and none that this gateway wrote for a shared database. True: there are more. */
  dropBefore(time: number, most: number): boolean {
    const drop = this.spool === undefined ? this.#sql.dropRows : this.spool.dropRows;
    return drop.run(time, most).changes === most;
  }

  /**
   * Deletes some of the rows from before a time that the shared database has, and takes them off the totals, which
   * count what this file answers for. True: there are more.
   */
  dropSentBefore(time: number, most: number): boolean {
    const { spool } = this;
    if (spool === undefined) return false;
    return this.#booked.transaction(() => {
      const ids = spool.sentBefore(time, most);
      this.#booked.takeBack(ids);
      return ids.length === most;
    });
  }

  /**
   * Writes rows of the shared database that this file has not, or in an older version. A try that runs here is left to
   * its process.
   * @param database its name
   * @returns how many were written
   */
  takeIn(rows: readonly (RowName & { readonly row: SpendRow })[], database: string): number {
    const spool = this.spool!;
    return this.#booked.transaction(() => {
      const totals = new RowTotals();
      const written: number[] = [];
      for (const { row, ...name } of rows) {
        const known = spool.rowOf(name);
        if ((known !== undefined && known.rev >= name.rev) || spool.isOpen(name)) continue;
        if (known !== undefined) this.#booked.takeBack([known.spend], known.time);
        const id = this.#booked.insert(row);
        spool.known(name, id, row.time);
        totals.add(row, id);
        written.push(id);
      }
      this.#booked.add(totals);
      if (written.length > 0) spool.imported(written[0]!, written.at(-1)!, database);
      return written.length;
    });
  }

  /**
   * Adds totals of a shared database that has no rows for them any more.
   * @param database its name
   * @param through the last hour of which these are all
   */
  takeTotals(
    database: string,
    through: number,
    hours: readonly HourTotals[],
    sessions: readonly SessionTotals[],
  ): void {
    this.#booked.transaction(() => {
      const totals = new RowTotals();
      for (const [n, group] of hours.entries()) {
        totals.groups.set(`${n}`, { ...group, hour: group.start });
      }
      const noRows = { labels: '{}', firstRow: null, lastRow: null };
      for (const [n, group] of sessions.entries()) {
        totals.sessions.set(`${n}`, { ...group, ...noRows, hour: group.start });
      }
      this.#booked.add(totals);
      this.spool!.tookTotals(database, through);
    });
  }

  /** Deletes some of the totals from before a time. True: there are more. */
  dropTotalsBefore(time: number, most: number): boolean {
    let more = false;
    for (const [span, longest] of [
      [HOUR, 1],
      [DAY, 1],
      [MONTH, 31],
    ] as const) {
      const before = time - longest * DAY_MS;
      more = this.#sql.dropTotals.run(span, before, most).changes === most || more;
    }
    return this.#sql.dropSessionTotals.run(time - DAY_MS, most).changes === most || more;
  }

  /** Leaves the file as it is: it is damaged. */
  abandon(): void {
    this.#db.close();
  }

  close(): void {
    try {
      const running = this.#db
        .query<{ seq: number }, [string]>('SELECT seq FROM running WHERE writer = ? LIMIT 1')
        .get(this.#writer);
      if (running === null) this.#sql.gone.run(this.#writer);
      this.#sql.dropTails.run(this.#writer, Date.now() - TAILS_DAYS * DAY_MS);
    } catch {
      // The next process finds nothing of this one to take over.
    }
    this.#db.close();
  }

  /** A try that another process took for lost: its row goes, the true one follows. */
  #endRunning(writer: string, seq: number): void {
    const ended = this.#sql.endRunning.get(writer, seq);
    if (ended === null || ended.spend === null) return;
    this.#booked.takeBack([ended.spend]);
  }
}

function statements(db: Database) {
  return {
    addRunning: db.query<unknown, [string, number, string]>(
      'INSERT INTO running (writer, seq, row) VALUES (?, ?, ?)',
    ),
    endRunning: db.query<{ spend: number | null }, [string, number]>(
      'DELETE FROM running WHERE writer = ? AND seq = ? RETURNING spend',
    ),
    seen: db.query<unknown, [string, number, string | null, number]>(
      'INSERT INTO writers (id, pid, started, seen) VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET seen = excluded.seen',
    ),
    addLearned: db.query('INSERT OR REPLACE INTO learned VALUES (?, ?, ?, ?, ?, ?)'),
    dropLearned: db.query(
      `DELETE FROM learned WHERE (target, stream) IN
        (SELECT target, stream FROM learned ORDER BY written DESC LIMIT -1 OFFSET ${MAX_LEARNED})`,
    ),
    tail: db.query<{ line: number }, [string]>('SELECT line FROM tails WHERE writer = ?'),
    setTail: db.query<unknown, [string, number, number]>(
      'INSERT OR REPLACE INTO tails (writer, line, time) VALUES (?, ?, ?)',
    ),
    dropTails: db.query<unknown, [string, number]>(
      'DELETE FROM tails WHERE writer = ? OR time < ?',
    ),
    gone: db.query<unknown, [string]>('DELETE FROM writers WHERE id = ?'),
    dropRows: db.query<unknown, [number, number]>(
      'DELETE FROM spend WHERE time < ?1 AND id IN (SELECT id FROM spend ORDER BY id LIMIT ?2)',
    ),
    dropTotals: db.query<unknown, [number, number, number]>(
      `DELETE FROM totals WHERE (span, start, key, labels, model, target) IN (SELECT span, start, key, labels, model,
        target FROM totals WHERE span = ? AND start < ? LIMIT ?)`,
    ),
    dropSessionTotals: db.query<unknown, [number, number]>(
      `DELETE FROM session_totals WHERE (start, session, key) IN (SELECT start, session, key FROM session_totals
        WHERE start < ? LIMIT ?)`,
    ),
  };
}

interface Writer {
  readonly id: string;
  readonly pid: number;
  /** As {@link startOf}. */
  readonly started: string | null;
  readonly seen: number;
}

interface LearnedRow {
  readonly target: string;
  readonly stream: number;
  readonly bytes_per_token: number;
  readonly mean: number;
  readonly spread: number;
}

/** The file for commands that only look; nothing is changed, and a gateway may run. @throws SQLiteError */
export function openSpendReader(path: string): SpendReader & { close(): void } {
  const db = openToRead(path);
  return {
    names: FILE_NAMES,
    all: <Row>(sql: string, values: Readonly<Record<string, string | number>> = {}) =>
      db.query<Row, [Record<string, string | number>]>(sql).all({ ...values }),
    close: () => db.close(),
  };
}
