/** Moves one kind of state between the files of a machine and the shared engines. */

import type { EngineName } from '../engines/engine.ts';

export type MoveDirection = 'engines' | 'embedded';

/** Both sides of a move, compared. */
export interface MoveComparison {
  /** Items of the source. */
  readonly items: number;
  /** Items that the target lacks, or has in an older form: a copy writes them. */
  readonly missing: number;
  /** Items that differ, and neither side is known to be older: a copy leaves them as they are. */
  readonly conflicts: number;
  /** Sentences for people. */
  readonly notes?: readonly string[];
}

/**
 * One kind of state. A move copies and never removes: the source stays as it is. Both sides may be in use meanwhile.
 *
 * Each item is copied whole or not at all, and only once, however often a copy is cut and begun again.
 */
export interface StateMove {
  /** Its name for people: `keys`, `budgets` … */
  readonly name: string;
  /** One item of it: `key`, `window` … */
  readonly item: string;
  readonly engine: EngineName;
  /** A gateway with engines copies it, too: nobody has to be reminded. */
  readonly byItself?: boolean;
  /** Writes nothing, neither files nor tables. Rejects where a side cannot be read. */
  compare(): Promise<MoveComparison>;
  /**
   * Copies items that {@link compare} calls missing, in batches.
   * @param onProgress how many items were gone through so far, of how many
   * @returns how many were written
   */
  copy(onProgress: (done: number, all: number) => void): Promise<number>;
}
