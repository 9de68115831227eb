/** Sends what the file of spend holds to the shared database: in batches, each row once whatever happens. */

import { EngineAway, type Sql } from '../../state/engines/engine.ts';
import type { SpendJournal } from '../journal.ts';
import type { SpoolEntry } from './spool-store.ts';

/** Rows in one trip. */
const BATCH = 200;
const DEADLINE_MS = 5000;
const CLOSE_MS = 2000;
/** Rows of other processes of this machine are found by looking. */
const LOOK_EVERY_MS = 200;
const MAX_BACKOFF_MS = 5000;
/** The machine is heard so often, also when nothing is spent. */
const HEARD_EVERY_MS = 10_000;

export interface ForwarderOptions {
  readonly journal: Pick<SpendJournal, 'spooled' | 'writer'>;
  readonly database: Sql;
  /** Brings the tables up to date. */
  readonly ready: () => Promise<void>;
  /** The name of this machine, for people. */
  readonly replica: string;
  /** The database does not take a row. */
  readonly onRefused: (message: string) => void;
  /** For tests: between any two steps, the place of the step before. */
  readonly at?: (point: 'taken' | 'answered' | 'marked') => void | Promise<void>;
}

export class SpendForwarder {
  readonly #options: ForwarderOptions;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #running: Promise<boolean> | undefined;
  #again = false;
  #closed = false;
  #heard = Number.NEGATIVE_INFINITY;
  #failures = 0;
  /** After a refusal, rows go one by one until the one that is refused is found. */
  #single = 0;

  constructor(options: ForwarderOptions) {
    this.#options = options;
  }

  /** Begins, in the background. */
  open(): void {
    this.#schedule(0);
  }

  /** Something was written to the file. */
  kick(): void {
    if (this.#failures === 0) this.#schedule(0);
  }

  /** Sends what waits now. True: the database has all of it, as far as this process sends. Never rejects. */
  async flush(): Promise<boolean> {
    // A run that is under way may have looked before the last row was written.
    await this.#running;
    return this.#run();
  }

  /** Sends what waits, as long as the database answers. */
  async close(): Promise<void> {
    if (this.#closed) return;
    // What is left is in the file, for the next process.
    await Promise.race([this.flush(), Bun.sleep(CLOSE_MS)]);
    this.#closed = true;
    clearTimeout(this.#timer);
    try {
      this.#options.journal.spooled((spool) => spool.release(this.#options.journal.writer));
    } catch {
      // Its time ends by itself.
    }
  }

  #schedule(after: number): void {
    if (this.#closed) return;
    if (this.#running !== undefined) {
      this.#again ||= after === 0;
      return;
    }
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#run(), after);
    this.#timer.unref();
  }

  #run(): Promise<boolean> {
    clearTimeout(this.#timer);
    this.#running ??= this.#sendAll().finally(() => {
      this.#running = undefined;
      const backoff = LOOK_EVERY_MS * 2 ** Math.min(this.#failures, 8);
      this.#schedule(this.#again ? 0 : Math.min(backoff, MAX_BACKOFF_MS));
      this.#again = false;
    });
    return this.#running;
  }

  async #sendAll(): Promise<boolean> {
    try {
      while (!this.#closed && (await this.#sendSome())) this.#failures = 0;
      this.#failures = 0;
      return true;
    } catch {
      // The engine tells that it is away, the journal that its file has a problem.
      this.#failures++;
      return false;
    }
  }

  /** One batch. True: there may be more. */
  async #sendSome(): Promise<boolean> {
    const { journal, at } = this.#options;
    const most = this.#single > 0 ? 1 : BATCH;
    const now = Date.now();
    const taken = journal.spooled((spool) =>
      spool.claim(journal.writer, now)
        ? { spool: spool.id, entries: spool.take(most, now) }
        : undefined,
    );
    if (taken === undefined) return false;
    const { spool, entries } = taken;
    if (entries.length === 0 && performance.now() - this.#heard < HEARD_EVERY_MS) return false;
    await at?.('taken');
    const refused = await this.#put(spool, entries);
    await at?.('answered');
    if (refused !== undefined && entries.length > 1) {
      this.#single = entries.length;
      return true;
    }
    if (refused !== undefined) {
      journal.spooled((own) => own.refused(entries[0]!));
      this.#options.onRefused(refused);
    } else if (entries.length > 0) {
      journal.spooled((own) => own.sent(entries));
    }
    await at?.('marked');
    this.#single = Math.max(0, this.#single - 1);
    return entries.length === most;
  }

  /** @returns why the database will never take these; undefined: it has them. @throws where it may take them later */
  async #put(spool: string, entries: readonly SpoolEntry[]): Promise<string | undefined> {
    const { database, ready, replica } = this.#options;
    const batch = entries.flatMap(({ row, at, writer, n, rev }) =>
      row === undefined ? [] : [{ at, writer, n, rev, ...row, replica }],
    );
    await ready();
    try {
      await database.query(
        'SELECT hopgate.spend_put($1, $2, $3)',
        [spool, replica, JSON.stringify(batch)],
        DEADLINE_MS,
      );
    } catch (thrown) {
      if (thrown instanceof EngineAway || batch.length === 0 || !isRefusal(thrown)) throw thrown;
      return thrown instanceof Error ? thrown.message : String(thrown);
    }
    this.#heard = performance.now();
    return undefined;
  }
}

/** The values of a row are at fault: data exceptions, and rules that they break. */
const isRefusal = (thrown: unknown): boolean =>
  /^(22|23)/.test(String((thrown as { code?: unknown } | null)?.code));
