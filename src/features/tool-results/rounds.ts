/** Finds the last round of tool calls in a conversation and the results that answer it. */

import type { ToolResultBlock, Turn } from '../../conversation/types.ts';

/** Is this a result that a model reads as a tool message? Vendors' own tools answer in their own blocks. */
export const isToolResult = (block: { readonly type: string }): block is ToolResultBlock =>
  block.type === 'tool-result' && (block as ToolResultBlock).by !== 'provider';

const calls = (turn: Turn) =>
  turn.role === 'assistant'
    ? turn.blocks.flatMap((block) =>
        block.type === 'tool-call' && block.by !== 'provider' ? [block.id] : [],
      )
    : [];

/**
 * Of the last round: the index of its first assistant turn and the ids of its calls. Neighbouring
 * assistant turns are one answer (Responses has an item a call). Undefined without any call.
 */
export function lastRound(
  turns: readonly Turn[],
): { readonly from: number; readonly ids: ReadonlySet<string> } | undefined {
  const last = turns.findLastIndex((turn) => calls(turn).length > 0);
  if (last < 0) return undefined;
  let from = last;
  while (from > 0 && turns[from - 1]!.role === 'assistant') from--;
  return { from, ids: new Set(turns.slice(from, last + 1).flatMap(calls)) };
}
