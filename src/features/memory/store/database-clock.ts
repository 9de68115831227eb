/** Times of this process as times of the database, never later than they were: what began before an erasure counts as before. */

import { preciseNow } from '../../../lib/loop/precise-time.ts';
import { DATABASE_NOW } from '../../../state/erasures.ts';
import type { SqlStatements } from '../../../state/sql/sql.ts';

/** SQL: milliseconds since 1970 by the clock of the database, with fractions. */
export const CLOCK_NOW = `CAST(${DATABASE_NOW} AS double precision)`;

interface Offset {
  /** When it was measured, as of {@link preciseNow}. */
  readonly at: number;
  /** Milliseconds that the database's clock is ahead, at the least. */
  readonly ahead: number;
}

/** Measurements nearer to each other than this are one, unless they differ: a suspended machine loses time. */
const SPACING_MS = 5000;
const ALIKE_MS = 100;
/** The kept measurements reach back for longer than an exchange takes. */
const MAX_OFFSETS = 720;

export class DatabaseClock {
  readonly #offsets: Offset[] = [];

  /** The time of the database. */
  async read(inside: SqlStatements): Promise<number> {
    const [row] = await inside.query<{ now: number }>(`SELECT ${CLOCK_NOW} AS now`);
    this.measured(row!.now);
    return row!.now;
  }

  /** @param time of the database, in an answer that arrived just now */
  measured(time: number): void {
    const at = preciseNow();
    const ahead = time - at;
    const last = this.#offsets.at(-1);
    if (
      last !== undefined &&
      at - last.at < SPACING_MS &&
      Math.abs(ahead - last.ahead) < ALIKE_MS
    ) {
      this.#offsets[this.#offsets.length - 1] = {
        at: last.at,
        ahead: Math.max(last.ahead, ahead),
      };
      return;
    }
    this.#offsets.push({ at, ahead });
    if (this.#offsets.length > MAX_OFFSETS) this.#offsets.shift();
  }

  /** False until the first answer of the database. */
  get isKnown(): boolean {
    return this.#offsets.length > 0;
  }

  /**
   * How far the database was ahead at a time, by what was measured before it: a pause of the machine since then, which
   * this process's clock does not count, is left out.
   */
  aheadAt(instant: number): number {
    const before = this.#offsets.findLast(({ at }) => at <= instant) ?? this.#offsets[0];
    return before?.ahead ?? 0;
  }
}
