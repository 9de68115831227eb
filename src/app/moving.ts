/** Which kinds of state can be moved between the files of a machine and the shared engines. */

import type { StateMoveOptions } from '../cli/command.ts';
import type { StateMove } from '../lib/store/state-move.ts';

/** Those whose engine is configured, in the order in which they are moved. */
export function stateMoves({ engines }: StateMoveOptions): readonly StateMove[] {
  const all: readonly StateMove[] = [];
  return all.filter(({ engine }) => engines[engine] !== undefined);
}
