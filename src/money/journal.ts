/** The journal of spend: an entry for each try that ends, and for each that runs for longer than a moment. */

import { type Linked, LinkedList } from '../lib/loop/linked-list.ts';
import { Journal } from '../state/journal/journal.ts';
import type { OutputEstimate } from './estimate.ts';
import { learnedIn } from './reader.ts';
import { type CommonRow, type OwnColumns, wholeRow } from './row-parts.ts';
import type { SpendReader, SpendRow } from './schema.ts';
import type { SpendEntry } from './spend-store.ts';
import { RowTotals } from './totals.ts';

/** Entries are taken into the tables so long after the first of them. */
const LOOK_AFTER_MS = 200;
/** A try that ends sooner has no entry of its beginning. */
const MOMENT_MS = 200;
const TOUCH_EVERY_MS = 10_000;
const LEARNED_EVERY_MS = 30_000;
const LEARNED_AT_ONCE = 100;
const MAX_GROUPS = 20_000;
const END_PATIENCE_MS = 5000;

/** A try that runs. */
export interface RunningTry {
  /** What it would be if it ended now by a kill: as reserved. */
  reservedRow(): SpendRow;
}

/** A running try's place in the journal. */
export interface RunningPlace extends Linked<RunningPlace> {
  readonly began: number;
  readonly running: RunningTry;
  /** Of the entry of its beginning; 0: there is none. */
  n: number;
  /** The time of that entry's row. */
  at: number;
}

/** What takes the entries in, wherever it runs. */
export interface KeeperHandle {
  /** Resolves when all entries that are written are in the tables, if that can be done. Never rejects. */
  look(): Promise<void>;
  /** The number of the last entry that is in the tables, as far as is known here. */
  readonly through: number;
  /** After the last entry. */
  close(patienceMs: number): Promise<void>;
}

export interface SpendJournalOptions {
  readonly folder: string;
  readonly keeper: (writer: string) => KeeperHandle;
  readonly reader: SpendReader & { close?(): void };
  /** There may be something to take in: from before, or of workers. */
  readonly mayHoldEntries: boolean;
  /** Another process takes in what this one writes, unless somebody asks this one. */
  readonly isWorker?: boolean;
  /** Kept over a restart. */
  readonly estimate?: OutputEstimate;
  /** Entries cannot be written; once until they can. */
  readonly onProblem: (message: string) => void;
  /** They can be written again. `lost`: tries of which only the totals were kept, or nothing. */
  readonly onRecovered: (lost: number) => void;
  /** For tests. */
  readonly momentMs?: number;
  readonly journal?: { readonly maxWaiting?: number; readonly maxBytes?: number };
}

export class SpendJournal {
  readonly #momentMs: number;
  readonly #journal: Journal;
  readonly #keeper: KeeperHandle;
  /** Tries that have no entry, oldest first. */
  readonly #young = new LinkedList<RunningPlace>();
  /** Tries that run and have one. */
  #begun = 0;
  #looking: ReturnType<typeof setTimeout> | undefined;
  #aging: ReturnType<typeof setTimeout> | undefined;
  #touching: ReturnType<typeof setInterval> | undefined;
  #learnedWritten = performance.now();
  /** Of tries for whose rows there is no room. */
  #overflow: RowTotals | undefined;
  #lost = 0;
  #closed: Promise<void> | undefined;

  constructor(private readonly options: SpendJournalOptions) {
    this.#momentMs = options.momentMs ?? MOMENT_MS;
    const { folder, onProblem, onRecovered } = options;
    this.#journal = new Journal({
      folder,
      onProblem,
      onRecovered: () => {
        this.#writeOverflow();
        onRecovered(this.#lost);
        this.#lost = 0;
      },
      ...options.journal,
    });
    this.#keeper = options.keeper(this.#journal.writer);
  }

  /** Entries that are not in the tables, as far as is known here. */
  get waiting(): number {
    return this.#journal.last - this.#keeper.through;
  }

  /** Takes in what earlier processes left, in the background. */
  open(): void {
    const { mayHoldEntries, isWorker = false, estimate, reader } = this.options;
    if (!mayHoldEntries || this.#closed !== undefined) return;
    if (!isWorker) void this.#keeper.look();
    // There may be no tables yet.
    if (estimate !== undefined) {
      void learnedIn(reader).then(
        (learned) => estimate.restore(learned),
        () => {},
      );
    }
  }

  /** A try goes out. */
  begin(running: RunningTry): RunningPlace {
    const place: RunningPlace = {
      began: performance.now(),
      running,
      n: 0,
      at: 0,
      before: undefined,
      next: undefined,
    };
    this.#young.add(place);
    this.#age();
    return place;
  }

  /** The try is over: its row. It is written before what is resolved next. */
  end(place: RunningPlace, row: OwnColumns | SpendRow, common?: CommonRow): void {
    const { n, at } = place;
    if (n === 0) {
      this.#young.remove(place);
      if (this.#append({ row }, common) === 0) this.#overflows(wholeRow(row, common));
      return;
    }
    this.#begun--;
    // If there is no room, what was reserved stands for it.
    if (this.#append({ row, begun: [n, at] }, common) === 0) this.#lost++;
  }

  /** All that has ended is in the tables, if that can be done. Never rejects. */
  async flush(): Promise<void> {
    this.#journal.rewriteIfRemoved();
    this.#journal.flush();
    await this.#keeper.look();
  }

  /** Reads with everything that has ended. @throws SQLiteError, or GatewayError where the shared database is away */
  async read<T>(question: (reader: SpendReader) => T | Promise<T>): Promise<T> {
    await this.flush();
    return question(this.options.reader);
  }

  /** Takes all in, and ends; what cannot be taken in waits for the next process. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    clearTimeout(this.#aging);
    clearInterval(this.#touching);
    this.#learnedWritten = Number.NEGATIVE_INFINITY;
    if (this.#journal.last > 0) this.#writeLearned();
    this.#writeOverflow();
    this.#journal.close();
    clearTimeout(this.#looking);
    // It may not have begun yet.
    if (this.waiting > 0 && this.options.isWorker !== true) void this.#keeper.look();
    await this.#keeper.close(END_PATIENCE_MS);
    this.options.reader.close?.();
  }

  #append(entry: SpendEntry, common?: CommonRow): number {
    const n = this.#journal.append(JSON.stringify(entry), common?.json);
    if (this.#looking === undefined && this.#closed === undefined) {
      this.#looking = setTimeout(this.#look, LOOK_AFTER_MS).unref();
    }
    return n;
  }

  readonly #look = () => {
    this.#looking = undefined;
    this.#journal.rewriteIfRemoved();
    this.#writeLearned();
    if (this.options.isWorker !== true) void this.#keeper.look();
  };

  #age(): void {
    if (this.#aging !== undefined || this.#closed !== undefined) return;
    this.#aging = setTimeout(this.#aged, this.#momentMs).unref();
  }

  readonly #aged = () => {
    this.#aging = undefined;
    this.#writeBegun(performance.now() - this.#momentMs);
    if (this.#young.size > 0) this.#age();
  };

  #writeBegun(before: number): void {
    for (let place = this.#young.first; place !== undefined; ) {
      const { began, running, next } = place;
      if (began > before) return;
      const open = running.reservedRow();
      place.n = this.#append({ open });
      // There is no room. It is tried again.
      if (place.n === 0) return;
      place.at = open.time;
      this.#young.remove(place);
      this.#begun++;
      this.#touch();
      place = next;
    }
  }

  /** While tries of this process run, others must see that it lives. */
  #touch(): void {
    if (this.#touching !== undefined) return;
    this.#touching = setInterval(() => {
      if (this.#begun > 0) {
        this.#journal.touch();
        return;
      }
      clearInterval(this.#touching);
      this.#touching = undefined;
    }, TOUCH_EVERY_MS).unref();
  }

  #overflows(row: SpendRow): void {
    this.#lost++;
    this.#overflow ??= new RowTotals();
    if (this.#overflow.size < MAX_GROUPS) this.#overflow.add(row, null);
  }

  #writeOverflow(): void {
    const overflow = this.#overflow;
    if (overflow === undefined) return;
    const sums = { hours: [...overflow.hours.values()], sessions: [...overflow.sessions.values()] };
    if (this.#append({ sums }) > 0) this.#overflow = undefined;
  }

  /** What answers have shown, now and then. */
  #writeLearned(): void {
    const now = performance.now();
    if (now - this.#learnedWritten < LEARNED_EVERY_MS) return;
    this.#learnedWritten = now;
    const { estimate } = this.options;
    for (;;) {
      const learned = estimate?.takeChanged(LEARNED_AT_ONCE) ?? [];
      if (learned.length > 0) this.#append({ learned });
      if (learned.length < LEARNED_AT_ONCE) return;
    }
  }
}
