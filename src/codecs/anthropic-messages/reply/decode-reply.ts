/** Decodes a whole Messages message into a reply. */

import { brokenAnswer } from '../../../conversation/errors.ts';
import type { Reply } from '../../../conversation/events.ts';
import { toolNames } from '../../../conversation/tools/tool-names.ts';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import type { UpstreamContext } from '../../codec.ts';
import { type BlockReader, decodeBlock } from '../request/decode-blocks.ts';
import { TOOL_NAME_LIMIT, text, wireOf } from '../wire.ts';
import { VENDOR_FIELDS } from './client-view.ts';
import { contentOf, isOddMessage } from './digest.ts';
import { decodeErrorBody } from './errors.ts';
import { decodeFinish, decodeStopDetails, isClientCall, oddFinish } from './finish-reason.ts';
import { decodeUsage } from './usage.ts';

/** How to decode an upstream's blocks: its tool names stand for the tools that were sent. */
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

/** The other fields of a message that clients of the same protocol get. */
export function replyRest(message: JsonObject): JsonObject | undefined {
  const usage = isObject(message.usage) ? message.usage : {};
  const rest: Record<string, Json> = {};
  for (const key of VENDOR_FIELDS) {
    const value = message[key];
    if (value !== undefined && value !== null) rest[key] = value;
  }
  for (const key of ['service_tier', 'inference_geo']) {
    const value = usage[key];
    if (value !== undefined && value !== null) rest[key] = value;
  }
  return Object.keys(rest).length > 0 ? rest : undefined;
}

/** The body of each decoded reply. An edited reply is another object, so it has no entry. */
const bodies = new WeakMap<Reply, JsonObject>();

/** The body that this very reply was decoded from; undefined after any edit. */
export const unchangedBody = (reply: Reply): JsonObject | undefined => bodies.get(reply);

/** @throws GatewayError the upstream's own for an error body, `upstream` if the body is not a message */
export function decodeReply(body: Json, context: UpstreamContext): Reply {
  if (isObject(body) && body.type === 'error') {
    throw decodeErrorBody(body, { status: undefined });
  }
  if (!isObject(body) || (!Array.isArray(body.content) && contentOf(body).length === 0)) {
    throw brokenAnswer('The upstream answered with something that is not a message.');
  }
  const reader = upstreamReader(context);
  const blocks = contentOf(body).flatMap(
    (item, i) => decodeBlock(item, `content.${i}`, reader) ?? [],
  );
  const reply: Reply = {
    id: text(body.id) ?? '',
    model: text(body.model) ?? context.target.model,
    blocks,
    finish: decodeFinish(body.stop_reason),
    odd: isOddMessage(body) ? 'form' : undefined,
    oddFinish: oddFinish(body.stop_reason, blocks.some(isClientCall)),
    stopSequence: text(body.stop_sequence),
    details: decodeStopDetails(body.stop_details),
    usage: decodeUsage(body.usage),
    rest: replyRest(body),
    wire: wireOf(body),
  };
  bodies.set(reply, body);
  return reply;
}
