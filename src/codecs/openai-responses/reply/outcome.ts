/** How a response ended, what it cost and why it failed: read from and written to response objects. */

import { GatewayError } from '../../../conversation/errors.ts';
import type { FinishReason } from '../../../conversation/events.ts';
import { countOf, totalInput, totalOutput, type Usage } from '../../../conversation/usage.ts';
import type { Json, JsonObject } from '../../../lib/json/json.ts';
import { isObject } from '../../../lib/json/json.ts';
import { object, objects, text } from '../wire.ts';
import { vendorError } from './errors.ts';

/** Tool calls that a client has to answer. */
const CLIENT_CALLS = ['function_call', 'custom_tool_call'];

/** Does this item wait for the client's answer? */
export function asksClient(item: JsonObject): boolean {
  if (item.type === 'tool_search_call') return item.execution !== 'server';
  return CLIENT_CALLS.includes(`${item.type}`);
}

/** Input tokens include cached ones here, output tokens the reasoning: both are taken apart. */
export function decodeUsage(value: Json | undefined): Usage | undefined {
  if (!isObject(value)) return undefined;
  const input = countOf(value.input_tokens);
  const output = countOf(value.output_tokens);
  if (input === undefined && output === undefined) return undefined;
  const inner = object(value, 'input_tokens_details') ?? {};
  const cacheRead = countOf(inner.cached_tokens);
  const cacheWrite = countOf(inner.cache_write_tokens);
  const reasoning = countOf(object(value, 'output_tokens_details')?.reasoning_tokens);
  return {
    input: Math.max(0, (input ?? 0) - (cacheRead ?? 0) - (cacheWrite ?? 0)),
    output: Math.max(0, (output ?? 0) - (reasoning ?? 0)),
    ...(cacheRead === undefined ? {} : { cacheRead }),
    ...(cacheWrite === undefined ? {} : { cacheWrite }),
    ...(reasoning === undefined ? {} : { reasoning }),
  };
}

/** Both details are required by the official types. */
export function encodeUsage(usage: Usage): JsonObject {
  const input = totalInput(usage);
  const output = totalOutput(usage);
  return {
    input_tokens: input,
    input_tokens_details: {
      cached_tokens: usage.cacheRead ?? 0,
      ...(usage.cacheWrite === undefined ? {} : { cache_write_tokens: usage.cacheWrite }),
    },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: usage.reasoning ?? 0 },
    total_tokens: input + output,
  };
}

/**
 * The reason of a response that has come to its end.
 * @param called a call for the client was seen
 * @param refused a refusal was seen
 */
export function finishOf(response: JsonObject, called: boolean, refused: boolean): FinishReason {
  if (response.status === 'incomplete') {
    const reason = text(object(response, 'incomplete_details') ?? {}, 'reason');
    return reason === 'content_filter' ? 'content-filter' : 'length';
  }
  if (called) return 'tool-calls';
  return refused ? 'refusal' : 'stop';
}

/** The same, told from the output itself. */
export function finishOfOutput(response: JsonObject): FinishReason {
  const output = objects(response.output);
  const refused = output.some((item) => objects(item.content).some((p) => p.type === 'refusal'));
  return finishOf(response, output.some(asksClient), refused);
}

/** Why a response failed, when it did. */
export function failureOf(response: JsonObject): GatewayError | undefined {
  const { status } = response;
  if (status !== 'failed' && status !== 'cancelled') return undefined;
  const error = object(response, 'error');
  if (error !== undefined) return vendorError(undefined, error);
  return new GatewayError('upstream', `The upstream's response was ${status}.`, {
    fromUpstream: true,
  });
}
