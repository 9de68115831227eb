/** Whole Messages replies, both ways. */

import { GatewayError } from '../../../conversation/errors.ts';
import type { Reply } from '../../../conversation/events.ts';
import type { Notes } from '../../../conversation/notes.ts';
import { toolEventMembers } from '../../../conversation/tools/tool-events.ts';
import { toolNames } from '../../../conversation/tools/tool-names.ts';
import type {
  Block,
  ReasoningBlock,
  TextBlock,
  ToolCallBlock,
} from '../../../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import type { ClientContext, UpstreamContext } from '../../codec.ts';
import { type BlockReader, decodeBlock } from '../request/decode-blocks.ts';
import { callInput } from '../request/encode-blocks.ts';
import { encodeCitation, hostedInput } from '../server-tools.ts';
import { PROTOCOL, rebuilt, string, TOOL_NAME_LIMIT, wireOf } from '../wire.ts';
import {
  type AwaitedResult,
  type CallView,
  callHead,
  callView,
  clientSignature,
  isSealed,
  mediaText,
  messageId,
  ownBlock,
  servedBy,
  toldResultBlock,
} from './encode-reply-blocks.ts';
import { decodeErrorBody } from './errors.ts';
import { decodeStopReason, encodeStopReason } from './stop-reasons.ts';
import { decodeUsage, encodeUsage } from './usage.ts';

/** How an upstream's blocks are read: its names stand for what was sent there. */
export function upstreamReader({ sent, target }: UpstreamContext): BlockReader {
  const own = new Set(sent.tools.filter((tool) => tool.type !== 'hosted').map((tool) => tool.name));
  for (const tool of sent.tools) if (tool.type === 'hosted') own.delete(tool.name);
  return {
    toolName: toolNames(sent.tools, TOOL_NAME_LIMIT).original,
    isClientTool: (name) => own.has(name),
    provider: target.provider,
    lenient: true,
  };
}

/** What of a message stands beside its content and is kept for clients of the same protocol. */
export function replyRest(message: JsonObject): JsonObject | undefined {
  const usage = isObject(message.usage) ? message.usage : {};
  const rest: Record<string, Json> = {};
  for (const key of ['container', 'context_management', 'input_transformations']) {
    const value = message[key];
    if (value !== undefined && value !== null) rest[key] = value;
  }
  for (const key of ['service_tier', 'inference_geo']) {
    const value = usage[key];
    if (value !== undefined && value !== null) rest[key] = value;
  }
  return Object.keys(rest).length > 0 ? rest : undefined;
}

/** Replies that are still what they were decoded from go back as they came. */
const untouched = new WeakMap<Reply, JsonObject>();

/** @throws GatewayError: the upstream's own for an error body, `upstream` for what is no message */
export function decodeReply(body: Json, context: UpstreamContext): Reply {
  if (isObject(body) && body.type === 'error') {
    throw decodeErrorBody(body, { status: undefined });
  }
  if (!isObject(body) || !Array.isArray(body.content)) {
    throw new GatewayError('upstream', 'The upstream answered with something that is no message.', {
      fromUpstream: true,
    });
  }
  const reader = upstreamReader(context);
  const blocks = body.content.flatMap((item, i) => decodeBlock(item, `content.${i}`, reader) ?? []);
  const usage = decodeUsage(body.usage);
  const rest = replyRest(body);
  const sequence = string(body.stop_sequence);
  const details = body.stop_details;
  const reply: Reply = {
    id: string(body.id) ?? '',
    model: string(body.model) ?? context.target.model,
    blocks,
    finish: decodeStopReason(body.stop_reason),
    ...(sequence === undefined ? {} : { stopSequence: sequence }),
    ...(details === undefined || details === null ? {} : { details }),
    ...(usage === undefined ? {} : { usage }),
    ...(rest === undefined ? {} : { rest }),
    wire: wireOf(body),
  };
  untouched.set(reply, body);
  return reply;
}

/** The reply as a Messages client expects it. */
export function encodeReply(reply: Reply, context: ClientContext): JsonObject {
  const same = untouched.get(reply);
  if (same !== undefined) return same;
  const content = encodeContent(reply.blocks, context);
  const calls = content.some((block) => block.type === 'tool_use');
  const refused = reply.blocks.some((block) => block.type === 'refusal');
  const old = reply.wire?.protocol === PROTOCOL ? reply.wire.value : undefined;
  const { service_tier: _tier, inference_geo: _geo, ...beside } = ownRest(reply.rest);
  return rebuilt(old, {
    id: messageId(reply.id, context.requestId),
    type: 'message',
    role: 'assistant',
    model: reply.model,
    content,
    stop_reason: encodeStopReason(reply.finish, { calls, refused }),
    stop_sequence: reply.stopSequence ?? null,
    ...(reply.details === undefined ? {} : { stop_details: reply.details }),
    ...beside,
    usage: rebuilt(isObject(old) ? old.usage : undefined, {
      ...encodeUsage(reply.usage),
      ...servedBy(reply.rest),
    }),
    ...toolEventMembers(reply),
  });
}

/** Of the vendor fields those that this wire knows. */
function ownRest(rest: JsonObject | undefined): JsonObject {
  const own = ['container', 'context_management', 'input_transformations'];
  return Object.fromEntries(
    own.filter((key) => rest?.[key] !== undefined).map((key) => [key, rest?.[key]]),
  );
}

function encodeContent(blocks: readonly Block[], context: ClientContext): readonly JsonObject[] {
  const view = callView(context);
  const out: JsonObject[] = [];
  /** Hosted calls told in this wire's words that still want their result, by call id. */
  const open = new Map<string, AwaitedResult>();
  const settle = () => {
    for (const call of open.values()) out.push(toldResultBlock(call, undefined));
    open.clear();
  };
  for (const block of blocks) {
    if (block.type === 'tool-result' && ownBlock(block) === undefined) {
      const call = open.get(block.callId);
      open.delete(block.callId);
      if (call === undefined)
        context.notes.add('content_dropped', 'content', 'result of a hosted tool');
      else out.push(toldResultBlock(call, block));
      continue;
    }
    settle();
    const encoded = encodeOne(block, view, open, context);
    if (encoded !== undefined) out.push(encoded);
  }
  settle();
  return out;
}

function encodeOne(
  block: Block,
  view: CallView,
  open: Map<string, AwaitedResult>,
  context: ClientContext,
): JsonObject | undefined {
  const own = ownBlock(block);
  if (own !== undefined) return own;
  switch (block.type) {
    case 'text':
      return encodeText(block, context.notes);
    case 'refusal':
      return block.text === '' ? undefined : { type: 'text', text: block.text };
    case 'reasoning':
      return encodeThinking(block, context.provider);
    case 'tool-call':
      return encodeCall(block, view, open, context);
    case 'media':
      context.notes.add('content_bridged', 'content', `${block.media} as text`);
      return { type: 'text', text: mediaText(block) };
    default: {
      const text = block.type === 'opaque' ? (block.text ?? '') : '';
      const name = block.type === 'opaque' ? block.name : block.type;
      context.notes.add(text === '' ? 'content_dropped' : 'content_bridged', 'content', name);
      return text === '' ? undefined : { type: 'text', text };
    }
  }
}

function encodeText(block: TextBlock, notes: Notes): JsonObject | undefined {
  if (block.text === '') return undefined;
  const citations = (block.citations ?? [])
    .map((one) => encodeCitation(one, notes, block.text))
    .filter((one) => one !== undefined);
  return { type: 'text', text: block.text, ...(citations.length > 0 ? { citations } : {}) };
}

function encodeThinking(block: ReasoningBlock, provider: string): JsonObject | undefined {
  if (block.text === '' && !isSealed(block.sealed)) return undefined;
  const signature = clientSignature(block.sealed, provider);
  return block.sealed?.kind === 'redacted'
    ? { type: 'redacted_thinking', data: signature }
    : { type: 'thinking', thinking: block.text, signature };
}

function encodeCall(
  block: ToolCallBlock,
  view: CallView,
  open: Map<string, AwaitedResult>,
  { notes }: ClientContext,
): JsonObject | undefined {
  const head = callHead(block, view);
  if (head === undefined) {
    notes.add('content_dropped', 'content', `hosted call ${block.name}`);
    return undefined;
  }
  const input = callInput(block, 'content', notes);
  if (head.tells === undefined) return { ...head.block, input };
  open.set(block.id, { id: String(head.block.id), tool: head.tells });
  return { ...head.block, input: hostedInput(head.tells, input) };
}
