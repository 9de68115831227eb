/** Whole Chat Completions replies, both ways. */

import { GatewayError } from '../../../conversation/errors.ts';
import type { Reply } from '../../../conversation/events.ts';
import { toldTier } from '../../../conversation/openai-words.ts';
import { toolEventMembers } from '../../../conversation/tools/tool-events.ts';
import { toolNames, unwrapFreeform } from '../../../conversation/tools/tool-names.ts';
import type {
  Block,
  Conversation,
  ReasoningBlock,
  TextBlock,
  ToolCallBlock,
} from '../../../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { put } from '../../../lib/json/json-members.ts';
import { prefixedId } from '../../../lib/text/ids.ts';
import type { ClientContext, UpstreamContext } from '../../codec.ts';
import { decodeAnnotations, decodeSources, encodeAnnotation, thinkingText } from '../parts.ts';
import { callSeal } from '../request/decode-request.ts';
import { decodeReasoning, encodeReasoning } from '../request/reasoning.ts';
import { CHAT, chatWire, compact, list, NAME_LIMIT, number, object, text } from '../wire.ts';
import { decodeAudio, decodeImages, encodeImage, noteUntold } from './answer-media.ts';
import { inBandError } from './errors.ts';
import { decodeFinish, encodeFinish, finishFailure } from './finish.ts';
import { decodeUsage, encodeUsage } from './usage.ts';

const REPLY_KEYS = new Set(['id', 'object', 'created', 'model', 'choices', 'usage']);

/** Fields beside the answer that Chat clients know; those of other protocols are not theirs to see. */
const CHAT_REST = [
  'system_fingerprint',
  'service_tier',
  'provider',
  'citations',
  'search_results',
  'web_search',
  'x_groq',
  'prompt_filter_results',
];

/** The vendor fields of a reply or a stream's start that a Chat client may be given. */
export function ownRest(rest: JsonObject | undefined): JsonObject {
  const out: Record<string, Json> = {};
  if (rest === undefined) return out;
  for (const key of CHAT_REST) {
    const value = key === 'service_tier' ? toldTier(rest[key]) : rest[key];
    if (value !== undefined && value !== null) out[key] = value;
  }
  return out;
}

/**
 * A tool's name as the client knows it: its own, however odd; only what it never declared so (a tool
 * in a namespace) is flattened.
 */
export function clientName(asked: Conversation, name: string, namespace?: string): string {
  return namespace === undefined ? name : toolNames(asked.tools, NAME_LIMIT).flat(name, namespace);
}

/** The client declared its tools as `functions` only, so it reads `function_call`. */
export function wantsLegacyCalls(asked: Conversation): boolean {
  const value = asked.origin?.protocol === CHAT ? asked.origin.value : undefined;
  return value?.functions !== undefined && value.tools === undefined;
}

/**
 * Decodes a reply; further choices stay in `wire`.
 * @throws GatewayError `fromUpstream` where the body is an error (vendors send some with HTTP 200)
 * or not a completion at all
 */
export function decodeReply(body: Json, context: UpstreamContext): Reply {
  const reply = object(body);
  const error = reply === undefined ? undefined : inBandError(reply, '');
  if (error !== undefined) throw error;
  const choices = list(reply?.choices);
  if (reply === undefined || choices === undefined) {
    throw new GatewayError(
      'upstream',
      'The upstream answered with something that is not a chat completion.',
      {
        fromUpstream: true,
      },
    );
  }
  const choice = object(choices.find((c) => (number(object(c)?.index) ?? 0) === 0)) ?? {};
  const failure = finishFailure(text(choice.finish_reason) ?? '');
  if (failure !== undefined) throw failure;
  const message = object(choice.message) ?? {};
  const blocks = decodeMessage(message, reply, context);
  const rest = restOf(reply);
  const logprobs = list(object(choice.logprobs)?.content);
  const created = number(reply.created);
  const usage = decodeUsage(reply.usage) ?? decodeUsage(choice.usage);
  const found: { -readonly [K in keyof Reply]: Reply[K] } = {
    id: text(reply.id) ?? '',
    model: text(reply.model) ?? '',
    blocks,
    finish: decodeFinish(text(choice.finish_reason) ?? '', {
      calls: blocks.some((block) => block.type === 'tool-call'),
      refusal: blocks.some((block) => block.type === 'refusal'),
    }),
    wire: chatWire(reply),
  };
  if (created) found.created = created;
  if (usage !== undefined) found.usage = usage;
  if (logprobs !== undefined && logprobs.length > 0) found.logprobs = logprobs;
  if (rest !== undefined) found.rest = rest;
  return found;
}

/** What stands beside the answer; undefined where nothing does. */
function restOf(reply: JsonObject): JsonObject | undefined {
  let rest: Record<string, Json | undefined> | undefined;
  for (const key in reply) {
    if (REPLY_KEYS.has(key)) continue;
    rest ??= {};
    put(rest, key, reply[key]);
  }
  return rest;
}

function decodeMessage(
  message: JsonObject,
  reply: JsonObject,
  context: UpstreamContext,
): readonly Block[] {
  const blocks: Block[] = [];
  const { provider } = context.target;
  const reasoning = decodeReasoning(message, provider);
  if (reasoning !== undefined) blocks.push(reasoning);
  for (const block of contentBlocks(message.content)) blocks.push(block);
  const sources = decodeAnnotations(message.annotations);
  const citations = sources.length > 0 ? sources : decodeSources(reply);
  const at = blocks.findIndex((block) => block.type === 'text');
  if (citations.length > 0 && at >= 0) {
    blocks[at] = { ...(blocks[at] as TextBlock), citations };
  }
  const refusal = text(message.refusal);
  if (refusal) blocks.push({ type: 'refusal', text: refusal });
  if (message.images) for (const image of decodeImages(message.images)) blocks.push(image);
  if (message.audio) {
    const spoken = decodeAudio(message.audio);
    if (spoken !== undefined) blocks.push(spoken);
  }
  const calls = list(message.tool_calls);
  const legacy = object(message.function_call);
  if (calls === undefined && legacy === undefined) return blocks;
  const { original } = toolNames(context.sent.tools, NAME_LIMIT);
  for (const call of calls ?? []) {
    if (isObject(call)) blocks.push(decodeCall(call, original, provider));
  }
  const name = text(legacy?.name);
  if (name && !blocks.some((block) => block.type === 'tool-call')) {
    blocks.push(decodeCall({ function: legacy }, original, provider));
  }
  return blocks;
}

/** A string, or Mistral's parts: neighbouring ones of a kind are one block. */
function contentBlocks(content: Json | undefined): Block[] {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }];
  const blocks: Block[] = [];
  for (const value of list(content) ?? []) {
    const part = object(value);
    const type = part?.type === 'thinking' ? 'reasoning' : 'text';
    const said =
      type === 'reasoning' ? thinkingText(part?.thinking) : (text(part?.text) ?? text(value) ?? '');
    if (said === '') continue;
    const last = blocks.at(-1);
    if (last?.type === type) blocks[blocks.length - 1] = { ...last, text: last.text + said };
    else blocks.push({ type, text: said });
  }
  return blocks;
}

type Original = ReturnType<typeof toolNames>['original'];

function decodeCall(call: JsonObject, original: Original, provider: string): ToolCallBlock {
  const custom = call.type === 'custom' ? object(call.custom) : undefined;
  const target = custom ?? object(call.function) ?? {};
  const raw = custom === undefined ? target.arguments : target.input;
  const input = typeof raw === 'string' ? raw : isObject(raw) ? JSON.stringify(raw) : '';
  const known = original(text(target.name) ?? '');
  return {
    type: 'tool-call',
    id: text(call.id) || prefixedId('call_'),
    ...known,
    kind: custom === undefined ? known.kind : 'custom',
    input: custom === undefined && known.kind === 'custom' ? unwrapFreeform(input) : input,
    by: 'client',
    ...callSeal(call, provider),
  };
}

/** Encodes a reply; an untouched one of this protocol as it came. */
export function encodeReply(reply: Reply, context: ClientContext): JsonObject {
  const own = reply.wire?.protocol === CHAT ? object(reply.wire.value) : undefined;
  if (own !== undefined) return own;
  const { asked, requestId } = context;
  const message = encodeMessage(reply, context);
  const reason = encodeFinish(reply.finish, {
    calls: message.tool_calls !== undefined || message.function_call !== undefined,
    refusal: message.refusal !== null,
  });
  const legacy = message.function_call !== undefined && reason === 'tool_calls';
  return compact({
    id: reply.id || `chatcmpl-${requestId}`,
    object: 'chat.completion',
    created: reply.created ?? Math.floor(Date.now() / 1000),
    model: reply.model || asked.model,
    choices: [
      {
        index: 0,
        message,
        logprobs: reply.logprobs === undefined ? null : { content: reply.logprobs, refusal: null },
        finish_reason: legacy ? 'function_call' : reason,
      },
    ],
    usage: reply.usage === undefined ? undefined : encodeUsage(reply.usage),
    ...ownRest(reply.rest),
    ...toolEventMembers(reply),
  });
}

function encodeMessage(reply: Reply, { asked, notes }: ClientContext): JsonObject {
  const said = { text: '', refusal: '' };
  const reasoning: ReasoningBlock[] = [];
  const annotations: JsonObject[] = [];
  const calls: ToolCallBlock[] = [];
  const images: JsonObject[] = [];
  for (const block of reply.blocks) {
    if (block.type === 'text') {
      const from = said.text.length;
      said.text += block.text;
      for (const citation of block.citations ?? []) {
        const annotation = encodeAnnotation(citation, from, said.text.length);
        if (annotation === undefined) notes.add('citation_dropped', 'annotations', citation.title);
        else annotations.push(annotation);
      }
    } else if (block.type === 'reasoning') reasoning.push(block);
    else if (block.type === 'refusal') said.refusal += block.text;
    else if (block.type === 'tool-call' && block.by === 'client') calls.push(block);
    else {
      const image = encodeImage(block);
      if (image !== undefined) images.push(image);
      else {
        noteUntold(block, notes);
        if (block.type === 'opaque') said.text += block.text ?? '';
      }
    }
  }
  const thought = encodeReasoning(reasoning);
  return compact({
    role: 'assistant',
    content: said.text === '' && (calls.length > 0 || said.refusal !== '') ? null : said.text,
    refusal: said.refusal === '' ? null : said.refusal,
    reasoning_content: thought.said === '' ? undefined : thought.said,
    reasoning_details: thought.details.length > 0 ? thought.details : undefined,
    annotations: annotations.length > 0 ? annotations : undefined,
    images: images.length > 0 ? images : undefined,
    ...encodeCalls(calls, asked),
  });
}

function encodeCalls(calls: readonly ToolCallBlock[], asked: Conversation): JsonObject {
  const first = calls[0];
  if (first === undefined) return {};
  const encoded = calls.map((call) => {
    const name = clientName(asked, call.name, call.namespace);
    const id = call.id || prefixedId('call_');
    if (call.kind === 'custom') return { id, type: 'custom', custom: { name, input: call.input } };
    return compact({
      id,
      type: 'function',
      function: { name, arguments: call.input.trim() === '' ? '{}' : call.input },
      extra_content:
        call.sealed?.protocol === CHAT
          ? { google: { thought_signature: call.sealed.value } }
          : undefined,
    });
  });
  return wantsLegacyCalls(asked)
    ? { function_call: (encoded[0] as JsonObject).function }
    : { tool_calls: encoded };
}
