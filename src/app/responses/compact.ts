/** `POST /v1/responses/compact`: a request with a compaction trigger, answered with the compacted list of items. */

import { inputItems, outputItems } from '../../codecs/openai-responses/stored-items.ts';
import { GatewayError, invalid } from '../../conversation/errors.ts';
import { TRIGGER } from '../../features/compaction/index.ts';
import { COMPACTION } from '../../features/compaction/summary.ts';
import { chainItems, ownerOf, type ResponseStore } from '../../features/response-store/index.ts';
import type { Gateway } from '../../gateway/types.ts';
import { isObject, type JsonObject, tryParse } from '../../lib/json/json.ts';
import { plain } from './stored-responses.ts';

export interface CompactOptions {
  readonly store: ResponseStore;
  readonly gateway: Gateway;
}

/**
 * The answer's `output` is every message of the user, then one compaction item: the form of OpenAI's own endpoint
 * (https://platform.openai.com/docs/api-reference/responses/compact). A vendor that compacts by itself gets the same
 * trigger, so one way serves both.
 */
export function compacted({ store, gateway }: CompactOptions): Gateway {
  /** What the request continues, as far as it is known here. */
  async function earlier({ previous_response_id: id }: JsonObject, owner: string) {
    if (typeof id !== 'string') return [];
    const reads = await store.fetch({ responses: [id], chains: true }, owner);
    return reads.known(id, owner) === undefined ? [] : chainItems(await reads.chain(id, owner));
  }

  return async (exchange) => {
    const body = tryParse(new TextDecoder().decode(exchange.body));
    if (!isObject(body)) throw invalid('The request body is not a JSON object.');
    const own = inputItems(body);
    const before = await earlier(body, ownerOf(exchange.owner));
    const asked = own.at(-1)?.type === TRIGGER ? own : [...own, { type: TRIGGER }];
    const { background: _, ...rest } = body;
    const request = { ...rest, input: asked, stream: false, store: false };
    const answer = await gateway({
      ...plain(exchange),
      ...(exchange.path !== undefined && { path: exchange.path }),
      trace: exchange.trace,
      body: new TextEncoder().encode(JSON.stringify(request)),
    });
    if (!answer.ok) return answer;
    const response = tryParse(await answer.text());
    const { headers } = answer;
    headers.delete('content-length');
    const value = compactedResponse(response, [...before, ...own]);
    return new Response(JSON.stringify(value), { status: answer.status, headers });
  };
}

/** @throws GatewayError upstream if the answer holds no compaction, or was cut at the output cap */
function compactedResponse(
  response: unknown,
  history: readonly JsonObject[],
): Readonly<Record<string, unknown>> {
  const value = isObject(response as JsonObject) ? (response as JsonObject) : {};
  const items = outputItems(value).filter(({ type }) => type === COMPACTION);
  if (items.length === 0 || value.status !== 'completed') {
    const why = items.length === 0 ? 'The model compacted nothing.' : 'The compaction was cut off.';
    throw new GatewayError('upstream', why, { retryable: true });
  }
  return {
    id: value.id,
    object: 'response.compaction',
    created_at: value.created_at,
    output: [...history.filter(isUserMessage).map(asMessage), ...items],
    usage: value.usage,
  };
}

const isUserMessage = ({ type, role }: JsonObject): boolean =>
  role === 'user' && (type === undefined || type === 'message');

/** Output items have parts, where an input may be a string. */
const asMessage = ({ content, ...item }: JsonObject): JsonObject => ({
  ...item,
  type: 'message',
  status: 'completed',
  content: typeof content === 'string' ? [{ type: 'input_text', text: content }] : content,
});
