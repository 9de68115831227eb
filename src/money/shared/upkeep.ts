/** What one replica at a time does for all: books what machines left that are gone, and deletes what is old. */

import type { Sql } from '../../state/engines/engine.ts';

const LOOK_EVERY_MS = 15_000;
const LOST_AFTER_MS = 60_000;
const PRUNE_EVERY_MS = 600_000;
/** Rows of a month that was made anew stay for a day: an answer that was lost is asked for again until then. */
const SETTLED_MS = 86_400_000;
const AT_ONCE = 500;
const DEADLINE_MS = 5000;

export interface UpkeepOptions {
  readonly database: Sql;
  /** Brings the tables up to date. */
  readonly ready: () => Promise<void>;
  /** Days; 0 = for ever. */
  readonly keepDays: () => number;
  readonly keepTotalsDays: () => number;
  /** Tries that were booked as lost, once for each time. */
  readonly onLost: (tries: number) => void;
  readonly lookEveryMs?: number;
  /** A machine that was not heard for so long is gone, until it is heard. */
  readonly lostAfterMs?: number;
  readonly settledMs?: number;
}

export class SpendUpkeep {
  readonly #options: UpkeepOptions;
  readonly #lostAfterMs: number;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** Since when the database has answered all the time. */
  #reached: number | undefined;
  #pruned = Number.NEGATIVE_INFINITY;
  #closed = false;
  #running: Promise<void> | undefined;

  constructor(options: UpkeepOptions) {
    this.#options = options;
    this.#lostAfterMs = options.lostAfterMs ?? LOST_AFTER_MS;
  }

  /** Begins, in the background. */
  open(): void {
    if (this.#closed) return;
    this.#timer = setTimeout(() => {
      this.#running = this.#look().finally(() => this.open());
    }, this.#options.lookEveryMs ?? LOOK_EVERY_MS);
    this.#timer.unref();
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await this.#running;
  }

  async #look(): Promise<void> {
    const now = performance.now();
    try {
      await this.#options.ready();
      await this.#lapse(now);
      await this.#prune(now);
    } catch {
      // The engine tells that it is away. A lock that another replica holds is tried for again.
      this.#reached = undefined;
    }
  }

  /** While the database was away it heard nobody: all get the time to be heard first. */
  async #lapse(now: number): Promise<void> {
    const { database, onLost } = this.#options;
    if (this.#reached === undefined) {
      await database.query('SELECT 1', [], DEADLINE_MS);
      this.#reached = now;
      return;
    }
    if (now - this.#reached < this.#lostAfterMs) return;
    let lost = 0;
    for (let found = AT_ONCE; found >= AT_ONCE && !this.#closed; lost += found) {
      const [row] = await database.query<{ found: number }>(
        'SELECT hopgate.spend_lapse($1, $2) AS found',
        [this.#lostAfterMs, AT_ONCE],
        DEADLINE_MS,
      );
      found = row!.found;
    }
    if (lost > 0) onLost(lost);
  }

  async #prune(now: number): Promise<void> {
    const { database, keepDays, keepTotalsDays, settledMs = SETTLED_MS } = this.#options;
    if (now - this.#pruned < PRUNE_EVERY_MS) return;
    for (let found = AT_ONCE; found >= AT_ONCE && !this.#closed; ) {
      const [row] = await database.query<{ found: number }>(
        'SELECT hopgate.spend_prune($1, $2, $3, $4) AS found',
        [keepDays(), keepTotalsDays(), settledMs, AT_ONCE],
        DEADLINE_MS,
      );
      found = row!.found;
    }
    this.#pruned = now;
  }
}
