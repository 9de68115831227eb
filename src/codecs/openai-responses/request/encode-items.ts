/** Encodes turns as Responses input items: messages, calls, results and reasoning. */

import { FAILED_SILENTLY, resultWords } from '../../../conversation/edit.ts';
import { noteLostName } from '../../../conversation/lost-fields.ts';
import type { Notes } from '../../../conversation/notes.ts';
import type {
  Block,
  ReasoningBlock,
  Role,
  TextBlock,
  ToolCallBlock,
  ToolResultBlock,
  Turn,
} from '../../../conversation/types.ts';
import { isObject, type Json, type JsonObject, tryParse } from '../../../lib/json/json.ts';
import { callId, compact, ownResidue, ownWire, PROTOCOL } from '../wire.ts';
import { encodePart, encodeParts, type ItemContext, imageParts } from './encode-parts.ts';
import { isInCallItem } from './hosted-result.ts';

/** {@link encodeTurn}, as it was made before if it depends on the turn alone. */
export function knownItems(turn: Turn, at: string, context: ItemContext): readonly JsonObject[] {
  const { target, names, own, fileIds, known } = context;
  if (ownWire(turn) !== undefined) return encodeTurn(turn, at, context);
  const { provider, model, profile } = target;
  const shape = [PROTOCOL, provider, model, profile, names, own, fileIds];
  return known.encoded(turn, shape, context.notes, (notes) =>
    encodeTurn(turn, at, { ...context, notes }),
  );
}

/** The items of one turn. Content that Responses cannot express becomes a note. */
export function encodeTurn(turn: Turn, at: string, context: ItemContext): readonly JsonObject[] {
  const wire = ownWire(turn);
  if (isObject(wire)) return [wire];
  noteLostName(turn, context.notes, `${at}.name`);
  return turn.role === 'assistant'
    ? assistantItems(turn, at, context)
    : inputItemsOf(turn, at, context);
}

/**
 * Reasoning and messages in order, then all calls: DeepSeek refuses a message between the calls of one turn,
 * and other vendors accept any order.
 */
function assistantItems(turn: Turn, at: string, context: ItemContext): readonly JsonObject[] {
  const items: JsonObject[] = [];
  const calls: JsonObject[] = [];
  let pendingReasoning: JsonObject[] = [];
  let content: Block[] = [];
  const closeMessage = () => {
    if (content.length === 0) return;
    const item = messageItem(turn, 'assistant', content, at, context);
    content = [];
    if (item === undefined) return;
    items.push(...pendingReasoning, item);
    pendingReasoning = [];
  };
  for (const block of turn.blocks) {
    switch (block.type) {
      case 'text':
      case 'refusal':
        content.push(block);
        break;
      case 'reasoning': {
        closeMessage();
        const item = reasoningItem(block, at, context);
        if (item !== undefined) pendingReasoning.push(item);
        break;
      }
      case 'tool-call': {
        closeMessage();
        const item = callItem(block, at, context);
        if (item === undefined) break;
        calls.push(...pendingReasoning, item);
        pendingReasoning = [];
        break;
      }
      case 'opaque': {
        const item = ownWire(block);
        if (isObject(item) && content.length === 0 && item.role === undefined) {
          closeMessage();
          items.push(...pendingReasoning, item);
          pendingReasoning = [];
        } else content.push(block);
        break;
      }
      case 'tool-result':
        // A result inside an assistant turn: its tool was run by the vendor or the gateway.
        if (block.by !== 'provider') calls.push(...resultItems(block, at, context));
        else if (!isInCallItem(block)) content.push(...foreignResult(block, at, context));
        break;
      case 'media':
        content.push(block);
        break;
    }
  }
  closeMessage();
  // Reasoning may be a turn of its own before the turn that it led to; see withoutLoneReasoning.
  return [...items, ...calls, ...pendingReasoning];
}

/**
 * The items without reasoning that no assistant item follows, which the API refuses:
 * "… of type 'reasoning' was provided without its required following item."
 */
export function withoutLoneReasoning(
  items: readonly JsonObject[],
  notes: Notes,
): readonly JsonObject[] {
  const keptReversed: JsonObject[] = [];
  let leadsToItem = false;
  for (let i = items.length - 1; i >= 0; i--) {
    const item = items[i]!;
    if (item.type === 'reasoning') {
      if (leadsToItem) keptReversed.push(item);
      else notes.add('reasoning_dropped', 'input', 'nothing follows it');
      continue;
    }
    leadsToItem =
      item.role === 'assistant' || (typeof item.type === 'string' && item.type.endsWith('_call'));
    keptReversed.push(item);
  }
  return keptReversed.length === items.length ? items : keptReversed.reverse();
}

/** As text of the answer: Responses takes no result of a tool that another vendor ran. */
function foreignResult(
  block: ToolResultBlock,
  at: string,
  { notes }: ItemContext,
): readonly TextBlock[] {
  const text = resultWords(block);
  notes.add(text === '' ? 'hosted_call_dropped' : 'content_bridged', at, block.callId);
  return text === '' ? [] : [{ type: 'text', text }];
}

/** The items of a turn that is not the assistant's: results first, because they answer the calls before it. */
function inputItemsOf(turn: Turn, at: string, context: ItemContext): readonly JsonObject[] {
  const results: JsonObject[] = [];
  const followingImages: JsonObject[] = [];
  const content: Block[] = [];
  for (const block of turn.blocks) {
    if (block.type === 'tool-result') {
      if (block.by === 'provider' && ownWire(block) === undefined) {
        context.notes.add('hosted_call_dropped', at, block.callId);
        continue;
      }
      results.push(...resultItems(block, at, context));
      followingImages.push(...imageParts(block, context));
    } else if (block.type === 'opaque' && isWholeItem(block)) {
      results.push(ownWire(block) as JsonObject);
    } else if (block.type === 'tool-call') {
      const item = callItem(block, at, context);
      if (item !== undefined) results.push(item);
    } else content.push(block);
  }
  if (followingImages.length > 0) {
    context.notes.add('content_bridged', at, 'images of a tool result follow it as a user message');
    results.push({ type: 'message', role: 'user', content: followingImages });
  }
  const message = messageItem(turn, turn.role, content, at, context);
  return message === undefined ? results : [...results, message];
}

/** Is this opaque block an item (compaction, local_shell_call, …)? Others are parts of a message. */
function isWholeItem(block: Block): boolean {
  const value = 'wire' in block ? ownWire(block) : undefined;
  return isObject(value) && typeof value.type === 'string' && !value.type.startsWith('input_');
}

function messageItem(
  turn: Turn,
  role: Role,
  blocks: readonly Block[],
  at: string,
  context: ItemContext,
): JsonObject | undefined {
  const residue = ownResidue(turn);
  const head = residue?.content === undefined ? undefined : residue;
  if (typeof head?.content === 'string' && blocks.every((b) => b.type === 'text' && !b.wire)) {
    const joined = blocks.map((b) => (b.type === 'text' ? b.text : '')).join('');
    return { ...head, role, content: joined };
  }
  const content = encodeParts(blocks, role, at, context);
  if (content.length > 0) return { ...(head ?? { type: 'message' }), role, content };
  if (role === 'assistant' || blocks.length === 0) return undefined;
  // A placeholder for a turn without content: without it, input might be empty.
  const placeholder = blocks.every((block) => block.type === 'text') ? '' : '[content omitted]';
  return { type: 'message', role, content: [{ type: 'input_text', text: placeholder }] };
}

function callItem(block: ToolCallBlock, at: string, context: ItemContext): JsonObject | undefined {
  const wire = ownWire(block);
  if (isObject(wire)) return wire;
  const residue = ownResidue(block);
  if (block.by === 'provider' && residue === undefined) {
    context.notes.add('hosted_call_dropped', at, block.name);
    return undefined;
  }
  const call_id = callId(block.id);
  if (block.kind === 'tool-search') {
    const input = tryParse(block.input);
    const args = isObject(input) ? input : {};
    const head = { type: 'tool_search_call', execution: 'client', status: 'completed' };
    return { ...head, ...residue, call_id, arguments: args };
  }
  const name = context.own ? block.name : context.names.flat(block.name, block.namespace);
  const namespace = context.own ? block.namespace : undefined;
  return block.kind === 'custom'
    ? compact({
        ...residue,
        type: 'custom_tool_call',
        call_id,
        name,
        namespace,
        input: block.input,
      })
    : compact({
        ...residue,
        type: 'function_call',
        call_id,
        name,
        namespace,
        // An empty input means no arguments, and the API requires JSON.
        arguments: block.input.trim() === '' ? '{}' : block.input,
      });
}

// Calls of the client's own tools are in a history of Responses as they came; a vendor without them knows functions.
const OUTPUT_TYPES = {
  function: 'function_call_output',
  shell: 'function_call_output',
  'local-shell': 'function_call_output',
  'apply-patch': 'function_call_output',
  custom: 'custom_tool_call_output',
  'tool-search': 'tool_search_output',
} as const;

function resultItems(
  block: ToolResultBlock,
  at: string,
  context: ItemContext,
): readonly JsonObject[] {
  const wire = ownWire(block);
  if (isObject(wire)) return [wire];
  const residue = ownResidue(block);
  const type = OUTPUT_TYPES[block.kind];
  const call_id = callId(block.callId);
  if (block.kind === 'tool-search') {
    const head = { type, execution: 'client', status: 'completed', tools: [] };
    return [{ ...head, ...residue, call_id }];
  }
  return [{ ...residue, type, call_id, output: encodeOutput(block, at, context) }];
}

function encodeOutput(block: ToolResultBlock, at: string, context: ItemContext): Json {
  const prefix = block.isError ? 'Error: ' : '';
  if (block.isError) context.notes.add('content_bridged', at, 'is_error as text');
  const media = block.content.some((part) => part.type === 'media');
  const listed = Array.isArray(ownResidue(block)?.output);
  const parts = block.content.flatMap((part) => encodePart(part, 'user', at, context, true));
  if (media || listed) {
    return prefix === '' ? parts : [{ type: 'input_text', text: prefix.trimEnd() }, ...parts];
  }
  const words = parts.map((part) => (typeof part.text === 'string' ? part.text : '')).join('\n');
  return prefix + (block.isError && words === '' ? FAILED_SILENTLY : words);
}

/**
 * Reasoning goes back only to its maker: with its own encrypted payload, or as plain text to a vendor that
 * requires it (DeepSeek refuses a tool turn without it).
 */
function reasoningItem(
  block: ReasoningBlock,
  at: string,
  context: ItemContext,
): JsonObject | undefined {
  const wire = ownWire(block);
  if (isObject(wire)) return wire;
  const { sealed } = block;
  const residue = ownResidue(block);
  const ours =
    sealed?.protocol === PROTOCOL &&
    sealed.value !== '' &&
    (sealed.provider === undefined || sealed.provider === context.target.provider);
  if (ours) {
    // Readable text with a payload of this protocol is always its summary.
    const summary = block.text === '' ? [] : [{ type: 'summary_text', text: block.text }];
    return { ...residue, type: 'reasoning', summary, encrypted_content: sealed.value };
  }
  const { readableReasoning, reasoningField } = context.target.profile;
  if ((readableReasoning ?? reasoningField === 'reasoning_content') && block.text !== '') {
    const content = [{ type: 'reasoning_text', text: block.text }];
    // Servers that check items by the types of OpenAI's client (vLLM, SGLang) demand an id.
    const id = `rs_${Bun.hash(at + block.text).toString(36)}`;
    return { type: 'reasoning', id, summary: [], content };
  }
  context.notes.add('reasoning_dropped', at, 'made by another vendor, or not sealed');
  return undefined;
}
