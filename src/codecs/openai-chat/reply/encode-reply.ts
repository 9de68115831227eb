/** Encodes a reply as a whole chat completion. */

import { type OpaqueEvent, type Reply, toolEventMembers } from '../../../conversation/events.ts';
import type { Conversation, ReasoningBlock, ToolCallBlock } from '../../../conversation/types.ts';
import type { JsonObject } from '../../../lib/json/json.ts';
import type { ClientContext } from '../../codec.ts';
import { encodeAnnotation } from '../parts.ts';
import { encodeReasoningBlocks, signatureExtra } from '../reasoning.ts';
import { compact, list, newCallId, object, PROTOCOL } from '../wire.ts';
import {
  asFunction,
  clientName,
  clientRest,
  encodeImage,
  noteUnsupportedBlock,
  wantsLegacyCalls,
} from './client-view.ts';
import { encodeFinish } from './finish-reason.ts';
import { encodeUsage } from './usage.ts';

/** Encodes a reply. An unchanged reply of this protocol goes out as it came. */
export function encodeReply(reply: Reply, context: ClientContext): JsonObject {
  const own = reply.wire?.protocol === PROTOCOL ? object(reply.wire.value) : undefined;
  if (own !== undefined) return own;
  const { request, requestId } = context;
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
    model: reply.model || request.model,
    choices: [
      {
        index: 0,
        message,
        logprobs: reply.logprobs === undefined ? null : { content: reply.logprobs, refusal: null },
        finish_reason: legacy ? 'function_call' : reason,
      },
      ...(reply.further ?? []).flatMap(furtherChoices),
    ],
    usage: reply.usage === undefined ? undefined : encodeUsage(reply.usage),
    ...clientRest(reply.rest),
    ...toolEventMembers(reply),
  });
}

/** A further choice that came as a chunk. */
function furtherChoices({ wire }: OpaqueEvent): readonly JsonObject[] {
  const chunk = wire.protocol === PROTOCOL ? object(wire.value) : undefined;
  return (list(chunk?.choices) ?? []).flatMap((value) => {
    const { delta, ...choice } = object(value) ?? {};
    const message = object(delta);
    if (message === undefined) return [];
    const calls = list(message.tool_calls)?.map((call) => {
      const { index: _, ...own } = object(call) ?? {};
      return { type: 'function', ...own };
    });
    return [
      { ...choice, message: calls === undefined ? message : { ...message, tool_calls: calls } },
    ];
  });
}

function encodeMessage(reply: Reply, { request, notes }: ClientContext): JsonObject {
  const written = { text: '', refusal: '' };
  const reasoning: ReasoningBlock[] = [];
  const annotations: JsonObject[] = [];
  const calls: ToolCallBlock[] = [];
  const images: JsonObject[] = [];
  for (const block of reply.blocks) {
    if (block.type === 'text') {
      if (block.paragraph && block.text !== '' && written.text !== '') written.text += '\n\n';
      const from = written.text.length;
      written.text += block.text;
      for (const citation of block.citations ?? []) {
        const annotation = encodeAnnotation(citation, from, written.text.length);
        if (annotation === undefined) notes.add('citation_dropped', 'annotations', citation.title);
        else annotations.push(annotation);
      }
    } else if (block.type === 'reasoning') reasoning.push(block);
    else if (block.type === 'refusal') written.refusal += block.text;
    else if (block.type === 'tool-call' && block.by === 'client') calls.push(block);
    else {
      const image = encodeImage(block);
      if (image !== undefined) images.push(image);
      else {
        noteUnsupportedBlock(block, notes);
        if (block.type === 'opaque') written.text += block.text ?? '';
      }
    }
  }
  const reasoningFields = encodeReasoningBlocks(reasoning);
  return compact({
    role: 'assistant',
    content:
      written.text === '' && (calls.length > 0 || written.refusal !== '') ? null : written.text,
    refusal: written.refusal === '' ? null : written.refusal,
    reasoning_content: reasoningFields.visible === '' ? undefined : reasoningFields.visible,
    reasoning_details: reasoningFields.details.length > 0 ? reasoningFields.details : undefined,
    annotations: annotations.length > 0 ? annotations : undefined,
    images: images.length > 0 ? images : undefined,
    ...encodeCalls(calls, request),
  });
}

function encodeCalls(calls: readonly ToolCallBlock[], request: Conversation): JsonObject {
  const first = calls[0];
  if (first === undefined) return {};
  const encoded = calls.map((call) => {
    const name = clientName(request, call.name, call.namespace);
    const id = call.id || newCallId();
    if (call.kind === 'custom' && asFunction(request, call.name)) {
      return { id, type: 'function', function: { name, arguments: call.input } };
    }
    if (call.kind === 'custom') return { id, type: 'custom', custom: { name, input: call.input } };
    return compact({
      id,
      type: 'function',
      function: { name, arguments: call.input.trim() === '' ? '{}' : call.input },
      extra_content: call.sealed?.protocol === PROTOCOL ? signatureExtra(call.sealed) : undefined,
    });
  });
  return wantsLegacyCalls(request)
    ? { function_call: (encoded[0] as JsonObject).function }
    : { tool_calls: encoded };
}
