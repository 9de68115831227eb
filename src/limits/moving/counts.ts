/** What a move of budgets carries from one side to the other: what windows have counted, and which warnings were sent. */

/** What one side has counted in a window, without what it had from the other. */
export interface Count {
  readonly kind: 'window';
  readonly law: string;
  readonly start: number;
  /** Milliseconds since 1970 from which on it may go. */
  readonly keepUntil: number;
  readonly own: number;
}

/** A mark that was reached, and of which people know. */
export interface Notice {
  readonly kind: 'notice';
  readonly law: string;
  readonly start: number;
  readonly keepUntil: number;
  readonly mark: number;
}

export type Counted = Count | Notice;

/** One side. What is over is left out. */
export interface CountSide {
  count(): number | Promise<number>;
  pages(): AsyncIterable<readonly Counted[]> | Iterable<readonly Counted[]>;
  /** Which of these are here already, as they are. */
  has(page: readonly Counted[]): readonly boolean[] | Promise<readonly boolean[]>;
  /** Adds what is new since the last time, all or nothing. */
  add(page: readonly Counted[]): void | Promise<void>;
}

export const isCount = (one: Counted): one is Count => one.kind === 'window';
export const isNotice = (one: Counted): one is Notice => one.kind === 'notice';

export const PAGE = 500;
