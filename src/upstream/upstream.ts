/** One provider at run time: its keys, its limits, and one try at sending a request there. */

import type { ProviderConfig } from '../config/sections/providers.ts';
import { GatewayError } from '../conversation/errors.ts';
import { FlatHeaders, type ReadonlyHeaders } from '../lib/http/headers.ts';
import type { Abort } from '../lib/loop/abort.ts';
import { type IdleTimer, startIdleTimer } from '../lib/loop/idle-timer.ts';
import type { ExchangeTrace } from '../telemetry/trace.ts';
import { sessionHeaderAt } from '../vendors/index.ts';
import { ConcurrencyLimit } from './concurrency-limit.ts';
import { connectionError } from './connection-error.ts';
import { Hedging } from './health/hedging.ts';
import type { CooldownChange, Lease } from './health/place.ts';
import { KeyRing, type Session } from './key-ring.ts';
import type { Platform } from './platform/platform.ts';
import {
  forwardedSearch,
  ownRepetition,
  sessionName,
  traceHeaders,
  UpstreamHeaders,
  withMore,
} from './request-headers.ts';
import { sameConfig } from './same-config.ts';
import {
  isRead,
  type RequestStream,
  type Transport,
  type UpstreamAnswer,
  type UpstreamRequest,
} from './transport.ts';

export interface SendOptions {
  /** Appended to the base URL, e.g. `/chat/completions`. */
  readonly path: string;
  /** What the protocol itself puts into the query, without `?`. */
  readonly query?: string | undefined;
  /** The client's query string, of which the protocol's parameters are forwarded on the same protocol; '' or `?…`. */
  readonly search: string;
  /** Left out: `POST`. */
  readonly method?: UpstreamRequest['method'];
  /** Left out: a request without one. */
  readonly body?: UpstreamRequest['body'];
  /** Type of the body; JSON if omitted. */
  readonly contentType?: string;
  readonly clientHeaders: ReadonlyHeaders;
  /** As {@link UpstreamRequest.owner}; left out: the gateway itself asks. */
  readonly owner?: string | undefined;
  readonly sameProtocol: boolean;
  /** The conversation that the request belongs to; left out: one of its own. */
  readonly session?: Session | undefined;
  /** A flag of `anthropic-beta` that a field of the body needs. */
  readonly beta?: string | undefined;
  readonly stream: boolean;
  /** Aborts the try, before the headers and while the body streams. */
  readonly abort: Abort;
  /** Called just before the request goes out. */
  readonly onSend?: ((url: string, headers: ReadonlyHeaders) => void) | undefined;
  /** As {@link UpstreamRequest.onConnected}. */
  readonly onConnected?: (() => void) | undefined;
  /** The trace of this try's exchange. */
  readonly trace?: ExchangeTrace | undefined;
}

export interface Sent {
  readonly answer: UpstreamAnswer;
  /** As {@link UpstreamCall.release}. */
  release(): void;
}

/** One try at sending a request: the slot it takes, the key it uses, and the limits on its time. */
export class UpstreamCall {
  readonly key: Lease;
  readonly #config: ProviderConfig;
  readonly #abort: Abort;
  readonly #release: () => void;
  readonly #limit: ReturnType<typeof setTimeout> | undefined;
  readonly #idleTimer: IdleTimer;
  #late = false;

  constructor(config: ProviderConfig, key: Lease, abort: Abort, release: () => void) {
    this.#config = config;
    this.key = key;
    this.#abort = abort;
    this.#release = release;
    const { totalMs, firstByteMs } = config.timeouts;
    this.#limit = totalMs > 0 ? setTimeout(endTooLong, totalMs, config, abort) : undefined;
    this.#idleTimer = startIdleTimer(firstByteMs, () => this.#isLate());
  }

  #isLate(): void {
    this.#late = true;
    this.#abort.abort(new Error('no answer in time'));
  }

  /** A part of the request goes out: the upstream is not late yet. */
  sending(): void {
    this.#idleTimer.touch();
  }

  /** The answer's head has come. */
  answered(headers: ReadonlyHeaders): void {
    this.#idleTimer.stop();
    this.key.sawHeaders(headers);
  }

  /** No answer came: gives everything back. What to throw instead of what was thrown. */
  failed(thrown: unknown): unknown {
    this.release();
    const { name, timeouts } = this.#config;
    if (this.#abort.reason instanceof GatewayError) return this.#abort.reason;
    // Of a request's body that was read while it was sent.
    if (thrown instanceof GatewayError) return thrown;
    if (!this.#late) return connectionError(name, thrown);
    const seconds = Math.round(timeouts.firstByteMs / 1000);
    return new GatewayError(
      'timeout',
      `Provider ${name} did not begin to answer within ${seconds} s.`,
      { cause: thrown },
    );
  }

  /** Gives the provider's slot back and stops the timers; call it when the body is done with, or nothing is sent. */
  release(): void {
    // A timer that goes on keeps the call, and its exchange, until it fires.
    this.#idleTimer.stop();
    if (this.#limit !== undefined) clearTimeout(this.#limit);
    this.#release();
  }
}

export interface UpstreamOptions {
  /** Milliseconds that only grow. */
  readonly clock?: (() => number) | undefined;
  readonly onCooldown?: ((upstream: Upstream, change: CooldownChange) => void) | undefined;
  /** How many replicas share the provider's `concurrency`; left out: this process has all of it. */
  readonly replicas?: (() => number) | undefined;
  /** Of this gateway, as its requests name it. */
  readonly gatewayId?: string | undefined;
  /** Left out: requests go to the vendor itself. */
  readonly platform?: Platform | undefined;
}

export class Upstream {
  readonly config: ProviderConfig;
  readonly keys: KeyRing;
  /** Undefined: no second request is ever sent beside a slow one. */
  readonly hedging: Hedging | undefined;
  readonly #transport: Transport;
  readonly #platform: Platform | undefined;
  readonly #slots: ConcurrencyLimit;
  readonly #query: string;
  readonly #headers: UpstreamHeaders;
  readonly #gatewayId: string | undefined;
  readonly #sessionHeader: string | undefined;
  #lastPath = '';
  #lastUrl = '';

  /**
   * `before`: this provider by the configuration before this one. Requests that it still runs hold their slots
   * here too, and the other way round.
   */
  constructor(
    config: ProviderConfig,
    transport: Transport,
    before?: Upstream,
    { clock, onCooldown, replicas, platform, gatewayId }: UpstreamOptions = {},
  ) {
    const { concurrency } = config.transport;
    // Another place has room of its own, and has refused no key yet.
    const last = before?.config.baseUrl === config.baseUrl ? before : undefined;
    const asLast = last !== undefined && asksAlike(last.config, config);
    this.config = config;
    const { maxCooldownMs: askedMs, maxRestMs: longestMs } = config.retry;
    this.keys = new KeyRing(config.keys, {
      limits: { askedMs, longestMs },
      clock,
      onChange: onCooldown && ((change) => onCooldown(this, change)),
      before: asLast ? last.keys : undefined,
    });
    this.hedging = config.retry.hedge ? (last?.hedging ?? new Hedging()) : undefined;
    this.#transport = transport;
    this.#platform = platform;
    this.#gatewayId = gatewayId;
    this.#sessionHeader = sessionHeaderAt(config.baseUrl);
    this.#headers = new UpstreamHeaders(config.forwardHeaders);
    this.#slots = last === undefined ? new ConcurrencyLimit(concurrency) : last.#slots;
    this.shareAmong(replicas?.() ?? 1);
    this.#query = Object.entries(config.query)
      .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value.reveal())}`)
      .join('&');
  }

  /** The URL of a path here, with the queries of the configuration, of the protocol and of the client. */
  url(path: string, search: string, query = ''): string {
    if (search === '' && query === '' && this.#query === '') {
      // The very string each time: what is cached for it is found by identity.
      if (this.#lastPath !== path) {
        this.#lastPath = path;
        this.#lastUrl = this.config.baseUrl + path;
      }
      return this.#lastUrl;
    }
    const queries = [this.#query, query, search.replace(/^\?/, '')].filter((part) => part !== '');
    return this.config.baseUrl + path + (queries.length > 0 ? `?${queries.join('&')}` : '');
  }

  /** This process gets its share of the provider's `concurrency`, one at least. */
  shareAmong(replicas: number): void {
    const { concurrency } = this.config.transport;
    this.#slots.resize(concurrency === 0 ? 0 : Math.max(1, Math.floor(concurrency / replicas)));
  }

  /** A try that began now would have to wait. */
  get full(): boolean {
    return this.#slots.full;
  }

  /**
   * The beginning of a try; waits where all slots are taken. Rejects with the abort's reason.
   * @param lease the key to use, and the session for another one if its place cools down by then; left out: any key
   */
  acquire(abort: Abort, lease?: Lease, session?: Session): UpstreamCall | Promise<UpstreamCall> {
    const taken = this.#slots.take(abort);
    if (typeof taken === 'function') {
      return new UpstreamCall(this.config, lease ?? this.keys.leaseAny(), abort, taken);
    }
    return this.#acquireLater(taken, abort, lease, session);
  }

  async #acquireLater(
    taken: Promise<() => void>,
    abort: Abort,
    lease: Lease | undefined,
    session: Session | undefined,
  ): Promise<UpstreamCall> {
    const release = await taken;
    if (lease !== undefined && session !== undefined) this.keys.renew(lease, session);
    return new UpstreamCall(this.config, lease ?? this.keys.leaseAny(), abort, release);
  }

  /** What goes out, and the answer of any status. The caller reports the result to `call`. */
  sendRequest(call: UpstreamCall, options: SendOptions): Promise<UpstreamAnswer> {
    const { config } = this;
    const search = options.sameProtocol ? forwardedSearch(options.search, config.query) : '';
    const url = this.url(options.path, search, options.query);
    const headers = this.#headers.of({
      client: options.sameProtocol
        ? ownRepetition(options.clientHeaders, options.owner)
        : options.clientHeaders,
      sameProtocol: options.sameProtocol,
      protocol: config.protocol,
      auth: config.auth,
      key: call.key.text,
      stream: options.stream,
      contentType: options.contentType,
      extra: config.headers,
      gatewayId: this.#gatewayId,
    });
    const traced = config.traceHeaders
      ? traceHeaders(options.trace, options.clientHeaders)
      : undefined;
    const named =
      this.#sessionHeader === undefined
        ? traced
        : withSession(traced, headers, this.#sessionHeader, options.session);
    const ownHeaders = withBeta(named, headers, options.beta);
    const { body } = options;
    const request: UpstreamRequest = {
      url,
      method: options.method ?? 'POST',
      headers,
      ownHeaders,
      body: isRead(body) ? watched(body, call) : body,
      owner: options.owner,
      abort: options.abort,
      onConnected: options.onConnected,
      limits: config.answers,
    };
    if (this.#platform !== undefined) return this.#over(this.#platform, options, request, search);
    options.onSend?.(url, withMore(headers, ownHeaders));
    return this.#transport(request);
  }

  #over(
    platform: Platform,
    { path, query, stream, onSend }: SendOptions,
    request: UpstreamRequest,
    search: string,
  ): Promise<UpstreamAnswer> {
    const url = (path: string, withSearch: boolean) =>
      this.url(path, withSearch ? search : '', withSearch ? query : '');
    return platform.send({ path, url, request, stream, onSend });
  }

  /**
   * One try as a whole. Resolves with an answer of any status.
   * @throws GatewayError timeout, or upstream when nothing answered; the abort's reason when aborted
   */
  async send(options: SendOptions): Promise<Sent> {
    const call = await this.acquire(options.abort);
    try {
      const answer = await this.sendRequest(call, options);
      call.answered(answer.headers);
      call.key.settleStatus(answer.status, this.keys.now);
      return { answer, release: () => call.release() };
    } catch (thrown) {
      throw call.failed(thrown);
    }
  }
}

/** The body, each piece of which shows that the request goes on. */
const watched = (body: RequestStream, call: UpstreamCall): RequestStream => ({
  length: body.length,
  read() {
    call.sending();
    return body.read();
  },
});

/** What a key was refused with is asked again: else the refusal may have been about that. */
const asksAlike = (a: ProviderConfig, b: ProviderConfig): boolean =>
  a.auth === b.auth && sameConfig(a.headers, b.headers) && sameConfig(a.query, b.query);

function endTooLong({ name, timeouts }: ProviderConfig, abort: Abort): void {
  const seconds = Math.round(timeouts.totalMs / 1000);
  abort.abort(
    new GatewayError(
      'timeout',
      `Provider ${name} was not done after ${seconds} s (timeouts.total).`,
    ),
  );
}

/** The headers of this try with the name of its conversation, which clients of the vendor's own give themselves. */
function withSession(
  own: FlatHeaders | undefined,
  headers: ReadonlyHeaders,
  name: string,
  session: Session | undefined,
): FlatHeaders | undefined {
  if (headers.get(name) !== null) return own;
  const all = own ?? new FlatHeaders();
  all.set(name, sessionName(session?.hash ?? 0));
  return all;
}

/** The headers of this try with a flag that its body needs, beside those that it has. */
function withBeta(
  own: FlatHeaders | undefined,
  headers: ReadonlyHeaders,
  beta: string | undefined,
): FlatHeaders | undefined {
  if (beta === undefined) return own;
  const flags =
    headers
      .get('anthropic-beta')
      ?.split(',')
      .map((flag) => flag.trim()) ?? [];
  if (flags.includes(beta)) return own;
  const out = own ?? new FlatHeaders();
  out.set('anthropic-beta', [...flags, beta].join(','));
  return out;
}
