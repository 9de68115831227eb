/** Decodes a response object into a reply, with tool names and kinds as the client declared them. */

import { brokenAnswer } from '../../../conversation/errors.ts';
import type { Reply } from '../../../conversation/events.ts';
import { toolNames, unwrapFreeform } from '../../../conversation/tools/tool-names.ts';
import type { Block, ToolCallBlock } from '../../../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { prefixedId } from '../../../lib/text/ids.ts';
import type { UpstreamContext } from '../../codec.ts';
import { decodeItem, decodeReasoning } from '../request/decode-items.ts';
import { compact, NAME_LIMIT, number, objects, PROTOCOL, text, wireOf } from '../wire.ts';
import { failureOf, finishOfOutput } from './finish-reason.ts';
import { usageOf } from './usage.ts';

/** @throws GatewayError upstream if the body is not a finished response, or the failure that it reports */
export function decodeReply(body: Json, context: UpstreamContext): Reply {
  if (!isObject(body)) throw brokenAnswer('The upstream sent no response object.');
  if (isObject(body.error) && body.output === undefined) {
    throw failureOf({ ...body, status: 'failed' }) ?? brokenAnswer('The upstream failed.');
  }
  const failure = failureOf(body);
  if (failure !== undefined) throw failure;
  if (!Array.isArray(body.output))
    throw brokenAnswer('The upstream sent a response without output.');
  const blocks = outputBlocks(objects(body.output), context);
  const logprobs = objects(body.output).flatMap((item) =>
    objects(item.content).flatMap((part) => objects(part.logprobs)),
  );
  return {
    id: text(body.id) ?? '',
    model: text(body.model) ?? context.target.model,
    created: number(body.created_at),
    blocks,
    finish: finishOfOutput(body),
    usage: usageOf(body),
    odd: objects(body.output).some(isOddItem) ? 'form' : undefined,
    logprobs: logprobs.length > 0 ? logprobs : undefined,
    rest: restOf(body),
    wire: wireOf(body),
  };
}

const isCall = ({ type }: JsonObject): boolean =>
  type === 'function_call' || type === 'custom_tool_call';

/** Clients go through the parts of each message, read arguments as text, and answer a call by its `call_id`. */
function isOddItem({ type, content, call_id, arguments: args, input }: JsonObject): boolean {
  if (type === 'message') return !Array.isArray(content);
  if (!isCall({ type })) return false;
  return !text(call_id) || typeof (type === 'function_call' ? args : input) !== 'string';
}

/** The blocks of all items. The text that begins a further message is marked. */
function outputBlocks(output: readonly JsonObject[], context: UpstreamContext): readonly Block[] {
  let messages = 0;
  return output.flatMap((item) => {
    const blocks = itemBlocks(item, context);
    const first = item.type === 'message' ? blocks[0] : undefined;
    if (first?.type !== 'text' || messages++ === 0) return blocks;
    return [{ ...first, paragraph: true }, ...blocks.slice(1)];
  });
}

/** The fields of a response object that come from the vendor and are not an echo of the request. */
export function restOf(response: JsonObject): JsonObject | undefined {
  const tier = text(response.service_tier);
  return tier === undefined ? undefined : compact({ service_tier: tier });
}

/** The blocks of one output item; none for empty reasoning. */
export function itemBlocks(item: JsonObject, context: UpstreamContext): readonly Block[] {
  if (item.type === 'reasoning') {
    return decodeReasoning(item, context.target.provider).blocks.filter(
      (block) => block.type !== 'reasoning' || block.text !== '' || block.sealed !== undefined,
    );
  }
  const value =
    item.type === 'message' && item.role === undefined
      ? { ...item, role: 'assistant' }
      : isCall(item) && !text(item.call_id) && !text(item.id)
        ? { ...item, call_id: prefixedId('call_') }
        : item;
  let blocks: readonly Block[];
  try {
    blocks = decodeItem(value, 'output').blocks;
  } catch (error) {
    throw brokenAnswer(
      `The upstream sent a broken item: ${error instanceof Error ? error.message : ''}`,
    );
  }
  return blocks.map((block) =>
    block.type === 'tool-call' && block.by === 'client'
      ? restoreDeclaredName(block, context)
      : block,
  );
}

/** The call with its declared name, namespace and kind, and with freeform input unwrapped. */
export function restoreDeclaredName(block: ToolCallBlock, context: UpstreamContext): ToolCallBlock {
  if (block.namespace !== undefined || block.kind !== 'function') return block;
  const original = toolNames(context.sent.tools, NAME_LIMIT).original(block.name);
  if (
    original.name === block.name &&
    original.namespace === undefined &&
    original.kind === 'function'
  ) {
    return block;
  }
  const input = original.kind === 'custom' ? unwrapFreeform(block.input) : block.input;
  const { wire: _, ...rest } = block;
  // A client of this protocol takes no function call for a freeform tool or one of a namespace (Codex aborts the call).
  const isOwn = context.sent.origin?.protocol === PROTOCOL;
  const odd = isOwn || original.kind === 'custom' ? ({ odd: true } as const) : {};
  return { ...rest, ...original, ...odd, input };
}
