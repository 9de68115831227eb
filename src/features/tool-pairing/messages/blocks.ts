/** Blocks that the Messages API refuses wherever they stand: blank text, foreign types, inputs that are no objects. */

import { editNode, mapUnchanged } from '../../../conversation/edit.ts';
import type { Block, OpaqueBlock, ToolResultBlock, Turn } from '../../../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { isBlank, legalName } from '../replacements.ts';
import type { Tally } from '../rules.ts';
import { type Seals, sealHolds } from './thinking.ts';

/**
 * The block types that have no meaning in the conversation model and that the API knows
 * (@anthropic-ai/sdk 1.12: `BetaContentBlockParam`). Others are refused: "Input tag 'X' found using
 * 'type' does not match any of the expected tags".
 */
const KNOWN = new Set([
  'image',
  'document',
  'search_result',
  'container_upload',
  'compaction',
  'tool_addition',
  'tool_removal',
  'mcp_tool_listing',
  'fallback',
  'billing_header',
]);

/** The same inside a tool result: "… expected tags: 'document', 'image', 'search_result', 'text', 'tool_reference'". */
const KNOWN_IN_RESULTS = new Set(['image', 'document', 'search_result', 'tool_reference']);

// tool_use.name of a history; declarations are held to 128.
const NAME = /^[a-zA-Z0-9_-]{1,200}$/;

/** The turn with the blocks that the API takes; the same reference where it took them all. */
export function cleanTurn(turn: Turn, seals: Seals, tally: Tally): Turn {
  const blocks = mapUnchanged(turn.blocks, (block) => cleanBlock(block, seals, tally));
  return blocks === turn.blocks ? turn : editNode(turn, { blocks });
}

/** Instructions: text that says something. */
export function cleanSystem(blocks: readonly Block[], tally: Tally): readonly Block[] {
  return mapUnchanged(blocks, (block) => {
    if (block.type !== 'text' || !isBlank(block.text)) return block;
    tally.blank++;
    return undefined;
  });
}

function cleanBlock(block: Block, seals: Seals, tally: Tally): Block | undefined {
  switch (block.type) {
    case 'text':
      if (!isBlank(block.text)) return block;
      tally.blank++;
      return undefined;
    case 'reasoning':
      if (!sealHolds(block, seals)) {
        tally.thinking++;
        return undefined;
      }
      return withoutMark(block, tally);
    case 'tool-call': {
      // The codec writes a wire as it stands; edited, the input is wrapped and the name made legal.
      const sound = block.input.startsWith('{') && NAME.test(block.name);
      if (block.wire === undefined || sound) return block;
      return NAME.test(block.name)
        ? editNode(block, {})
        : editNode(block, { name: legalName(block.name) });
    }
    case 'tool-result':
      return block.by === 'provider' ? block : cleanResult(block, tally);
    case 'opaque':
      return KNOWN.has(block.name) ? block : inWords(block, tally);
    default:
      return block;
  }
}

/** A block of a kind that no API of this protocol knows: its text stays, if it has one. */
function inWords(block: OpaqueBlock, tally: Tally): Block | undefined {
  tally.foreign++;
  const said = isObject(block.wire.value) ? block.wire.value.text : undefined;
  const text = block.text ?? (typeof said === 'string' ? said : '');
  return isBlank(text) ? undefined : { type: 'text', text };
}

function cleanResult(block: ToolResultBlock, tally: Tally): ToolResultBlock {
  const whole = block.content.length === 1 && typeof block.content[0]!.wire?.value === 'string';
  const content = whole
    ? block.content
    : mapUnchanged(block.content, (inner): Block | undefined => {
        if (inner.type === 'text') {
          if (!isBlank(inner.text)) return inner;
          tally.blank++;
          return undefined;
        }
        if (inner.type === 'media') return inner;
        if (inner.type === 'opaque') {
          return KNOWN_IN_RESULTS.has(inner.name) ? inner : inWords(inner, tally);
        }
        tally.foreign++;
        const text = nestedText(inner);
        return isBlank(text) ? undefined : { type: 'text', text };
      });
  if (block.isError && content.length === 0) {
    // content cannot be empty if `is_error` is true
    tally.blank++;
    return editNode(block, {
      content: [{ type: 'text', text: 'The tool failed without a message.' }],
    });
  }
  return content === block.content ? block : editNode(block, { content });
}

/** What a call, a result or thinking inside a result says. */
function nestedText(block: Block): string {
  if (block.type === 'tool-call') return `${block.name} ${block.input}`;
  if (block.type === 'tool-result') return block.content.map(nestedText).join('\n');
  return 'text' in block && typeof block.text === 'string' ? block.text : '';
}

/** Thinking takes no cache_control ("Extra inputs are not permitted"). */
function withoutMark<T extends Block>(block: T, tally: Tally): T {
  const value = block.wire?.value;
  if (!isObject(value) || value.cache_control === undefined) return block;
  tally.cache++;
  return { ...block, wire: { protocol: 'anthropic-messages', value: unmarked(value) } };
}

/** The JSON of a block without its cache mark. */
export function unmarked(value: JsonObject): Json {
  const { cache_control: _, ...rest } = value;
  return rest;
}
