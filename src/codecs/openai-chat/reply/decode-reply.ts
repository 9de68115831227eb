/** Decodes a whole chat completion into a reply. */

import { brokenAnswer } from '../../../conversation/errors.ts';
import type { OpaqueEvent, Reply, ReplySeal } from '../../../conversation/events.ts';
import { toolNames, unwrapFreeform } from '../../../conversation/tools/tool-names.ts';
import type { Block, TextBlock, ToolCallBlock } from '../../../conversation/types.ts';
import { withServiceTier } from '../../../conversation/usage.ts';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { membersBeside } from '../../../lib/json/json-members.ts';
import type { UpstreamContext } from '../../codec.ts';
import {
  decodeAnnotations,
  decodeAudio,
  decodeImages,
  decodeSources,
  isInParts,
  reasoningOf,
} from '../parts.ts';
import { decodeReasoning, signatureSeal } from '../reasoning.ts';
import { list, NAME_LIMIT, newCallId, number, object, text, wireOf } from '../wire.ts';
import { CopiedThoughts } from './copied-thoughts.ts';
import { inBandError } from './errors.ts';
import { decodeFinish, finishFailure, isOddFinish } from './finish-reason.ts';
import { decodeUsage } from './usage.ts';

const REPLY_KEYS = new Set(['id', 'object', 'created', 'model', 'choices', 'usage']);

/**
 * Decodes the first choice; further choices stay in `wire`.
 * @throws GatewayError `fromUpstream` if the body is an error (vendors send some with HTTP 200) or not a
 * completion
 */
export function decodeReply(body: Json, context: UpstreamContext): Reply {
  const reply = object(body);
  const error = reply === undefined ? undefined : inBandError(reply, '');
  if (error !== undefined) throw error;
  const choices = list(reply?.choices);
  if (reply === undefined || choices === undefined) {
    throw brokenAnswer('The upstream answered with something that is not a chat completion.');
  }
  const choice = object(choices.find((c) => (number(object(c)?.index) ?? 0) === 0)) ?? {};
  const reason = text(choice.finish_reason) ?? '';
  const failure = finishFailure(reason);
  if (failure !== undefined) throw failure;
  const said = object(choice.message);
  const message = said ?? {};
  const copied = new CopiedThoughts(context.notes);
  const blocks = decodeMessage(message, reply, context, copied);
  const calls = blocks.some((block) => block.type === 'tool-call');
  const logprobs = list(object(choice.logprobs)?.content);
  return {
    id: text(reply.id) ?? '',
    model: text(reply.model) ?? '',
    blocks,
    finish: decodeFinish(reason, {
      calls,
      refusal: blocks.some((block) => block.type === 'refusal'),
    }),
    // Azure's filter leaves a choice without a message.
    odd: said === undefined || isInParts(message.content) || copied.hasLeftOut ? 'form' : undefined,
    oddFinish: isOddFinish(reason, calls, context) ? 'finish_reason' : undefined,
    created: number(reply.created) || undefined,
    usage: withServiceTier(
      decodeUsage(reply.usage) ?? decodeUsage(choice.usage),
      reply.service_tier,
    ),
    logprobs: logprobs?.length ? logprobs : undefined,
    rest: membersBeside(reply, REPLY_KEYS),
    textSeals: textSeals(message, blocks, context),
    further: choices.length > 1 ? furtherOf(reply, choices) : undefined,
    wire: wireOf(reply),
  };
}

/** Gemini's signature of the text; see the decoder of streams. */
function textSeals(
  message: JsonObject,
  blocks: readonly Block[],
  { target }: UpstreamContext,
): readonly ReplySeal[] | undefined {
  if (message.extra_content === undefined) return undefined;
  const { sealed } = signatureSeal(message, target.provider);
  const block = blocks.findLastIndex(({ type }) => type === 'text');
  if (sealed === undefined || block < 0) return undefined;
  const at = (blocks[block] as TextBlock).text.length;
  const wire = wireOf({
    choices: [{ index: 0, delta: { extra_content: message.extra_content } }],
  });
  const event = {
    type: 'opaque',
    name: 'signature',
    wire,
    textSeal: { sealed, text: '' },
  } as const;
  return [{ block, at, event }];
}

/** The choices but the first, each as a chunk. */
function furtherOf(reply: JsonObject, choices: readonly Json[]): readonly OpaqueEvent[] {
  return choices.flatMap((value) => {
    const { message, ...choice } = object(value) ?? {};
    if ((number(choice.index) ?? 0) === 0) return [];
    const { tool_calls, ...said } = object(message) ?? {};
    const calls = list(tool_calls)?.map((call, index) =>
      isObject(call) ? { index, ...call } : call,
    );
    const delta = calls === undefined ? said : { ...said, tool_calls: calls };
    const { id, created, model } = reply;
    const chunk = { id, object: 'chat.completion.chunk', created, model };
    const wire = wireOf({ ...chunk, choices: [{ ...choice, delta }] } as JsonObject);
    return [{ type: 'opaque', name: 'choice', wire } as const];
  });
}

function decodeMessage(
  message: JsonObject,
  reply: JsonObject,
  context: UpstreamContext,
  copied: CopiedThoughts,
): readonly Block[] {
  const blocks: Block[] = [];
  const { provider } = context.target;
  const reasoning = decodeReasoning(message, provider);
  if (reasoning !== undefined) blocks.push(reasoning);
  copied.thought(reasoning?.text ?? '');
  const { content } = message;
  const said = typeof content === 'string' ? copied.text(content) + copied.rest() : content;
  for (const block of contentBlocks(said)) blocks.push(block);
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
  const ids = new Set<string>();
  for (const call of calls ?? []) {
    if (!isObject(call)) continue;
    const decoded = decodeCall(call, original, provider);
    // A second call with the id of another one could not be told from it in the history.
    blocks.push(ids.has(decoded.id) ? { ...decoded, id: newCallId(), odd: true } : decoded);
    ids.add(decoded.id);
  }
  const name = text(legacy?.name);
  if (name && !blocks.some((block) => block.type === 'tool-call')) {
    const { odd: _, ...call } = decodeCall({ function: legacy }, original, provider);
    blocks.push(call);
  }
  return blocks;
}

/** The blocks of a string, or of Mistral's parts, where consecutive parts of one kind become one block. */
function contentBlocks(content: Json | undefined): Block[] {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }];
  const blocks: Block[] = [];
  for (const value of list(content) ?? []) {
    const part = object(value);
    const reasoning = part && reasoningOf(part);
    const type = reasoning === undefined ? 'text' : 'reasoning';
    const partText = reasoning ?? text(part?.text) ?? text(value) ?? '';
    if (partText === '') continue;
    const last = blocks.at(-1);
    if (last?.type === type) blocks[blocks.length - 1] = { ...last, text: last.text + partText };
    else blocks.push({ type, text: partText });
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
  const id = text(call.id) || undefined;
  // Mistral says no type, which OpenAI's clients want.
  const isOdd = id === undefined || isObject(raw) || !text(call.type);
  return {
    type: 'tool-call',
    id: id ?? newCallId(),
    ...known,
    kind: custom === undefined ? known.kind : 'custom',
    input: custom === undefined && known.kind === 'custom' ? unwrapFreeform(input) : input,
    by: 'client',
    odd: isOdd || undefined,
    ...signatureSeal(call, provider),
  };
}
