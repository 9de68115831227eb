/** Encodes one answer of the model, which may be several turns, as one assistant message. */

import { wrapFreeform } from '../../../conversation/tools/tool-names.ts';
import type {
  Block,
  ReasoningBlock,
  Sealed,
  ToolCallBlock,
  ToolResultBlock,
  Turn,
} from '../../../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { reasoningOf, textPart } from '../parts.ts';
import {
  decodeReasoning,
  hasEnvelope,
  ownDetails,
  REASONING_KEYS,
  signatureExtra,
} from '../reasoning.ts';
import { compact, isOwn, list, object, ownResidue, ownWire, PROTOCOL, without } from '../wire.ts';
import {
  blockText,
  joinedText,
  type MessageContext,
  markField,
  noteCache,
  noteOnce,
} from './encode-content.ts';

/** Message keys that are written from blocks. An edited message keeps its other keys. */
const BLOCK_KEYS = [...REASONING_KEYS, 'role', 'content', 'refusal', 'tool_calls', 'function_call'];

/** The encoded form of a run of assistant turns. */
export interface EncodedAssistant {
  /** Undefined if Chat can express nothing of the answer. */
  readonly message: JsonObject | undefined;
  /** Results from inside the answer. They follow it as tool messages. */
  readonly results: readonly ToolResultBlock[];
}

/** Merges a run of assistant turns: reasoning, then text, then calls, each in order. */
export function assistantMessage(run: readonly Turn[], context: MessageContext): EncodedAssistant {
  const parts: JsonObject[] = [];
  const reasoning: ReasoningBlock[] = [];
  const calls: ToolCallBlock[] = [];
  const results: ToolResultBlock[] = [];
  const refusals: string[] = [];
  let signed: Sealed | undefined;
  const from = run.length === 1 ? ownResidue(run[0]!) : {};
  for (const turn of run) {
    // Texts of one turn are joined directly; texts of different turns become paragraphs.
    let joined = parts.length > 0 ? '\n\n' : '';
    for (const block of turn.blocks) {
      if (block.type !== 'text') noteCache(block, context);
      if (block.type === 'reasoning' && !isOwn(block)) reasoning.push(block);
      else if (block.type === 'tool-call') {
        if (block.by === 'provider') noteOnce(context, 'provider_call_dropped', block.name);
        else calls.push(block);
      } else if (block.type === 'tool-result' && block.by !== 'provider') results.push(block);
      else if (block.type === 'refusal' && isOwn(turn)) refusals.push(block.text);
      else {
        if (block.type === 'text' && block.sealed && isVendors(block.sealed, context)) {
          signed = block.sealed;
        }
        const part = assistantPart(block, context);
        if (part === undefined) continue;
        // So do the result of a vendor-run tool and a summary.
        const apart = block.type === 'tool-result' || (block.type === 'opaque' && !isOwn(block));
        if (apart && parts.length > 0) joined = '\n\n';
        parts.push(joined === '' ? part : { ...part, text: joined + String(part.text ?? '') });
        joined = apart ? '\n\n' : '';
      }
    }
  }
  const fields = {
    ...reasoningFields(reasoning, from, context),
    ...(refusals.length > 0 ? { refusal: refusals.join('') } : {}),
    ...callFields(calls, from, context),
    ...(signed && { extra_content: signatureExtra(signed) }),
  };
  const content = contentOf(parts, from);
  const keep = without(from, BLOCK_KEYS);
  if (content === '' && Object.keys(fields).length === 0 && !isOwn(run[0]!)) {
    return { message: undefined, results };
  }
  const empty = calls.length > 0 && from.content !== '' ? null : '';
  return {
    message: compact({
      role: 'assistant',
      ...keep,
      content: content === '' ? empty : content,
      ...fields,
    }),
    results,
  };
}

/** An unchanged part as it came, else the block's text as a part. */
function assistantPart(block: Block, context: MessageContext): JsonObject | undefined {
  const own = ownWire(block);
  if (isObject(own) && block.type !== 'tool-result') return own;
  if (block.type === 'reasoning') return thinkingPart(block);
  const value =
    block.type === 'tool-result' ? providerResult(block, context) : blockText(block, context);
  if (block.type !== 'text') return value === '' ? undefined : textPart(value);
  if (value === '' || context.target.profile.cacheMarks !== true) noteCache(block, context);
  if (value === '') return undefined;
  const part = textPart(value, ownResidue(block));
  return context.target.profile.cacheMarks ? { ...part, ...markField(block, context) } : part;
}

/** An edited part of reasoning. With the same text it keeps its form. */
function thinkingPart(block: ReasoningBlock): JsonObject {
  const from = ownResidue(block);
  if (reasoningOf(from) === block.text) return from;
  return { ...from, type: 'thinking', thinking: [{ type: 'text', text: block.text }] };
}

/** The readable result of a vendor-run tool, because the next vendor never saw that call. */
function providerResult(block: ToolResultBlock, context: MessageContext): string {
  const result = joinedText(block.content, context, '\n');
  if (result === '') return '';
  noteOnce(context, 'content_bridged', 'result of a vendor-run tool as text');
  return result;
}

function contentOf(parts: readonly JsonObject[], from: JsonObject): Json {
  const array =
    list(from.content) !== undefined ||
    parts.some((part) => part.type !== 'text' || part.cache_control !== undefined);
  if (array && parts.length > 0) return parts;
  return parts.map((part) => String(part.text ?? '')).join('');
}

/**
 * Reasoning in the field that the vendor reads. The vendor's own details go back unchanged; other seals are
 * dropped, and their text stays.
 */
function reasoningFields(
  blocks: readonly ReasoningBlock[],
  from: JsonObject,
  context: MessageContext,
): JsonObject {
  const { target } = context;
  const before = decodeReasoning(from);
  // Nothing changed. Without blocks before and now, there may still be an unsigned, empty detail.
  const same =
    before === undefined
      ? blocks.length === 0
      : blocks.length === 1 && blocks[0]!.text === before.text && sameSeal(blocks[0]!, before);
  if (same && !hasEnvelope(from)) {
    const fields: Record<string, Json | undefined> = {};
    for (const key of REASONING_KEYS) fields[key] = from[key];
    return compact(fields);
  }
  const field = target.profile.reasoningField ?? ownField(from) ?? 'reasoning_content';
  const details: Json[] = [];
  const texts: string[] = [];
  // Envelopes whose text the client changed were not opened. They are dropped here.
  if (hasEnvelope(from) && blocks.every(({ sealed }) => sealed === undefined)) {
    noteOnce(context, 'reasoning_seal_dropped');
  }
  for (const block of blocks) {
    if (block.text !== '') texts.push(block.text);
    const { sealed } = block;
    if (sealed === undefined) continue;
    const ownSeal = sealed.provider === undefined || sealed.provider === target.provider;
    // An empty seal only tells who made the text, so its loss needs no note.
    if (sealed.protocol === PROTOCOL && ownSeal) details.push(...ownDetails(sealed));
    else if (sealed.value !== '') noteOnce(context, 'reasoning_seal_dropped');
  }
  if (field === 'none') {
    if (texts.length > 0) noteOnce(context, 'reasoning_dropped');
    return {};
  }
  return {
    ...(texts.length > 0 ? { [field]: texts.join('\n\n') } : {}),
    ...(details.length > 0 ? { reasoning_details: details } : {}),
  };
}

const sameSeal = (a: ReasoningBlock, b: ReasoningBlock) =>
  a.sealed?.value === b.sealed?.value && (b.sealed?.protocol ?? PROTOCOL) === PROTOCOL;

const ownField = (from: JsonObject) =>
  typeof from.reasoning === 'string' ? ('reasoning' as const) : undefined;

/** `tool_calls` in order. A single call that came as the legacy `function_call` stays one. */
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

const isVendors = ({ protocol, provider }: Sealed, { target }: MessageContext): boolean =>
  protocol === PROTOCOL && (provider === undefined || provider === target.provider);

function encodeCall(call: ToolCallBlock, context: MessageContext): JsonObject {
  const own = ownWire(call);
  if (isObject(own)) return own;
  const from = ownResidue(call);
  const name = context.flat(call.name, call.namespace);
  const sealed =
    call.sealed !== undefined && isVendors(call.sealed, context)
      ? { extra_content: signatureExtra(call.sealed) }
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
