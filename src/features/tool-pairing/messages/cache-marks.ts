/** Limits cache marks to four per request, as the Messages API requires. */

import { cacheMarkOf, cacheMarks, MAX_CACHE_MARKS } from '../../../conversation/cache-marks.ts';
import { editNode, mapBlocks, mapUnchanged, withParts } from '../../../conversation/edit.ts';
import type { Block, Conversation, Tool } from '../../../conversation/types.ts';
import { isObject } from '../../../lib/json/json.ts';
import type { RepairCounts } from '../rules.ts';
import { withoutCacheMark } from './blocks.ts';

/**
 * Removes surplus cache marks: first from messages, earliest first, then from tools and instructions. The
 * last mark covers everything before it, and marks on tools and instructions cover what all requests share.
 */
export function limitCacheMarks(conversation: Conversation, counts: RepairCounts): Conversation {
  const { tools, system, turns } = conversation;
  let excess = -MAX_CACHE_MARKS;
  for (const _ of cacheMarks(conversation)) excess++;
  if (excess <= 0) return conversation;
  counts.cache += excess;
  const drop = <T extends Block>(block: T): T => {
    if (excess <= 0) return block;
    let out = block;
    if (block.type === 'tool-result') {
      const content = mapUnchanged(block.content, drop);
      if (content !== block.content) out = editNode(block, { content } as unknown as Partial<T>);
    }
    if (excess <= 0 || cacheMarkOf(out) === undefined) return out;
    excess--;
    return withoutMark(out);
  };
  const turnsLeft = mapUnchanged(turns, (turn) => mapBlocks(turn, drop));
  const toolsLeft = mapUnchanged(tools, (tool) => {
    if (excess <= 0 || cacheMarkOf(tool) === undefined) return tool;
    excess--;
    return withoutMark(tool);
  });
  const systemLeft = mapUnchanged(system, drop);
  return withParts(conversation, { turns: turnsLeft, tools: toolsLeft, system: systemLeft });
}

function withoutMark<T extends Block | Tool>(node: T): T {
  if ('cache' in node) return editNode(node, { cache: undefined } as unknown as Partial<T>);
  const { wire } = node;
  if (wire === undefined || !isObject(wire.value)) return node;
  return { ...node, wire: { ...wire, value: withoutCacheMark(wire.value) } };
}
