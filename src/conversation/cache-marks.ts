/** Cache marks on the nodes of a conversation: which nodes have one, and which can. */

import { isObject } from '../lib/json/json.ts';
import type { Block, CacheMark, Conversation, Tool } from './types.ts';

/** "A maximum of 4 blocks with cache_control may be provided. Found 5." */
export const MAX_CACHE_MARKS = 4;

/** The cache mark of a node, in its own field or in the JSON of Messages that it was decoded from. */
export function cacheMarkOf(node: Block | Tool): CacheMark | undefined {
  if ('cache' in node) return node.cache;
  const { wire } = node;
  const value = wire?.protocol === 'anthropic-messages' ? wire.value : undefined;
  const mark = isObject(value) ? value.cache_control : undefined;
  if (!isObject(mark)) return undefined;
  return typeof mark.ttl === 'string' ? { ttl: mark.ttl } : {};
}

/** The marks of blocks in order, those inside of tool results with the results. */
export function* cacheMarksOf(blocks: readonly Block[]): Generator<CacheMark> {
  for (const block of blocks) {
    if (block.type === 'tool-result') yield* cacheMarksOf(block.content);
    const mark = cacheMarkOf(block);
    if (mark !== undefined) yield mark;
  }
}

export function* cacheMarks({ tools, system, turns }: Conversation): Generator<CacheMark> {
  for (const tool of tools) {
    const mark = cacheMarkOf(tool);
    if (mark !== undefined) yield mark;
  }
  yield* cacheMarksOf(system);
  for (const { blocks } of turns) yield* cacheMarksOf(blocks);
}

/** Can a vendor take a mark on it? Not on reasoning, on empty text, and on what its encoder may leave out. */
export function takesCacheMark(block: Block): boolean {
  switch (block.type) {
    case 'text':
      return block.text.trim() !== '';
    case 'tool-call':
    case 'tool-result':
      return block.by !== 'provider';
    case 'media':
      return true;
    default:
      return false;
  }
}
