/** One answer of the model, in however many turns it came, as one assistant message. */

import { wrapFreeform } from '../../../conversation/tools/tool-names.ts';
import type {
  Block,
  ReasoningBlock,
  ToolCallBlock,
  ToolResultBlock,
  Turn,
} from '../../../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { textPart, thinkingText } from '../parts.ts';
import { decodeReasoning, hasEnvelope, ownDetails, REASONING_KEYS } from '../reasoning.ts';
import { compact, isOwn, list, object, ownResidue, ownWire, PROTOCOL, without } from '../wire.ts';
import {
  blockText,
  joinedText,
  type MessageContext,
  noteCache,
  noteOnce,
} from './encode-content.ts';

/** Message keys that blocks stand for; every other key of an edited message stays. */
const BLOCK_KEYS = [...REASONING_KEYS, 'role', 'content', 'refusal', 'tool_calls', 'function_call'];

/** What one run of assistant turns amounts to. */
export interface EncodedAssistant {
  /** Undefined when nothing of the answer can be said here. */
  readonly message: JsonObject | undefined;
  /** Results that stood inside the answer; they follow it as tool messages. */
  readonly results: readonly ToolResultBlock[];
}

/** Merges a run of assistant turns: reasoning, then text, then calls, each in order. */
export function assistantMessage(run: readonly Turn[], context: MessageContext): EncodedAssistant {
  const parts: JsonObject[] = [];
  const reasoning: ReasoningBlock[] = [];
  const calls: ToolCallBlock[] = [];
  const results: ToolResultBlock[] = [];
  const refusals: string[] = [];
  const from = run.length === 1 ? ownResidue(run[0]!) : {};
  for (const turn of run) {
    // Texts of one turn are pieces of one text; texts of neighbouring turns are paragraphs.
    let joined = parts.length > 0 ? '\n\n' : '';
    for (const block of turn.blocks) {
      noteCache(block, context);
      if (block.type === 'reasoning' && !isOwn(block)) reasoning.push(block);
      else if (block.type === 'tool-call') {
        if (block.by === 'provider') noteOnce(context, 'provider_call_dropped', block.name);
        else calls.push(block);
      } else if (block.type === 'tool-result' && block.by !== 'provider') results.push(block);
      else if (block.type === 'refusal' && isOwn(turn)) refusals.push(block.text);
      else {
        const part = assistantPart(block, context);
        if (part === undefined) continue;
        parts.push(joined === '' ? part : { ...part, text: joined + String(part.text ?? '') });
        joined = '';
      }
    }
  }
  const said = {
    ...reasoningFields(reasoning, from, context),
    ...(refusals.length > 0 ? { refusal: refusals.join('') } : {}),
    ...callFields(calls, from, context),
  };
  const content = contentOf(parts, from);
  const keep = without(from, BLOCK_KEYS);
  if (content === '' && Object.keys(said).length === 0 && !isOwn(run[0]!)) {
    return { message: undefined, results };
  }
  const empty = calls.length > 0 && from.content !== '' ? null : '';
  return {
    message: compact({
      role: 'assistant',
      ...keep,
      content: content === '' ? empty : content,
      ...said,
    }),
    results,
  };
}

/** An untouched part as it came, else the words of the block. */
function assistantPart(block: Block, context: MessageContext): JsonObject | undefined {
  const own = ownWire(block);
  if (isObject(own) && block.type !== 'tool-result') return own;
  if (block.type === 'reasoning') return thinkingPart(block);
  const said =
    block.type === 'tool-result' ? providerResult(block, context) : blockText(block, context);
  return said === '' ? undefined : textPart(said, block.type === 'text' ? ownResidue(block) : {});
}

/** An edited part of Mistral's kind; what still says the same keeps its form. */
function thinkingPart(block: ReasoningBlock): JsonObject {
  const from = ownResidue(block);
  if (thinkingText(from.thinking) === block.text) return from;
  return { ...from, type: 'thinking', thinking: [{ type: 'text', text: block.text }] };
}

/** What a vendor's own tool found, where it can be read; the next vendor never saw that call. */
function providerResult(block: ToolResultBlock, context: MessageContext): string {
  const said = joinedText(block.content, context, '\n');
  if (said === '') return '';
  noteOnce(context, 'content_bridged', 'result of a vendor-run tool as text');
  return `\n\n${said}\n\n`;
}

function contentOf(parts: readonly JsonObject[], from: JsonObject): Json {
  const array = list(from.content) !== undefined || parts.some((part) => part.type !== 'text');
  if (array && parts.length > 0) return parts;
  return parts.map((part) => String(part.text ?? '')).join('');
}

/**
 * Reasoning in the vendor's field. Details go back whole where they are the vendor's own; seals of
 * other makers are dropped, their text stays.
 */
function reasoningFields(
  blocks: readonly ReasoningBlock[],
  from: JsonObject,
  context: MessageContext,
): JsonObject {
  const { target } = context;
  const was = decodeReasoning(from);
  // Nothing was said and nothing is (an unsigned, empty detail), or the same as ever.
  const same =
    was === undefined
      ? blocks.length === 0
      : blocks.length === 1 && blocks[0]!.text === was.text && sameSeal(blocks[0]!, was);
  if (same && !hasEnvelope(from)) {
    const kept: Record<string, Json | undefined> = {};
    for (const key of REASONING_KEYS) kept[key] = from[key];
    return compact(kept);
  }
  const field = target.profile.reasoningField ?? ownField(from) ?? 'reasoning_content';
  const details: Json[] = [];
  const said: string[] = [];
  // Carriers whose words the client changed were not opened, and end here all the same.
  if (hasEnvelope(from) && blocks.every(({ sealed }) => sealed === undefined)) {
    noteOnce(context, 'reasoning_seal_dropped');
  }
  for (const block of blocks) {
    if (block.text !== '') said.push(block.text);
    const { sealed } = block;
    if (sealed === undefined) continue;
    const home = sealed.provider === undefined || sealed.provider === target.provider;
    // A minted seal is empty: it only says where the text was made.
    if (sealed.protocol === PROTOCOL && home) details.push(...ownDetails(sealed));
    else if (sealed.value !== '') noteOnce(context, 'reasoning_seal_dropped');
  }
  if (field === 'none') {
    if (said.length > 0) noteOnce(context, 'reasoning_dropped');
    return {};
  }
  return {
    ...(said.length > 0 ? { [field]: said.join('\n\n') } : {}),
    ...(details.length > 0 ? { reasoning_details: details } : {}),
  };
}

const sameSeal = (a: ReasoningBlock, b: ReasoningBlock) =>
  a.sealed?.value === b.sealed?.value && (b.sealed?.protocol ?? PROTOCOL) === PROTOCOL;

const ownField = (from: JsonObject) =>
  typeof from.reasoning === 'string' ? ('reasoning' as const) : undefined;

/** `tool_calls` in order; a lone call that came as the legacy `function_call` goes out as one. */
function callFields(
  calls: readonly ToolCallBlock[],
  from: JsonObject,
  context: MessageContext,
): JsonObject {
  if (calls.length === 0) return {};
  const first = calls[0]!;
  if (calls.length === 1 && object(from.function_call) && list(from.tool_calls) === undefined) {
    return { function_call: { name: first.name, arguments: first.input } };
  }
  return { tool_calls: calls.map((call) => encodeCall(call, context)) };
}

function encodeCall(call: ToolCallBlock, context: MessageContext): JsonObject {
  const own = ownWire(call);
  if (isObject(own)) return own;
  const from = ownResidue(call);
  const name = context.flat(call.name, call.namespace);
  const sealed =
    call.sealed?.protocol === PROTOCOL &&
    (call.sealed.provider === undefined || call.sealed.provider === context.target.provider)
      ? { extra_content: { google: { thought_signature: call.sealed.value } } }
      : {};
  if (call.kind === 'custom' && (context.own || isOwn(call))) {
    return { ...from, id: call.id, type: 'custom', custom: { name, input: call.input } };
  }
  const input = call.kind === 'custom' ? wrapFreeform(call.input) : call.input;
  return {
    ...from,
    ...sealed,
    id: call.id,
    type: 'function',
    function: { ...object(from.function), name, arguments: input.trim() === '' ? '{}' : input },
  };
}
