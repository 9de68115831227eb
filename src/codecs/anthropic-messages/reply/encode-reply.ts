/** Encodes a reply as a whole Messages message. */

import { type Reply, toolEventMembers } from '../../../conversation/events.ts';
import type { Notes } from '../../../conversation/notes.ts';
import type {
  Block,
  ReasoningBlock,
  TextBlock,
  ToolCallBlock,
} from '../../../conversation/types.ts';
import { isObject, type JsonObject } from '../../../lib/json/json.ts';
import type { ClientContext } from '../../codec.ts';
import { encodeCitation, encodeHostedInput } from '../hosted-tools.ts';
import { callInput } from '../request/encode-blocks.ts';
import { PROTOCOL, rebuilt } from '../wire.ts';
import {
  type AwaitedResult,
  type ClientTools,
  callHead,
  clientSignature,
  clientTools,
  hostedResultBlock,
  isSealed,
  mediaText,
  messageId,
  ownBlock,
  ownVendorFields,
  servedBy,
} from './client-view.ts';
import { unchangedBody } from './decode-reply.ts';
import { encodeFinish, encodeStopDetails } from './finish-reason.ts';
import { encodeFinalUsage } from './usage.ts';

/** The reply as a Messages client expects it. */
export function encodeReply(reply: Reply, context: ClientContext): JsonObject {
  const unchanged = unchangedBody(reply);
  if (unchanged !== undefined) return unchanged;
  const content = encodeContent(reply.blocks, context);
  const calls = content.some((block) => block.type === 'tool_use');
  const refused = reply.blocks.some((block) => block.type === 'refusal');
  const stopReason = encodeFinish(reply.finish, { calls, refused });
  const residue = reply.wire?.protocol === PROTOCOL ? reply.wire.value : undefined;
  return rebuilt(residue, {
    id: messageId(reply.id, context.requestId),
    type: 'message',
    role: 'assistant',
    model: reply.model || context.request.model,
    content,
    stop_reason: stopReason,
    stop_sequence: reply.stopSequence ?? null,
    ...encodeStopDetails(reply.details, stopReason),
    ...ownVendorFields(reply.rest),
    usage: rebuilt(isObject(residue) ? residue.usage : undefined, {
      ...encodeFinalUsage(reply.usage, context),
      ...servedBy(reply.rest),
    }),
    ...toolEventMembers(reply),
  });
}

function encodeContent(blocks: readonly Block[], context: ClientContext): readonly JsonObject[] {
  const tools = clientTools(context);
  const out: JsonObject[] = [];
  /** Encoded hosted calls without a result so far, by call id. */
  const awaited = new Map<string, AwaitedResult>();
  const settle = () => {
    for (const call of awaited.values()) out.push(hostedResultBlock(call, undefined));
    awaited.clear();
  };
  for (const block of blocks) {
    if (block.type === 'tool-result' && ownBlock(block) === undefined) {
      const call = awaited.get(block.callId);
      awaited.delete(block.callId);
      if (call === undefined)
        context.notes.add('content_dropped', 'content', 'result of a hosted tool');
      else out.push(hostedResultBlock(call, block));
      continue;
    }
    settle();
    const encoded = encodeBlock(block, tools, awaited, context);
    if (encoded !== undefined) out.push(encoded);
  }
  settle();
  return out;
}

function encodeBlock(
  block: Block,
  tools: ClientTools,
  awaited: Map<string, AwaitedResult>,
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
      return encodeCall(block, tools, awaited, context);
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
  tools: ClientTools,
  awaited: Map<string, AwaitedResult>,
  { notes }: ClientContext,
): JsonObject | undefined {
  const head = callHead(block, tools);
  if (head === undefined) {
    notes.add('content_dropped', 'content', `hosted call ${block.name}`);
    return undefined;
  }
  const input = callInput(block, 'content', notes);
  if (head.hostedTool === undefined) return { ...head.block, input };
  awaited.set(block.id, { id: String(head.block.id), tool: head.hostedTool });
  return { ...head.block, input: encodeHostedInput(head.hostedTool, input) };
}
