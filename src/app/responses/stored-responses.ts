/** The routes of stored responses: what is kept here is answered here, what a vendor keeps is asked of it. */

import { inputItems } from '../../codecs/openai-responses/stored-items.ts';
import type { Payer } from '../../conversation/account/payer.ts';
import { GatewayError, invalid } from '../../conversation/errors.ts';
import { vendorIdsIssued } from '../../conversation/vendor-ids.ts';
import {
  chainItems,
  conversationNotFound,
  isJob,
  listInputItems,
  ownerOf,
  type ResponseStore,
  referredItems,
  remove,
  resolveReferences,
  responseNotFound,
  retrieve,
} from '../../features/response-store/index.ts';
import { responseStream } from '../../features/response-store/response-views.ts';
import type { Exchange, Gateway } from '../../gateway/types.ts';
import { isObject, type Json, tryParse } from '../../lib/json/json.ts';
import { type AskedJob, settledStream, settleJob } from './settle-job.ts';
import { type VendorAskerOptions, vendorAsker } from './vendor-asker.ts';

export interface StoredResponsesOptions extends VendorAskerOptions {
  readonly store: ResponseStore;
  /** Notes ids that answers give out. */
  readonly learnIds: (owner: string, ids: readonly string[], provider: string) => void;
  /** Counts the tokens of a request to this protocol: `{input_tokens}`. */
  readonly count: Gateway;
}

/** Answers a request for a stored response. @throws GatewayError the error that the client gets instead */
type Handler = (exchange: Exchange, id: string, payer: Payer) => Promise<Response>;

/** Milliseconds after which a job is asked for whose reader has left before its end. */
const ASK_AGAIN_MS = [0, 5_000, 30_000, 120_000, 600_000];

export function storedResponses(options: StoredResponsesOptions) {
  const { store, upstream, secrets, count, learnIds } = options;
  const asked = vendorAsker({ upstream, secrets });

  /**
   * The response, who keeps it ('' for this gateway alone), and the reserved amount to settle with the vendor's answer.
   * @throws GatewayError not_found
   */
  async function found(exchange: Exchange, id: string, payer?: Payer) {
    const owner = ownerOf(exchange.owner);
    // Only its items need the responses that it continues.
    const reads = await store.fetch({ responses: [id], chains: payer === undefined }, owner);
    const kept = reads.known(id, owner);
    if (kept === undefined) throw responseNotFound(id);
    const { keeper = '' } = kept;
    const row = payer === undefined || keeper === '' ? undefined : reads.get(id, owner);
    const job: AskedJob | undefined =
      payer !== undefined && row !== undefined && isJob(row)
        ? { id, owner, keeper, payer }
        : undefined;
    return { owner, reads, keeper, job };
  }

  /** The job's present state, for the account alone. */
  async function settleNow(exchange: Exchange, job: AskedJob): Promise<boolean> {
    const own = { ...plain(exchange), search: '', signal: new AbortController().signal };
    const answer = await asked(own, job.keeper, 'GET', encodeURIComponent(job.id));
    if (answer === undefined) return true;
    return settle(exchange, job, tryParse(await answer.text()));
  }

  /** Settles usage and learns ids from what the vendor reports of a job. */
  function settle(exchange: Exchange, job: AskedJob, response: Json | undefined): Promise<boolean> {
    const issued = [...vendorIdsIssued(response).keys()];
    if (exchange.owner !== '' && issued.length > 0) learnIds(exchange.owner, issued, job.keeper);
    return settleJob(store, job, response);
  }

  /** A reader that leaves before the end has seen the answer all the same. */
  function settleLater(exchange: Exchange, job: AskedJob, [wait, ...later] = ASK_AGAIN_MS): void {
    if (wait === undefined) return;
    const ask = () =>
      settleNow(exchange, job)
        .catch(() => false)
        .then((isOver) => {
          if (!isOver) settleLater(exchange, job, later);
        });
    setTimeout(ask, wait).unref();
  }

  const retrieved: Handler = async (exchange, id, payer) => {
    const { owner, reads, keeper, job } = await found(exchange, id, payer);
    const answer = await asked(exchange, keeper, 'GET', encodeURIComponent(id));
    const query = new URLSearchParams(exchange.search);
    if (answer === undefined) {
      const response = retrieve(reads, id, owner);
      if (query.get('stream') !== 'true') return Response.json(response);
      return eventStream(responseStream(response, query.get('starting_after')));
    }
    return job === undefined ? answer : settling(exchange, job, answer);
  };

  /** The same answer, which the client gets when what it says is settled. */
  async function settling(exchange: Exchange, job: AskedJob, answer: Response): Promise<Response> {
    const { status, headers, body } = answer;
    if (status !== 200 || body === null) return answer;
    const type = headers.get('content-type') ?? '';
    if (type.includes('event-stream')) {
      const last = (response: Json | undefined) => settle(exchange, job, response);
      const stream = settledStream(body, last, () => settleLater(exchange, job));
      return new Response(stream, { status, headers });
    }
    const text = await answer.text();
    await settle(exchange, job, tryParse(text));
    return new Response(text, { status, headers });
  }

  const removed: Handler = async (exchange, id, payer) => {
    const { owner, keeper, job } = await found(exchange, id, payer);
    if (job !== undefined) await settleNow(exchange, job);
    const answer = await asked(exchange, keeper, 'DELETE', encodeURIComponent(id));
    if (answer !== undefined && !answer.ok) return answer;
    const gone = await remove(store, id, owner);
    return answer ?? Response.json(gone);
  };

  const cancelled: Handler = async (exchange, id, payer) => {
    const { keeper, job } = await found(exchange, id, payer);
    const answer = await asked(exchange, keeper, 'POST', `${encodeURIComponent(id)}/cancel`);
    if (answer !== undefined) return job === undefined ? answer : settling(exchange, job, answer);
    throw invalid(
      `Response '${id}' cannot be cancelled: it is not a background response of a vendor that keeps it.`,
      'id',
    );
  };

  const items: Handler = async (exchange, id) => {
    const { owner, reads, keeper } = await found(exchange, id);
    const answer = await asked(exchange, keeper, 'GET', `${encodeURIComponent(id)}/input_items`);
    if (answer !== undefined) return answer;
    const query = Object.fromEntries(new URLSearchParams(exchange.search));
    return Response.json(await listInputItems(reads, id, owner, query));
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
    const earlier = chainItems(await reads.chain(previous, owner));
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
