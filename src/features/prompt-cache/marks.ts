/** Sets cache marks where a vendor that speaks them is to keep a prompt. */

import { cacheMarkOf, cacheMarksOf, takesCacheMark } from '../../conversation/cache-marks.ts';
import { editNode, withParts } from '../../conversation/edit.ts';
import type { Notes } from '../../conversation/notes.ts';
import type { Target } from '../../conversation/target.ts';
import type { Block, CacheMark, Conversation, Tool, Turn } from '../../conversation/types.ts';
import { BYTES_PER_TOKEN } from '../../conversation/usage.ts';

/** The end of: the request, the instructions, this turn, the tools. */
export type Place = 'end' | 'instructions' | number | 'tools';

/** Default for models whose least length is unknown (https://platform.claude.com/docs/en/build-with-claude/prompt-caching). */
const USUAL_LEAST = 1024;

// Where a prefix ends: behind the tools, behind `system`, or behind the turn of this index.
const TOOLS = -2;
const SYSTEM = -1;

/** The conversation with a mark at the first of these places that there are, and up to which the prompt is long enough. */
export function markPlaces(
  conversation: Conversation,
  target: Target,
  mark: CacheMark,
  places: readonly Place[],
  most: number,
  notes: Notes,
): Conversation {
  const { tools, system, turns } = conversation;
  const instructed = instructionTurns(turns);
  const end = turns.findLastIndex(({ blocks }) => blocks.some(takesCacheMark));
  const least = leastPlace(conversation, (target.leastCache ?? USUAL_LEAST) * BYTES_PER_TOKEN);
  const positions = new Set<number>();
  for (const place of places) {
    if (positions.size === most) break;
    const at =
      place === 'end'
        ? end
        : place === 'tools'
          ? TOOLS
          : place === 'instructions'
            ? instructed - 1
            : place;
    if (at >= least) positions.add(at);
  }
  const named: string[] = [];
  let marked = conversation;
  // On Chat there are marks on parts of messages alone; a mark behind the tools covers them as well.
  if (positions.has(TOOLS) && target.protocol === 'anthropic-messages') {
    const at = tools.findLastIndex(isFunction);
    if (at >= 0 && cacheMarkOf(tools[at]!) === undefined) {
      named.push('tools');
      const tool = editNode<Tool>(tools[at]!, { cache: mark });
      marked = withParts(marked, { tools: tools.with(at, tool) });
    }
  }
  if (positions.has(SYSTEM)) {
    const next = markedBlocks(system, mark);
    if (next !== system) {
      named.push('instructions');
      marked = withParts(marked, { system: next });
    }
  }
  let next: Turn[] | undefined;
  for (const at of positions) {
    const turn = turns[at];
    const blocks = turn && markedBlocks(turn.blocks, mark);
    if (turn === undefined || blocks === turn.blocks) continue;
    named.push(at < instructed ? 'instructions' : `turn ${at + 1} of ${turns.length}`);
    next ??= [...turns];
    next[at] = editNode(turn, { blocks });
  }
  if (named.length === 0) return conversation;
  notes.add('cache_marks_added', 'cache_control', named.join(', '));
  return next === undefined ? marked : withParts(marked, { turns: next });
}

/** The conversation with a mark at the end of its instructions, if there is none in them. */
export function markInstructions(conversation: Conversation): Conversation {
  const { system, turns } = conversation;
  const instructed = instructionTurns(turns);
  for (const blocks of [system, ...turns.slice(0, instructed).map((turn) => turn.blocks)]) {
    for (const _ of cacheMarksOf(blocks)) return conversation;
  }
  const last = turns[instructed - 1];
  if (last === undefined) {
    const next = markedBlocks(system, {});
    return next === system ? conversation : withParts(conversation, { system: next });
  }
  const blocks = markedBlocks(last.blocks, {});
  if (blocks === last.blocks) return conversation;
  return withParts(conversation, { turns: turns.with(instructed - 1, editNode(last, { blocks })) });
}

const isFunction = (tool: Tool): boolean => tool.type === 'function';

/** How many turns are instructions in front of the dialogue; of nothing else there is no dialogue. */
function instructionTurns(turns: readonly Turn[]): number {
  const first = turns.findIndex(({ role }) => role !== 'system' && role !== 'developer');
  return Math.max(0, first);
}

/** The blocks with a mark on the last one that takes any; the same list if it has one. */
function markedBlocks(blocks: readonly Block[], mark: CacheMark): readonly Block[] {
  const at = blocks.findLastIndex(takesCacheMark);
  if (at < 0 || cacheMarkOf(blocks[at]!) !== undefined) return blocks;
  return blocks.with(at, editNode<Block>(blocks[at]!, { cache: mark } as Partial<Block>));
}

/** The first place up to which the prompt has so many bytes, about. Looks at no more of it. */
function leastPlace({ tools, system, turns }: Conversation, bytes: number): number {
  let left = bytes;
  for (const tool of tools) {
    left -= sizeOfTool(tool);
    if (left <= 0) return TOOLS;
  }
  if (takes(system)) return SYSTEM;
  for (let at = 0; at < turns.length; at++) if (takes(turns[at]!.blocks)) return at;
  return turns.length;

  function takes(blocks: readonly Block[]): boolean {
    for (const block of blocks) {
      left -= sizeOf(block);
      if (left <= 0) return true;
    }
    return false;
  }
}

/** Of whatever is no text. The least that a small picture costs. */
const MEDIA_BYTES = 100 * BYTES_PER_TOKEN;

function sizeOfTool(tool: Tool): number {
  if (tool.type === 'hosted') return 0;
  const schema = tool.type === 'function' ? tool.schema : tool.format;
  const text = schema === undefined ? '' : JSON.stringify(schema);
  return tool.name.length + Buffer.byteLength(tool.description ?? '') + Buffer.byteLength(text);
}

function sizeOf(block: Block): number {
  switch (block.type) {
    case 'text':
    case 'refusal':
      return Buffer.byteLength(block.text);
    case 'tool-call':
      return block.name.length + Buffer.byteLength(block.input);
    case 'tool-result':
      return block.content.reduce((sum, part) => sum + sizeOf(part), 0);
    case 'media':
      return MEDIA_BYTES;
    default:
      return 0;
  }
}
