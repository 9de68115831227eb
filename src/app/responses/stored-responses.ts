/** The routes of stored responses: what is kept here is answered here, what a vendor keeps is asked of it. */

import { inputItems, outputItems } from '../../codecs/openai-responses/stored-items.ts';
import { GatewayError, invalid } from '../../conversation/errors.ts';
import {
  chainItems,
  conversationNotFound,
  listInputItems,
  ownerOf,
  type ResponseStore,
  referredItems,
  remove,
  resolveReferences,
  responseNotFound,
  retrieve,
  update,
} from '../../features/response-store/index.ts';
import { responseStream } from '../../features/response-store/response-stream.ts';
import type { Exchange, Gateway } from '../../gateway/types.ts';
import { isObject, type Json, tryParse } from '../../lib/json/json.ts';
import { patiently } from './response-state.ts';
import { type VendorAskerOptions, vendorAsker } from './vendor-asker.ts';

export interface StoredResponsesOptions extends VendorAskerOptions {
  readonly store: ResponseStore;
  /** Other processes answer requests, too. */
  readonly shared: boolean;
  /** Counts the tokens of a request to this protocol: `{input_tokens}`. */
  readonly count: Gateway;
}

/** Answers a request for a stored response. @throws GatewayError the error that the client gets instead */
type Handler = (exchange: Exchange, id: string) => Promise<Response>;

export function storedResponses({
  store,
  shared,
  upstream,
  secrets,
  count,
}: StoredResponsesOptions) {
  /**
   * The response, and who keeps it; '' for this gateway alone.
   * @param chains with what it continues
   * @throws GatewayError not_found
   */
  async function found(id: string, owner: string, chains = false) {
    const reads = await store.fetch({ responses: [id], chains }, owner);
    const kept = await patiently(shared, () => reads.known(id, owner));
    if (kept === undefined) throw responseNotFound(id);
    return { reads, keeper: kept.keeper ?? '' };
  }

  const asked = vendorAsker({ upstream, secrets });

  const retrieved: Handler = async (exchange, id) => {
    const owner = ownerOf(exchange.owner);
    const { reads, keeper } = await found(id, owner);
    const answer = await asked(exchange, keeper, 'GET', encodeURIComponent(id));
    const query = new URLSearchParams(exchange.search);
    if (answer === undefined) {
      const response = retrieve(reads, id, owner);
      if (query.get('stream') !== 'true') return Response.json(response);
      return eventStream(responseStream(response, query.get('starting_after')));
    }
    const isJson = answer.headers.get('content-type')?.includes('json') === true;
    if (answer.status !== 200 || !isJson) return answer;
    const text = await answer.text();
    const value = tryParse(text);
    if (isObject(value)) update(store, reads, id, owner, value, outputItems);
    return new Response(text, { status: answer.status, headers: answer.headers });
  };

  const removed: Handler = async (exchange, id) => {
    const owner = ownerOf(exchange.owner);
    const { keeper } = await found(id, owner);
    const answer = await asked(exchange, keeper, 'DELETE', encodeURIComponent(id));
    if (answer !== undefined && !answer.ok) return answer;
    const gone = await remove(store, id, owner);
    return answer ?? Response.json(gone);
  };

  const cancelled: Handler = async (exchange, id) => {
    const owner = ownerOf(exchange.owner);
    const { keeper } = await found(id, owner);
    const answer = await asked(exchange, keeper, 'POST', `${encodeURIComponent(id)}/cancel`);
    if (answer !== undefined) return answer;
    throw invalid(
      `Response '${id}' cannot be cancelled: it is not a background response of a vendor that keeps it.`,
      'id',
    );
  };

  const items: Handler = async (exchange, id) => {
    const owner = ownerOf(exchange.owner);
    const { reads, keeper } = await found(id, owner, true);
    const answer = await asked(exchange, keeper, 'GET', `${encodeURIComponent(id)}/input_items`);
    if (answer !== undefined) return answer;
    const query = Object.fromEntries(new URLSearchParams(exchange.search));
    const previous = reads.get(id, owner)?.previous;
    const before = previous === undefined ? undefined : await reads.chainInSteps(previous, owner);
    return Response.json(listInputItems(reads, id, owner, query, before));
  };

  /** `POST /v1/responses/input_tokens`: counted with all that the request continues. */
  const counted: Gateway = async (exchange) => {
    const body = await inFull(exchange);
    const response = await count({ ...plain(exchange), body });
    const value = response.ok ? tryParse(await response.clone().text()) : undefined;
    if (!isObject(value)) return response;
    const { headers } = response;
    headers.delete('content-length');
    const told = { object: 'response.input_tokens', ...value };
    return new Response(JSON.stringify(told), { headers });
  };

  async function inFull(exchange: Exchange): Promise<Uint8Array> {
    const body = tryParse(new TextDecoder().decode(exchange.body));
    if (!isObject(body)) return exchange.body;
    const owner = ownerOf(exchange.owner);
    const { previous_response_id: previous, conversation } = body;
    if (conversation !== undefined && conversation !== null) {
      throw conversationNotFound(nameOf(conversation));
    }
    const responses = typeof previous === 'string' ? [previous] : [];
    const reads = await store.fetch({ responses, chains: true, items: referredItems(body) }, owner);
    const own = resolveReferences(body, reads, owner);
    if (typeof previous !== 'string') {
      return own === body ? exchange.body : new TextEncoder().encode(JSON.stringify(own));
    }
    await patiently(shared, () => reads.known(previous, owner));
    const earlier = chainItems(await reads.chainInSteps(previous, owner));
    const { previous_response_id: _, ...rest } = own;
    const whole = { ...rest, input: [...earlier, ...inputItems(own)] };
    return new TextEncoder().encode(JSON.stringify(whole));
  }

  return { retrieve: retrieved, remove: removed, cancel: cancelled, inputItems: items, counted };
}

const nameOf = (conversation: Json): string =>
  String(isObject(conversation) ? conversation.id : conversation);

/** An exchange is an object of a class: its getters are no members of their own. */
export const plain = (exchange: Exchange): Exchange => ({
  id: exchange.id,
  protocol: exchange.protocol,
  body: exchange.body,
  headers: exchange.headers,
  sessionId: exchange.sessionId,
  search: exchange.search,
  signal: exchange.signal,
  principal: exchange.principal,
  owner: exchange.owner,
  started: exchange.started,
});

const eventStream = (text: string): Response =>
  new Response(text, {
    headers: { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' },
  });

/** Endpoints of the vendor's that have no meaning here, in words. */
export function notServed(what: string): GatewayError {
  return new GatewayError('not_found', what, { code: 'unsupported_endpoint', retryable: false });
}

export const CONVERSATIONS =
  'This gateway keeps no conversation objects (/v1/conversations). Continue a response with "previous_response_id".';
