/** Chooses the headers sent to an upstream: those of the client on the same protocol, else only the gateway's own. */

import type { ProtocolName } from '../conversation/types.ts';
import { endToEnd, FlatHeaders, hopFields, type ReadonlyHeaders } from '../lib/http/headers.ts';
import { LOOP_MARK, passedGateways } from '../lib/http/loop-mark.ts';
import { type ExchangeTrace, newSpanId } from '../telemetry/trace.ts';
import type { AuthStyle } from '../vendors/vendor.ts';
import { requestFilter } from './border.ts';

export { forwardedSearch } from './border.ts';

export interface UpstreamHeaderOptions {
  readonly client: ReadonlyHeaders;
  /** Client and upstream speak the same protocol: headers are forwarded that may cross and that `Connection` does not name. */
  readonly sameProtocol: boolean;
  readonly protocol: ProtocolName;
  readonly auth: AuthStyle;
  readonly key: string | undefined;
  readonly stream: boolean;
  /** Type of the body; JSON if omitted. */
  readonly contentType?: string | undefined;
  /** Left out: as for a provider without `forward_headers`. */
  readonly isForwarded?: ((name: string) => boolean) | undefined;
  /** Of this gateway, as its requests name it; left out: they do not. */
  readonly gatewayId?: string | undefined;
  /** The provider's own, from the configuration; they win. */
  readonly extra: Readonly<Record<string, { reveal(): string }>>;
}

// Agents, and the sessions of one agent, take turns; a client that sends a new id each time gains nothing.
const MAX_KEPT = 8;

interface Kept {
  readonly forwarded: FlatHeaders;
  readonly key: string | undefined;
  readonly stream: boolean;
  readonly sameProtocol: boolean;
  readonly headers: FlatHeaders;
}

/**
 * The headers of the requests to one upstream. A client sends the same ones again and again: it gets the very
 * list again, and whatever was made of that is spared, too.
 */
export class UpstreamHeaders {
  readonly #isForwarded: (name: string) => boolean;
  readonly #kept: Kept[] = [];
  #oldest = 0;

  /** @param more names of `forward_headers` */
  constructor(more: readonly string[] = []) {
    this.#isForwarded = requestFilter(more);
  }

  /** Not to be changed. */
  of(given: Omit<UpstreamHeaderOptions, 'isForwarded'>): FlatHeaders {
    const isForwarded = this.#isForwarded;
    const { key, stream, sameProtocol } = given;
    const client = FlatHeaders.from(given.client);
    // Such a message says by itself which of its fields stay here; what is kept was made of those that do not.
    const isUsual = given.contentType === undefined && hopFields(client) === undefined;
    if ((sameProtocol && !isUsual) || passedGateways(client) !== undefined)
      return upstreamHeaders({ ...given, isForwarded });
    for (const one of this.#kept) {
      if (one.key !== key || one.stream !== stream || one.sameProtocol !== sameProtocol) continue;
      if (!sameProtocol || one.forwarded.isWhere(client, isForwarded)) return one.headers;
    }
    const forwarded = client.where(isForwarded);
    const headers = upstreamHeaders({ ...given, isForwarded });
    this.#kept[this.#oldest] = { forwarded, key, stream, sameProtocol, headers };
    this.#oldest = (this.#oldest + 1) % MAX_KEPT;
    return headers;
  }
}

/** The headers of an upstream request. `accept-encoding: identity`, so that streams can be read as they are. */
export function upstreamHeaders(options: UpstreamHeaderOptions): FlatHeaders {
  const headers = options.sameProtocol
    ? endToEnd(FlatHeaders.from(options.client), options.isForwarded ?? requestFilter())
    : new FlatHeaders();
  headers.set('content-type', options.contentType ?? 'application/json');
  headers.set('accept-encoding', 'identity');
  if (!headers.has('accept')) {
    headers.set('accept', options.stream ? 'text/event-stream' : 'application/json');
  }
  if (!headers.has('user-agent')) headers.set('user-agent', 'hopgate');
  if (options.protocol === 'anthropic-messages' && !headers.has('anthropic-version')) {
    headers.set('anthropic-version', '2023-06-01');
  }
  if (options.gatewayId !== undefined) {
    const passed = passedGateways(options.client) ?? [];
    headers.set(LOOP_MARK, [...passed, options.gatewayId].join(', '));
  }
  if (options.key !== undefined) authorize(headers, options.auth, options.key);
  for (const name in options.extra) headers.set(name, options.extra[name]!.reveal());
  return headers;
}

/** What a vendor hears of a conversation. @param hash of its session; 0: a request of the gateway's own */
export const sessionName = (hash: number): string => `ses_${hash.toString(16).padStart(8, '0')}`;

/**
 * The context of the trace, to be sent beside the headers: a span of the exchange's own where it has a trace, else what
 * the client sent. `baggage` goes on as it came. Undefined where there is none.
 */
export function traceHeaders(
  trace: ExchangeTrace | undefined,
  client: ReadonlyHeaders,
): FlatHeaders | undefined {
  const parent = trace === undefined ? client.get('traceparent') : trace.parentOf(newSpanId());
  const baggage = client.get('baggage');
  if (parent === null && baggage === null) return undefined;
  const headers = new FlatHeaders();
  if (parent !== null) {
    headers.set('traceparent', parent);
    const state = trace === undefined ? client.get('tracestate') : trace.state;
    if (state) headers.set('tracestate', state);
  }
  if (baggage !== null) headers.set('baggage', baggage);
  return headers;
}

const REPETITION = 'idempotency-key';

/**
 * To a vendor all keys are one account, so by a client's own word for a repetition it could give one owner the answer
 * of another: it goes out as a word of the owner's. Without keys, as it came.
 */
export function ownRepetition(client: ReadonlyHeaders, owner: string | undefined): ReadonlyHeaders {
  if (!owner) return client;
  const asked = client.get(REPETITION);
  if (asked === null) return client;
  const own = FlatHeaders.from(client).where(() => true);
  const digest = new Bun.CryptoHasher('sha256').update(JSON.stringify([owner, asked]));
  own.set(REPETITION, digest.digest('base64url'));
  return own;
}

/** Both lists as one; the first stays as it is, since other requests have it too. */
export function withMore(headers: ReadonlyHeaders, more: FlatHeaders | undefined): FlatHeaders {
  const list = FlatHeaders.from(headers);
  if (more === undefined) return list;
  const all = list.where(() => true);
  for (const [name, value] of more) all.set(name, value);
  return all;
}

function authorize(headers: FlatHeaders, style: AuthStyle, key: string): void {
  if (style === 'bearer') headers.set('authorization', `Bearer ${key}`);
  else if (style !== 'none') headers.set(style, key);
}
