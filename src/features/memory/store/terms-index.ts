/** An index of terms: a file and Postgres have one each, and both find the same. */

import type { SqlStatements } from '../../../state/sql/sql.ts';
import type { LookedUp } from '../ranking/known-terms.ts';
import type { Question } from '../ranking/question.ts';
import type { Found } from '../ranking/rank.ts';

export interface Asking {
  /** The name of the space. */
  readonly space: string;
  readonly question: Question;
  /** Terms of the question that are looked up. */
  readonly lookedUp: LookedUp;
  /** Rows of the nearest vectors, which are candidates, too. */
  readonly near: readonly number[];
}

/** A candidate as it is stored. Its body may come with it. */
export interface FoundRow {
  readonly seq: number;
  readonly id: string;
  readonly time: number;
  readonly importance: number;
  readonly digest: Uint8Array | null;
  readonly body: Uint8Array | null;
}

export interface FoundRows extends Omit<Found, 'candidates'> {
  /** The id of the space. */
  readonly space: number;
  readonly rows: readonly FoundRow[];
}

export interface ErasedSpace {
  readonly id: number;
  readonly events: number;
}

export interface TermsIndex {
  /** Called before the first use. */
  prepare?(): Promise<void>;
  /** Events that one statement writes. */
  readonly together: number;
  /** The column of an event's row that holds its terms, where there is one. */
  readonly column: 'terms' | undefined;
  /** A term as it is stored, within the terms of its event. */
  stored(space: number, term: string): string;
  /** Adds the terms, as {@link stored}, of events of one space that were just written. */
  add(inside: SqlStatements, events: ReadonlyMap<number, readonly string[]>): Promise<void>;
  /** Called before the rows are deleted. */
  remove(inside: SqlStatements, rows: readonly number[]): Promise<void>;
  /** Called after a transaction that added. */
  added?(): Promise<void>;
  /** Undefined: there is no such space. */
  find(asking: Asking): Promise<FoundRows | undefined>;
  /**
   * Removes some of an erased space.
   * @param drop removes rows
   * @returns false where the index is to be tidied before it goes on
   */
  sweep(
    inside: SqlStatements,
    space: ErasedSpace,
    drop: (rows: readonly number[]) => Promise<void>,
  ): Promise<boolean>;
  // Postgres cleans up by itself, so its index lacks the three.
  /** One step of removing every trace of what was removed. False: nothing is left to do. */
  tidy?(first: boolean): Promise<boolean>;
  /** One step of giving free pages back. False: there are none. */
  vacuum?(): Promise<boolean>;
  /** True: another process is reading, so the last traces are still there. */
  flush?(): Promise<boolean>;
}
