/** Marks of budgets: each is reported once in a period, over all processes. */

import type { Bank } from './bank.ts';
import type { Lease } from './lease.ts';
import type { WindowLimit } from './limits.ts';

/** A mark of a window that was reached; reported once in a period. */
export interface Reached {
  readonly limit: WindowLimit;
  /** Units: one of the limit's marks, or its amount. */
  readonly mark: number;
  /** Of the period, milliseconds since 1970. */
  readonly start: number;
  readonly end: number;
  /** Units. */
  readonly spent: number;
}

export class Marks {
  /** @param onReached must not throw */
  constructor(
    private readonly bank: Pick<Bank, 'isNew'>,
    private readonly onReached: ((reached: Reached) => void) | undefined,
  ) {}

  /** Reports the marks that are spent now. */
  spent(lease: Lease): void {
    const { limit, spent, used, reported } = lease;
    const all = spent + used;
    if (all <= reported) return;
    let reached = all >= limit.amount ? limit.amount : 0;
    if (reached === 0) for (const mark of limit.marks ?? []) if (mark <= all) reached = mark;
    if (reached > 0) this.report(lease, reached);
  }

  /** Reports marks up to this one that are spent, and the amount itself even if it is only reserved. */
  report(lease: Lease, upTo: number): void {
    const onReached = this.onReached;
    if (upTo <= lease.reported || onReached === undefined) return;
    const last = lease.reported;
    lease.reported = upTo;
    const { limit, start, end, window } = lease;
    const spent = lease.spent + lease.used;
    for (const mark of [...(limit.marks ?? []), limit.amount]) {
      // A reservation can use up a window before any of its marks is spent.
      if (mark <= last || mark > upTo || (mark !== limit.amount && spent < mark)) continue;
      const reached = { limit, mark, start, end, spent };
      const isNew = this.bank.isNew(window, mark);
      if (isNew === true) onReached(reached);
      // If the bank cannot say whether another process was first, the mark is reported again.
      else if (isNew !== false) void isNew.catch(() => true).then((is) => is && onReached(reached));
    }
  }
}
