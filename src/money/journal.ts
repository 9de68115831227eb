/** The journal of spend: rows wait in memory for a moment and are written in batches, outside of requests. */

import { type Linked, LinkedList } from '../lib/loop/linked-list.ts';
import { othersTurn } from '../lib/loop/steps.ts';
import { randomBase36 } from '../lib/text/ids.ts';
import { fileAt, isDamage, setAside } from '../state/versioned-store.ts';
import type { OutputEstimate } from './estimate.ts';
import type { SpendReader } from './schema.ts';
import type { Spool } from './shared/spool-store.ts';
import type { SpendRow } from './spend.ts';
import { SpendStore, type WaitingRow } from './spend-store.ts';
import { dropTail, type LeftTail, leftTail, TailFile } from './tail-file.ts';
import { RowTotals } from './totals.ts';

const FLUSH_AFTER_MS = 200;
const FLUSH_ROWS = 200;
const RETRY_AFTER_MS = 2000;
/** Another process writes: it is done in a moment. */
const BUSY_RETRY_MS = 20;
/** At the end there is no later. */
const END_PATIENCE_MS = 5000;
/** Rows that wait while the file cannot be written. Of those that come then, only the totals are kept. */
const MAX_WAITING = 50_000;
const MAX_GROUPS = 20_000;
const TAKEN_AT_ONCE = 100;
const RUNNING_AT_ONCE = 100;
const DROPPED_AT_ONCE = 200;
/** Each of them changes totals. */
const SENT_DROPPED_AT_ONCE = 40;
const DROP_EVERY_MS = 600_000;
const SEEN_EVERY_MS = 10_000;
/** A process that is killed while this one runs: a restart without a gap, or another worker. */
const TAKE_OVER_EVERY_MS = 10_000;
const LEARNED_EVERY_MS = 30_000;
const LEARNED_AT_ONCE = 100;
const DAY_MS = 86_400_000;
const MAX_TAILS = 10_000;

/** A try that runs. */
export interface RunningTry {
  /** What it would be if it ended now by a kill: as reserved. */
  reservedRow(): SpendRow;
}

/** A running try's place in the journal. */
export interface RunningPlace extends Linked<RunningPlace> {
  readonly began: number;
  readonly running: RunningTry;
  /** 0: it is not in the file. */
  seq: number;
  /** In the file: the time of its row as reserved. */
  at: number;
}

export interface JournalOptions {
  readonly path: string;
  /** Days; 0 = for ever. */
  readonly keepDays: () => number;
  /** As `keepDays`, of rows that a shared database has; left out: as all others. */
  readonly keepSentDays?: () => number;
  /** As `keepDays`, of the totals; left out: for ever. */
  readonly keepTotalsDays?: () => number;
  /** Rows go to a shared database, too; called when some have been written. */
  readonly onWritten?: () => void;
  /** Kept over a restart. */
  readonly estimate?: OutputEstimate;
  /** The file cannot be written; once until it can. `waiting`: rows in memory. */
  readonly onProblem: (message: string, waiting: number) => void;
  /** It can be written again. `lost`: rows of which only the totals were kept, or nothing. */
  readonly onRecovered: (lost: number) => void;
  /** Milliseconds from the end of a try to its write; for tests. */
  readonly flushAfterMs?: number;
  /** Milliseconds between two looks for processes that were killed; for tests. */
  readonly takeOverEveryMs?: number;
}

export class SpendJournal {
  readonly #options: JournalOptions;
  /** Tells this process from all others, those before it with the same number too. */
  readonly #writer = `${process.pid}-${randomBase36(12)}`;
  readonly #tail: TailFile;
  /** What a killed process left, and how many of its lines are written. */
  #left: { readonly tail: LeftTail; done: number } | undefined;
  #takingTails = true;
  readonly #tailsTaken = new Set<string>();
  #file: SpendStore | undefined;
  #fileId = 0;
  #waiting: WaitingRow[] = [];
  /** The first of them that is not written. */
  #next = 0;
  /** Rows beyond {@link MAX_WAITING}, as totals. */
  #overflow: RowTotals | undefined;
  #lost = 0;
  /** Tries that are not in the file, oldest first. */
  readonly #young = new LinkedList<RunningPlace>();
  #stored = 0;
  #seq = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #seenTimer: ReturnType<typeof setInterval> | undefined;
  #problem: string | undefined;
  /** The last write failed because another process writes. */
  #isBusy = false;
  #takingOver = true;
  #tookOver = performance.now();
  #dropped = 0;
  #learnedWritten = performance.now();
  #closed = false;
  /** A flush is under way, slice by slice. */
  #flushing: Promise<void> | undefined;

  constructor(options: JournalOptions) {
    this.#options = options;
    this.#tail = new TailFile(options.path, this.#writer);
  }

  /** The name of this process. */
  get writer(): string {
    return this.#writer;
  }

  /** Rows in memory. */
  get waiting(): number {
    return this.#waiting.length - this.#next;
  }

  /** Opens the file and takes over what killed processes left, in the background. */
  open(): void {
    this.#schedule(0);
  }

  /** A try goes out. */
  begin(running: RunningTry): RunningPlace {
    const place: RunningPlace = {
      began: performance.now(),
      running,
      seq: 0,
      at: 0,
      before: undefined,
      next: undefined,
    };
    this.#young.add(place);
    this.#schedule();
    return place;
  }

  /** The try is over: its row. */
  end(place: RunningPlace, row: SpendRow): void {
    if (place.seq === 0) this.#young.remove(place);
    else this.#stored--;
    if (this.waiting >= MAX_WAITING) {
      this.#keepTotals(row);
      return;
    }
    const running = place.seq;
    const n = running === 0 ? ++this.#seq : running;
    const at = running === 0 ? row.time : place.at;
    const ended = { line: this.#tail.next, row, running, n, at };
    this.#tail.add(ended);
    this.#waiting.push(ended);
    if (this.waiting === FLUSH_ROWS && this.#problem === undefined) this.#flushSoon();
    else this.#schedule();
  }

  #keepTotals(row: SpendRow): void {
    this.#lost++;
    this.#overflow ??= new RowTotals();
    if (this.#overflow.size < MAX_GROUPS) this.#overflow.add(row, null);
  }

  /** Reads from the file, with everything in it that waited. @throws SQLiteError, or the file system's error */
  async read<T>(question: (reader: SpendReader) => T | Promise<T>): Promise<T> {
    await this.flush();
    return question(this.#opened());
  }

  /** What is not in the shared database yet. @throws SQLiteError, or the file system's error */
  spooled<T>(work: (spool: Spool) => T): T {
    if (this.#closed) throw new Error('the journal of spend is closed');
    try {
      return work(this.#opened().spool!);
    } catch (thrown) {
      if (isDamage(thrown)) this.#failed(thrown);
      throw thrown;
    }
  }

  /** Writes all that waits, in slices. Never rejects. */
  flush(): Promise<void> {
    this.#flushing ??= this.#flushAll().finally(() => {
      this.#flushing = undefined;
    });
    return this.#flushing;
  }

  /** Writes all that waits, now; while another process writes, it holds the process for up to five seconds. */
  close(): void {
    if (this.#closed) return;
    const latest = performance.now() + END_PATIENCE_MS;
    clearInterval(this.#seenTimer);
    const nothing = this.waiting === 0 && this.#overflow === undefined && this.#file === undefined;
    this.#learnedWritten = Number.NEGATIVE_INFINITY;
    // Slice by slice, without a turn for others: the process ends.
    while (!nothing && (this.#writeSlice() || this.#waitsFor(latest))) {
      if (this.#isBusy) Bun.sleepSync(BUSY_RETRY_MS);
    }
    if (this.waiting > 0) this.#report('the last rows could not be written before the end');
    this.#tail.close(this.waiting === 0);
    clearTimeout(this.#timer);
    this.#closed = true;
    this.#file?.close();
    this.#file = undefined;
  }

  /** Another process writes, and there is still time to wait for it. */
  #waitsFor(latest: number): boolean {
    return this.#isBusy && this.waiting > 0 && performance.now() < latest;
  }

  #schedule(after = this.#options.flushAfterMs ?? FLUSH_AFTER_MS): void {
    if (this.#timer !== undefined || this.#closed) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      void this.flush();
    }, after);
    this.#timer.unref();
  }

  #flushSoon(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    setImmediate(() => void this.flush());
  }

  async #flushAll(): Promise<void> {
    // Once for a flush: looked at for each slice, it would never end where the time between two looks is short.
    const every = this.#options.takeOverEveryMs ?? TAKE_OVER_EVERY_MS;
    this.#takingOver ||= performance.now() - this.#tookOver >= every;
    this.#takingTails ||= this.#takingOver;
    while (!this.#closed && this.#writeSlice()) await othersTurn();
    if (this.#young.size > 0) this.#schedule();
  }

  /** One transaction's worth. True: there is more, and it can be written. */
  #writeSlice(): boolean {
    try {
      const file = this.#opened();
      const more = this.#work(file);
      this.#isBusy = false;
      if (this.#problem !== undefined) {
        this.#problem = undefined;
        this.#options.onRecovered(this.#lost);
        this.#lost = 0;
      }
      return more;
    } catch (thrown) {
      this.#failed(thrown);
      return false;
    }
  }

  #work(file: SpendStore): boolean {
    // Before their running tries: a row that is here ended.
    if (this.#takingTails) {
      this.#takingTails = this.#takeTail(file);
      return true;
    }
    if (this.#takingOver) {
      this.#tookOver = performance.now();
      this.#takingOver = file.takeOver(TAKEN_AT_ONCE);
      return true;
    }
    if (file.checkpoint()) return true;
    if (this.waiting > 0 || this.#overflow !== undefined) {
      const rows = this.#waiting.slice(this.#next, this.#next + FLUSH_ROWS);
      this.#next += file.write(rows, this.#overflow);
      this.#overflow = undefined;
      if (this.#next >= this.#waiting.length || this.#next > MAX_WAITING / 4) {
        this.#waiting = this.#waiting.slice(this.#next);
        this.#next = 0;
      }
      if (this.waiting === 0) this.#tail.empty();
      this.#options.onWritten?.();
      return true;
    }
    return this.#writeRunning(file) || this.#writeLearned(file) || this.#drop(file);
  }

  /** True: there is more. */
  #takeTail(file: SpendStore): boolean {
    if (this.#left === undefined) {
      const tail = leftTail(this.#options.path, this.#tailsTaken);
      if (tail === undefined) return false;
      this.#left = { tail, done: 0 };
    }
    const { tail, done } = this.#left;
    const lines = tail.lines.slice(done, done + FLUSH_ROWS);
    if (lines.length > 0) this.#left.done += file.takeTail(tail.writer, lines);
    if (this.#left.done >= tail.lines.length) {
      dropTail(tail.path);
      // One that cannot be removed is not taken again.
      if (this.#tailsTaken.size < MAX_TAILS) this.#tailsTaken.add(tail.path);
      this.#left = undefined;
    }
    this.#options.onWritten?.();
    return true;
  }

  /** Tries that have run for a moment. True: there are more. */
  #writeRunning(file: SpendStore): boolean {
    if (this.#closed || this.#young.size === 0) return false;
    const before = performance.now() - (this.#options.flushAfterMs ?? FLUSH_AFTER_MS);
    const old: RunningPlace[] = [];
    for (let place = this.#young.first; place !== undefined; place = place.next) {
      if (place.began > before || old.length >= RUNNING_AT_ONCE) break;
      old.push(place);
    }
    if (old.length === 0) return false;
    const first = this.#seq + 1;
    const rows = old.map(({ running }, at) => ({ seq: first + at, row: running.reservedRow() }));
    file.writeRunning(rows);
    this.#seq += old.length;
    old.forEach((place, at) => {
      place.seq = first + at;
      place.at = rows[at]!.row.time;
      this.#young.remove(place);
    });
    this.#stored += old.length;
    this.#keepSeen();
    return old.length === RUNNING_AT_ONCE;
  }

  /** While tries of this process are in the file, other processes must see that it lives. */
  #keepSeen(): void {
    if (this.#seenTimer !== undefined) return;
    this.#seenTimer = setInterval(() => {
      if (this.#stored === 0) {
        clearInterval(this.#seenTimer);
        this.#seenTimer = undefined;
        return;
      }
      try {
        this.#file?.seen();
      } catch {
        // A file that is full or locked is reported when rows are written.
      }
    }, SEEN_EVERY_MS);
    this.#seenTimer.unref();
  }

  /** What answers have shown, now and then. True: there is more. */
  #writeLearned(file: SpendStore): boolean {
    const now = performance.now();
    if (now - this.#learnedWritten < LEARNED_EVERY_MS) return false;
    const changed = this.#options.estimate?.takeChanged(LEARNED_AT_ONCE) ?? [];
    if (changed.length > 0) file.writeLearned(changed);
    if (changed.length === LEARNED_AT_ONCE) return true;
    this.#learnedWritten = now;
    return false;
  }

  #drop(file: SpendStore): boolean {
    const { keepDays, keepSentDays, keepTotalsDays } = this.#options;
    const days = keepDays();
    const sentDays = keepSentDays?.() ?? 0;
    const totalsDays = keepTotalsDays?.() ?? 0;
    const now = Date.now();
    if (days + sentDays + totalsDays === 0 || Math.abs(now - this.#dropped) < DROP_EVERY_MS)
      return false;
    if (sentDays > 0 && file.dropSentBefore(now - sentDays * DAY_MS, SENT_DROPPED_AT_ONCE)) {
      return true;
    }
    if (days > 0 && file.dropBefore(now - days * DAY_MS, DROPPED_AT_ONCE)) return true;
    if (totalsDays > 0 && file.dropTotalsBefore(now - totalsDays * DAY_MS, DROPPED_AT_ONCE)) {
      return true;
    }
    this.#dropped = now;
    return false;
  }

  #opened(): SpendStore {
    if (this.#file === undefined) {
      this.#file = new SpendStore(this.#options.path, this.#writer, {
        shared: this.#options.onWritten !== undefined,
      });
      this.#fileId = fileAt(this.#options.path);
      this.#takingOver = true;
      this.#takingTails = true;
      this.#options.estimate?.restore(this.#file.learned());
    }
    return this.#file;
  }

  #failed(thrown: unknown): void {
    const code = String((thrown as { code?: unknown } | null)?.code);
    const busy = /BUSY|LOCKED/.test(code);
    this.#isBusy = busy;
    const message = thrown instanceof Error ? thrown.message : String(thrown);
    if (isDamage(thrown) && this.#file !== undefined) {
      try {
        this.#file.abandon();
        setAside(this.#options.path, this.#fileId, thrown);
      } catch {
        // Tried again with the next write.
      }
      this.#file = undefined;
    }
    // Another process that writes for a moment is no problem.
    if (!busy || this.waiting > FLUSH_ROWS * 10) this.#report(message);
    this.#schedule(busy ? BUSY_RETRY_MS : RETRY_AFTER_MS);
  }

  #report(message: string): void {
    if (this.#problem !== undefined) return;
    this.#problem = message;
    this.#options.onProblem(`${this.#options.path}: ${message}`, this.waiting);
  }
}
