/** How a response ends: finish reasons and failures, read from response objects and written as their status. */

import { GatewayError } from '../../../conversation/errors.ts';
import type { FinishReason } from '../../../conversation/events.ts';
import type { JsonObject } from '../../../lib/json/json.ts';
import { object, objects, text } from '../wire.ts';
import { vendorError } from './errors.ts';

const CLIENT_CALLS = ['function_call', 'custom_tool_call'];

export function isClientCall(item: JsonObject): boolean {
  if (item.type === 'tool_search_call') return item.execution !== 'server';
  return CLIENT_CALLS.includes(`${item.type}`);
}

/**
 * The finish reason of a finished response.
 * @param called the output holds a call for the client
 * @param refused the output holds a refusal
 */
export function decodeFinish(
  response: JsonObject,
  called: boolean,
  refused: boolean,
): FinishReason {
  if (response.status === 'incomplete') {
    const reason = text(object(response.incomplete_details)?.reason);
    return reason === 'content_filter' ? 'content-filter' : 'length';
  }
  if (called) return 'tool-calls';
  return refused ? 'refusal' : 'stop';
}

export function finishOfOutput(response: JsonObject): FinishReason {
  const output = objects(response.output);
  const refused = output.some((item) => objects(item.content).some((p) => p.type === 'refusal'));
  return decodeFinish(response, output.some(isClientCall), refused);
}

/** The error of a failed or cancelled response, else undefined. */
export function failureOf(response: JsonObject): GatewayError | undefined {
  const { status } = response;
  if (status !== 'failed' && status !== 'cancelled') return undefined;
  const error = object(response.error);
  if (error !== undefined) return vendorError(undefined, error);
  return new GatewayError('upstream', `The upstream's response was ${status}.`, {
    fromUpstream: true,
  });
}

export type ResponseStatus =
  | { readonly status: 'in_progress' }
  | { readonly status: 'completed' | 'incomplete'; readonly reason?: string }
  | { readonly status: 'failed'; readonly error: GatewayError };

/**
 * The status of a response that ends with this finish reason.
 * @param refused the output holds the refusal's text, so the response counts as completed
 */
export function encodeFinish(finish: FinishReason | undefined, refused: boolean): ResponseStatus {
  switch (finish) {
    case 'length':
    case 'context-overflow':
    case 'pause':
      return { status: 'incomplete', reason: 'max_output_tokens' };
    case 'content-filter':
      return { status: 'incomplete', reason: 'content_filter' };
    case 'refusal':
      return refused ? { status: 'completed' } : { status: 'incomplete', reason: 'content_filter' };
    default:
      return { status: 'completed' };
  }
}
