/** Groups turns as the vendor reads them: runs of assistant turns and runs of input turns. */

import type { Turn } from '../../../conversation/types.ts';
import type { PairingRules } from '../rules.ts';

export interface TurnRun {
  readonly index: number;
  readonly side: 'assistant' | 'input';
  /** The range of its turns, asides included; `to` is exclusive. */
  readonly from: number;
  readonly to: number;
}

/** Long passes over a history yield after so many runs. */
export const RUNS_A_STEP = 64;

/** Instructions in mid-dialogue, which the vendor reads separately from it. */
export const isAside = (turn: Turn, rules: PairingRules): boolean =>
  rules.asidesAllowed &&
  turn.wire !== undefined &&
  (turn.role === 'system' || turn.role === 'developer');

/** The runs in order. Together they cover every turn. */
export function runsOf(turns: readonly Turn[], rules: PairingRules): readonly TurnRun[] {
  const runs: { index: number; side: TurnRun['side']; from: number; to: number }[] = [];
  for (let i = 0; i < turns.length; i++) {
    const turn = turns[i]!;
    const last = runs.at(-1);
    if (last !== undefined && isAside(turn, rules)) {
      last.to = i + 1;
      continue;
    }
    const side = turn.role === 'assistant' ? 'assistant' : 'input';
    if (
      last === undefined ||
      last.side !== side ||
      (side === 'assistant' && !rules.joinsAssistantTurns)
    ) {
      runs.push({ index: runs.length, side, from: i, to: i + 1 });
    } else last.to = i + 1;
  }
  return runs;
}
