/** Fills or removes empty messages, and trims the end of a prefill. */

import { editNode } from '../../../conversation/edit.ts';
import type { Block, Turn } from '../../../conversation/types.ts';
import { isAside, runsOf } from '../pairs/runs.ts';
import { isBlank, NO_CONTENT } from '../replacements.ts';
import type { PairingRules } from '../rules.ts';

/**
 * "all messages must have non-empty content except for the optional final assistant message". An empty
 * message next to others of its role is removed. One that is a whole turn gets a placeholder text, so that
 * the turns around it stay separate. A final assistant message that came empty stays; one that became empty
 * is removed.
 */
export function fillEmpty(
  turns: readonly Turn[],
  rules: PairingRules,
  note: () => void,
): readonly Turn[] {
  if (!turns.some((turn) => turn.blocks.length === 0)) return turns;
  const out: Turn[] = [];
  let changed = false;
  for (const run of runsOf(turns, rules)) {
    const hasContent = turns
      .slice(run.from, run.to)
      .some((turn) => turn.blocks.length > 0 && !isAside(turn, rules));
    let filled = hasContent;
    for (let i = run.from; i < run.to; i++) {
      const turn = turns[i]!;
      if (turn.role === 'system' && turn.blocks.length === 0) {
        changed = true;
        note();
        continue;
      }
      const prefill = i === turns.length - 1 && turn.role === 'assistant';
      if (turn.blocks.length > 0 || isAside(turn, rules) || (prefill && turn.wire !== undefined)) {
        out.push(turn);
        continue;
      }
      changed = true;
      note();
      if (filled || (prefill && i > 0)) continue;
      filled = true;
      out.push(editNode(turn, { blocks: [{ type: 'text', text: NO_CONTENT }] }));
    }
  }
  return changed ? out : turns;
}

/** "final assistant content cannot end with trailing whitespace". */
export function trimPrefill(turns: readonly Turn[], note: () => void): readonly Turn[] {
  const turn = turns.at(-1);
  const block: Block | undefined = turn?.blocks.at(-1);
  if (turn?.role !== 'assistant' || block?.type !== 'text') return turns;
  const text = trimBlankEnd(block.text);
  if (text === block.text) return turns;
  note();
  const blocks = turn.blocks.with(-1, editNode(block, { text }));
  return turns.with(-1, editNode(turn, { blocks }));
}

/** Removes trailing white space. A loop, because a pattern would restart at every run of spaces. */
function trimBlankEnd(text: string): string {
  let end = text.length;
  while (end > 0 && isBlank(text.charAt(end - 1))) end--;
  return text.slice(0, end);
}
