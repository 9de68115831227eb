/** Moves calls out of user turns into assistant turns. */

import { editNode } from '../../../conversation/edit.ts';
import type { Block, Turn } from '../../../conversation/types.ts';
import type { RepairCounts } from '../rules.ts';

/** A block that only the assistant can have made. */
const isAssistantBlock = (block: Block): boolean =>
  block.type === 'tool-call' || (block.type === 'tool-result' && block.by === 'provider');

/**
 * Puts every call into an assistant turn ("`tool_use` blocks can only be in `assistant` messages") and
 * removes thinking from user turns. Returns the same reference if nothing is misplaced.
 */
export function splitRoles(turns: readonly Turn[], counts: RepairCounts): readonly Turn[] {
  if (!turns.some(isMixed)) return turns;
  return turns.flatMap((turn) => (isMixed(turn) ? splitTurn(turn, counts) : [turn]));
}

const isMixed = (turn: Turn): boolean =>
  turn.role === 'user' &&
  turn.blocks.some((block) => isAssistantBlock(block) || block.type === 'reasoning');

function splitTurn(turn: Turn, counts: RepairCounts): readonly Turn[] {
  const out: { role: 'user' | 'assistant'; blocks: Block[] }[] = [];
  for (const block of turn.blocks) {
    if (block.type === 'reasoning') {
      counts.thinking++;
      continue;
    }
    const role = isAssistantBlock(block) ? 'assistant' : 'user';
    const last = out.at(-1);
    if (last?.role === role) last.blocks.push(block);
    else out.push({ role, blocks: [block] });
  }
  // The user turn ended here, so the next assistant turn stays separate.
  if (out.at(-1)?.role === 'assistant') out.push({ role: 'user', blocks: [] });
  let host = true;
  return out.map(({ role, blocks }) => {
    if (role === 'assistant' || !host) return newTurn(turn, role, blocks);
    host = false;
    return editNode(turn, { blocks });
  });
}

/**
 * Makes a turn that the request did not contain. If its source came from a wire, the new turn is marked with
 * that protocol, so that the encoder does not merge it with its neighbours.
 */
export function newTurn(
  source: Turn | undefined,
  role: 'user' | 'assistant',
  blocks: readonly Block[],
): Turn {
  const from = source?.wire ?? source?.residue;
  return from === undefined
    ? { role, blocks }
    : { role, blocks, residue: { protocol: from.protocol, value: { role } } };
}
