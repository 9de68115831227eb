/** Repairs blocks that the Messages API refuses at any position: blank text, unknown types, inputs that are no objects. */

import { withoutCacheMark } from '../../../conversation/cache-marks.ts';
import {
  editNode,
  FAILED_SILENTLY,
  isBlank,
  mapBlocks,
  mapUnchanged,
  NO_CONTENT,
} from '../../../conversation/edit.ts';
import type { Block, OpaqueBlock, ToolResultBlock, Turn } from '../../../conversation/types.ts';
import { isObject } from '../../../lib/json/json.ts';
import { wordSet } from '../../../lib/text/words.ts';
import { isAside, runsOf } from '../pairs/runs.ts';
import { legalName } from '../replacements.ts';
import type { PairingRules, Repair, RepairCounts } from '../rules.ts';
import { sealHolds } from './thinking.ts';

/**
 * Block types that the conversation model does not know but the API does
 * (@anthropic-ai/sdk 1.12: `BetaContentBlockParam`). Others are refused: "Input tag 'X' found using
 * 'type' does not match any of the expected tags".
 */
const KNOWN_TYPES = wordSet(`
  image document search_result container_upload compaction tool_addition tool_removal mcp_tool_listing
  fallback billing_header`);

/** The same inside a tool result: "… expected tags: 'document', 'image', 'search_result', 'text', 'tool_reference'". */
const KNOWN_TYPES_IN_RESULTS = wordSet('image document search_result tool_reference');

// tool_use.name in a history; in declarations the limit is 128.
const NAME = /^[a-zA-Z0-9_-]{1,200}$/;

/** The turn with blocks that the API accepts; the same reference if it accepts them all. */
export function cleanTurn(turn: Turn, repair: Repair): Turn {
  return mapBlocks(turn, (block) => cleanBlock(block, repair));
}

/** Instructions without blank text. */
export function cleanSystem(blocks: readonly Block[], counts: RepairCounts): readonly Block[] {
  return mapUnchanged(blocks, (block) => {
    if (block.type !== 'text' || !isBlank(block.text)) return block;
    counts.blank++;
    return undefined;
  });
}

function cleanBlock(block: Block, repair: Repair): Block | undefined {
  const { counts } = repair;
  switch (block.type) {
    case 'text':
      if (!isBlank(block.text)) return block;
      counts.blank++;
      return undefined;
    case 'reasoning':
      if (!sealHolds(block, repair)) {
        counts.thinking++;
        return undefined;
      }
      return withoutMark(block, counts);
    case 'tool-call': {
      // The codec writes an unchanged block verbatim. It wraps the input of an edited one.
      const sound = block.input.startsWith('{') && NAME.test(block.name);
      if (block.wire === undefined || sound) return block;
      if (NAME.test(block.name)) return editNode(block, {});
      counts.renamed++;
      return editNode(block, { name: legalName(block.name) });
    }
    case 'tool-result':
      return block.by === 'provider' ? block : cleanResult(block, counts);
    case 'opaque':
      return KNOWN_TYPES.has(block.name) ? block : asText(block, counts);
    default:
      return block;
  }
}

/** Replaces a block of an unknown type with its text, if it has any. */
function asText(block: OpaqueBlock, counts: RepairCounts): Block | undefined {
  counts.foreign++;
  const wireText = isObject(block.wire.value) ? block.wire.value.text : undefined;
  const text = block.text ?? (typeof wireText === 'string' ? wireText : '');
  return isBlank(text) ? undefined : { type: 'text', text };
}

function cleanResult(block: ToolResultBlock, counts: RepairCounts): ToolResultBlock {
  const whole = block.content.length === 1 && typeof block.content[0]!.wire?.value === 'string';
  const content = whole
    ? block.content
    : mapUnchanged(block.content, (inner): Block | undefined => {
        if (inner.type === 'text') {
          if (!isBlank(inner.text)) return inner;
          counts.blank++;
          return undefined;
        }
        if (inner.type === 'media') return inner;
        if (inner.type === 'opaque') {
          return KNOWN_TYPES_IN_RESULTS.has(inner.name) ? inner : asText(inner, counts);
        }
        counts.foreign++;
        const text = nestedText(inner);
        return isBlank(text) ? undefined : { type: 'text', text };
      });
  if (block.isError && content.length === 0) {
    // content cannot be empty if `is_error` is true
    counts.blank++;
    return editNode(block, { content: [{ type: 'text', text: FAILED_SILENTLY }] });
  }
  return content === block.content ? block : editNode(block, { content });
}

/** The text of a call, a result or thinking inside a result. */
function nestedText(block: Block): string {
  if (block.type === 'tool-call') return `${block.name} ${block.input}`;
  if (block.type === 'tool-result') return block.content.map(nestedText).join('\n');
  return 'text' in block && typeof block.text === 'string' ? block.text : '';
}

/** Thinking blocks accept no cache_control ("Extra inputs are not permitted"). */
function withoutMark<T extends Block>(block: T, counts: RepairCounts): T {
  const value = block.wire?.value;
  if (!isObject(value) || value.cache_control === undefined) return block;
  counts.cache++;
  return { ...block, wire: { protocol: 'anthropic-messages', value: withoutCacheMark(value) } };
}

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
