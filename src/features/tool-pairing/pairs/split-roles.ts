/** Blocks on the wrong side of the dialogue: a call in a user turn is the assistant's all the same. */

import { editNode } from '../../../conversation/edit.ts';
import type { Block, Turn } from '../../../conversation/types.ts';
import type { RepairCounts } from '../rules.ts';

/** What only the assistant can have made. */
const isAssistantBlock = (block: Block): boolean =>
  block.type === 'tool-call' || (block.type === 'tool-result' && block.by === 'provider');

/**
 * The turns with every call in an assistant turn ("`tool_use` blocks can only be in `assistant`
 * messages"). Thinking that a user turn holds goes. The same reference where all is in its place.
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
  // The user's turn ended here: what the model said next is another turn of its own.
  if (out.at(-1)?.role === 'assistant') out.push({ role: 'user', blocks: [] });
  let host = true;
  return out.map(({ role, blocks }) => {
    if (role === 'assistant' || !host) return newTurn(turn, role, blocks);
    host = false;
    return editNode(turn, { blocks });
  });
}

/**
 * A turn that did not come as one. Where its source came on a wire, it is marked as of that wire too,
 * so that the encoder leaves it the borders it is given.
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
