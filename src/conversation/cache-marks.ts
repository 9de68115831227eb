/** Cache marks on the nodes of a conversation: which nodes have one, and which can. */

import { isObject, type Json, type JsonObject } from '../lib/json/json.ts';
import { editNode, mapBlocks, mapUnchanged, withParts } from './edit.ts';
import type { Block, CacheMark, Conversation, Tool, Turn } from './types.ts';

/** "A maximum of 4 blocks with cache_control may be provided. Found 5." A mark at the top of the body is one of them. */
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

/** The conversation with so many marks as vendors take, and how many are gone. */
export interface LimitedMarks {
  readonly conversation: Conversation;
  readonly removed: number;
}

/**
 * Removes surplus cache marks: first from messages, earliest first, then from tools and instructions. The
 * last mark covers everything before it, and marks on tools and instructions cover what all requests share.
 */
export function withFewerCacheMarks(conversation: Conversation): LimitedMarks {
  const { tools, system, turns, settings } = conversation;
  let excess = isObject(settings.rest?.cache_control) ? 1 - MAX_CACHE_MARKS : -MAX_CACHE_MARKS;
  for (const _ of cacheMarks(conversation)) excess++;
  if (excess <= 0) return { conversation, removed: 0 };
  const removed = excess;
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
  const turnsLeft = mapUnchanged(turns, (turn) => {
    const left = mapBlocks(turn, drop);
    // A message of Chat can have the mark of its last block.
    return left === turn ? turn : withoutResidueMark(left);
  });
  const toolsLeft = mapUnchanged(tools, (tool) => {
    if (excess <= 0 || cacheMarkOf(tool) === undefined) return tool;
    excess--;
    return withoutMark(tool);
  });
  const systemLeft = mapUnchanged(system, drop);
  const parts = { turns: turnsLeft, tools: toolsLeft, system: systemLeft };
  return { conversation: withParts(conversation, parts), removed };
}

function withoutMark<T extends Block | Tool>(node: T): T {
  if ('cache' in node) {
    return withoutResidueMark(editNode(node, { cache: undefined } as unknown as Partial<T>));
  }
  const { wire } = node;
  if (wire === undefined || !isObject(wire.value)) return node;
  return { ...node, wire: { ...wire, value: withoutCacheMark(wire.value) } };
}

function withoutResidueMark<T extends Turn | Block | Tool>(node: T): T {
  const { residue } = node;
  if (residue === undefined || !isObject(residue.value)) return node;
  return { ...node, residue: { ...residue, value: withoutCacheMark(residue.value) } };
}

export function withoutCacheMark(value: JsonObject): Json {
  const { cache_control: _, ...rest } = value;
  return rest;
}
