/** Looks for what files of this machine hold and the engines lack: it was kept before there were engines. */

import { redactText } from '../../../lib/text/redact.ts';
import { messageOf } from '../../../lib/text/thrown.ts';
import { EngineAway } from '../../../state/engines/engine.ts';
import type { MoveComparison, StateMove } from '../../../state/move/state-move.ts';
import { plural } from '../../terminal.ts';
import { type Finding, finding } from './finding.ts';

const ABOUT = 'state';
const COMPARE = 'To compare all of it: hopgate state move --to engines --dry-run';

/**
 * One kind of state after the other, and nothing where there is nothing of before.
 * @param moves to the engines
 * @param patienceMs for all of them together
 */
export async function checkMoves(
  moves: readonly StateMove[],
  patienceMs: number,
): Promise<readonly Finding[]> {
  const end = performance.now() + patienceMs;
  const found: Finding[] = [];
  const missing: string[] = [];
  const late: string[] = [];
  let items = 0;
  for (const move of moves) {
    try {
      const compared = await within(end - performance.now(), move.compare());
      if (compared === undefined) late.push(move.name);
      else if (compared.missing > 0) missing.push(plural(compared.missing, move.item));
      items += compared?.items ?? 0;
    } catch (thrown) {
      // The check of the engine itself reports it.
      if (thrown instanceof EngineAway) continue;
      const why = redactText(messageOf(thrown)).text;
      found.push(finding(ABOUT, 'warn', `${move.name}: ${why}`, COMPARE));
    }
  }
  if (missing.length > 0) {
    const what = `${listOf(missing)} of this machine are not in the engines`;
    found.push(finding(ABOUT, 'warn', what, 'Copy them: hopgate state move --to engines'));
  } else if (items > 0 && late.length === 0 && found.length === 0) {
    found.push(finding(ABOUT, 'ok', 'what this machine kept in its files is in the engines, too'));
  }
  if (late.length > 0) {
    const seconds = Math.round(patienceMs / 1000);
    const what = `not compared with the engines within ${seconds} s: ${late.join(', ')}`;
    found.push(finding(ABOUT, 'skip', what, COMPARE));
  }
  return found;
}

/** Undefined: it takes longer. */
async function within(
  ms: number,
  work: Promise<MoveComparison>,
): Promise<MoveComparison | undefined> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  // What is late may still fail.
  work.catch(() => {});
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, Math.max(0, ms), undefined);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** `a, b and c`. */
function listOf(parts: readonly string[]): string {
  const [last, ...others] = parts.toReversed();
  return others.length === 0 ? last! : `${others.toReversed().join(', ')} and ${last}`;
}
