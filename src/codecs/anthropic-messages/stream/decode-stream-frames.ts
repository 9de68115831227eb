/** Parses single frames of a Messages stream. */

import { brokenAnswer } from '../../../conversation/errors.ts';
import type { StreamEvent } from '../../../conversation/events.ts';
import { isKeepAlive } from '../../../lib/bytes/sse.ts';
import { isObject, type Json, type JsonObject, parseJson } from '../../../lib/json/json.ts';
import { wordSet } from '../../../lib/text/words.ts';
import type { UpstreamContext } from '../../codec.ts';
import { replyRest } from '../reply/decode-reply.ts';
import { decodeFinish, decodeStopDetails, oddFinish } from '../reply/finish-reason.ts';
import { decodeUsage } from '../reply/usage.ts';
import { text, wireOf } from '../wire.ts';

const BRACE_CLOSE = 0x7d;

/**
 * The text of a `text_delta` frame that begins with `prefix` and holds no escape; undefined for every other
 * frame, which must be parsed. Content after the delta (padding) is ignored.
 */
export function plainText(data: string, prefix: string): string | undefined {
  if (!data.startsWith(prefix)) return undefined;
  const from = prefix.length;
  const end = data.indexOf('"', from);
  if (end < 0 || data.charCodeAt(end + 1) !== BRACE_CLOSE) return undefined;
  const text = data.slice(from, end);
  return text.includes('\\') ? undefined : text;
}

/** Undefined for a keep-alive. @throws GatewayError upstream */
export function parseFrame(data: string): JsonObject | undefined {
  let value: Json;
  try {
    value = parseJson(data);
  } catch {
    if (isKeepAlive(data)) return undefined;
    throw brokenAnswer('The upstream sent a frame that is not JSON.');
  }
  if (isObject(value)) return value;
  if (isKeepAlive(data)) return undefined;
  throw brokenAnswer('The upstream sent a frame that is no event.');
}

/** An event that only Messages knows. */
export const opaqueEvent = (name: string, value: JsonObject): StreamEvent => ({
  type: 'opaque',
  name,
  wire: wireOf(value),
});

export function startEvent(
  message: JsonObject,
  usage: JsonObject,
  context: UpstreamContext,
): StreamEvent {
  const counts = decodeUsage(usage);
  return {
    type: 'start',
    id: text(message.id) ?? '',
    model: text(message.model) ?? context.target.model,
    usage: counts && { ...counts, unknown: 'output' },
    rest: replyRest(message),
  };
}

/** @param calls the answer has a call that the client must run */
export function finishEvent(change: JsonObject, calls: boolean): StreamEvent {
  return {
    type: 'finish',
    reason: decodeFinish(change.stop_reason),
    odd: oddFinish(change.stop_reason, calls),
    stopSequence: text(change.stop_sequence),
    details: decodeStopDetails(change.stop_details),
  };
}

export function withoutType({ type: _, ...rest }: JsonObject): JsonObject {
  return rest;
}

const COUNTS = wordSet(`
  input_tokens output_tokens cache_creation_input_tokens cache_read_input_tokens cache_creation
  output_tokens_details server_tool_use`);

/**
 * The other fields of a message_delta (container, context_management, usage iterations, …), for clients of the
 * same protocol.
 */
export function restOfDelta(event: JsonObject, change: JsonObject): JsonObject | undefined {
  const { type: _t, delta: _d, usage, ...beside } = event;
  const { stop_reason: _r, stop_sequence: _s, stop_details: _e, ...inDelta } = change;
  const counts = isObject(usage) ? usage : {};
  const inUsage = Object.fromEntries(Object.entries(counts).filter(([key]) => !COUNTS.has(key)));
  const rest = {
    ...(Object.keys(inDelta).length > 0 ? { delta: inDelta } : {}),
    ...(Object.keys(inUsage).length > 0 ? { usage: inUsage } : {}),
    ...beside,
  };
  return Object.keys(rest).length > 0 ? rest : undefined;
}
