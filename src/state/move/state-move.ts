/** Moving what was kept before between the files of one machine and the shared engines: the interface of one kind of state. */

import type { EngineName } from '../engines/engine.ts';

export type MoveDirection = 'engines' | 'embedded';

/** Both sides of a move, compared. */
export interface MoveComparison {
  /** What the source has. */
  readonly items: number;
  /** What of it the target lacks, or has in an older form: what a copy would write. */
  readonly missing: number;
  /** What both sides have in forms of which neither is older: a copy leaves the target's as it is. */
  readonly conflicts: number;
  /** What people must know: sentences. */
  readonly notes?: readonly string[];
}

/**
 * One kind of state. A move copies and never removes: the source stays as it is. Both sides may be in use meanwhile.
 *
 * Each item is copied whole or not at all, and only once, however often a copy is cut and begun again.
 */
export interface StateMove {
  /** What people call it: `keys`, `budgets` … */
  readonly name: string;
  /** One item of it: `key`, `window` … */
  readonly item: string;
  readonly engine: EngineName;
  /** A gateway with engines copies it, too: nobody has to be reminded. */
  readonly byItself?: boolean;
  /** Writes nothing, neither files nor tables. Rejects where a side cannot be read. */
  compare(): Promise<MoveComparison>;
  /**
   * Copies what {@link compare} calls missing, in batches.
   * @param onProgress how many items were gone through so far, of how many
   * @returns how many were written
   */
  copy(onProgress: (done: number, all: number) => void): Promise<number>;
}
