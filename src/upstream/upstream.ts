/** One provider at run time: its keys, its limits, and one try at sending a request there. */

import type { ProviderConfig } from '../config/sections/providers.ts';
import { GatewayError } from '../conversation/errors.ts';
import type { ReadonlyHeaders } from '../lib/http/headers.ts';
import type { Abort } from '../lib/loop/abort.ts';
import { type IdleTimer, startIdleTimer } from '../lib/loop/idle-timer.ts';
import { ConcurrencyLimit } from './concurrency-limit.ts';
import { NotConnected } from './http1/connection.ts';
import { MalformedReply } from './http1/response-parser.ts';
import { KeyRing, type LentKey } from './key-ring.ts';
import { UpstreamHeaders } from './request-headers.ts';
import { sameConfig } from './same-config.ts';
import { TargetError } from './target-error.ts';
import type { RequestStream, Transport, UpstreamAnswer, UpstreamRequest } from './transport.ts';

export interface SendOptions {
  /** Appended to the base URL, e.g. `/chat/completions`. */
  readonly path: string;
  /** The client's query string, forwarded on the same protocol (`?beta=true`); '' or `?…`. */
  readonly search: string;
  /** Left out: `POST`. */
  readonly method?: UpstreamRequest['method'];
  /** Left out: a request without one. */
  readonly body?: UpstreamRequest['body'];
  /** Of the body; left out: JSON. */
  readonly contentType?: string;
  readonly clientHeaders: ReadonlyHeaders;
  readonly sameProtocol: boolean;
  readonly stream: boolean;
  /** Aborts the try, before the headers and while the body streams. */
  readonly abort: Abort;
  /** Called just before the request goes out. */
  readonly onSend?: (url: string, headers: ReadonlyHeaders) => void;
  /** As {@link UpstreamRequest.onConnected}. */
  readonly onConnected?: () => void;
}

export interface Sent {
  readonly answer: UpstreamAnswer;
  /** As {@link UpstreamCall.release}. */
  release(): void;
}

/** One try at sending a request: the slot it takes, the key it uses, and the limits on its time. */
export class UpstreamCall {
  readonly key: LentKey;
  readonly #config: ProviderConfig;
  readonly #abort: Abort;
  readonly #release: () => void;
  readonly #limit: ReturnType<typeof setTimeout> | undefined;
  readonly #idleTimer: IdleTimer;
  #late = false;

  constructor(config: ProviderConfig, key: LentKey, abort: Abort, release: () => void) {
    this.#config = config;
    this.key = key;
    this.#abort = abort;
    this.#release = release;
    const { totalMs, firstByteMs } = config.timeouts;
    this.#limit = totalMs > 0 ? setTimeout(() => abort.abort(tooLong(config)), totalMs) : undefined;
    this.#idleTimer = startIdleTimer(firstByteMs, () => {
      this.#late = true;
      abort.abort(new Error('no answer in time'));
    });
  }

  /** A part of the request goes out: the upstream is not late yet. */
  sending(): void {
    this.#idleTimer.touch();
  }

  /** The answer's head has come. */
  answered(): void {
    this.#idleTimer.stop();
  }

  /** No answer came: gives everything back. What to throw instead of what was thrown. */
  failed(thrown: unknown): unknown {
    this.#idleTimer.stop();
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

  /** Gives the provider's slot back; call it when the body is done with. */
  release(): void {
    if (this.#limit !== undefined) clearTimeout(this.#limit);
    this.#release();
  }
}

export class Upstream {
  readonly config: ProviderConfig;
  readonly keys: KeyRing;
  readonly #transport: Transport;
  readonly #slots: ConcurrencyLimit;
  readonly #query: string;
  readonly #headers = new UpstreamHeaders();
  #lastPath = '';
  #lastUrl = '';

  /**
   * `before`: this provider by the configuration before this one. Requests that it still runs hold their slots
   * here too, and the other way round.
   */
  constructor(config: ProviderConfig, transport: Transport, before?: Upstream) {
    const { concurrency } = config.transport;
    // Another place has room of its own, and has refused no key yet.
    const last = before?.config.baseUrl === config.baseUrl ? before : undefined;
    const asLast = last !== undefined && asksAlike(last.config, config);
    this.config = config;
    this.keys = new KeyRing(
      config.keys,
      config.retry.maxCooldownMs,
      asLast ? last.keys : undefined,
    );
    this.#transport = transport;
    this.#slots = last === undefined ? new ConcurrencyLimit(concurrency) : last.#slots;
    this.#slots.resize(concurrency);
    this.#query = Object.entries(config.query)
      .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value.reveal())}`)
      .join('&');
  }

  /** The URL of a path here, with the query of the configuration and that of the client. */
  url(path: string, search: string): string {
    if (search === '' && this.#query === '') {
      // The very string each time: what is cached for it is found by identity.
      if (this.#lastPath !== path) {
        this.#lastPath = path;
        this.#lastUrl = this.config.baseUrl + path;
      }
      return this.#lastUrl;
    }
    const queries = [this.#query, search.replace(/^\?/, '')].filter((part) => part !== '');
    return this.config.baseUrl + path + (queries.length > 0 ? `?${queries.join('&')}` : '');
  }

  /** A try that began now would have to wait. */
  get full(): boolean {
    return this.#slots.full;
  }

  /** The beginning of a try; waits where all slots are taken. Rejects with the abort's reason. */
  acquire(abort: Abort): UpstreamCall | Promise<UpstreamCall> {
    const taken = this.#slots.take(abort);
    return typeof taken === 'function'
      ? new UpstreamCall(this.config, this.keys.lease(), abort, taken)
      : taken.then((release) => new UpstreamCall(this.config, this.keys.lease(), abort, release));
  }

  /** What goes out, and the answer of any status. The caller reports the result to `call`. */
  sendRequest(call: UpstreamCall, options: SendOptions): Promise<UpstreamAnswer> {
    const { config } = this;
    const url = this.url(options.path, options.sameProtocol ? options.search : '');
    const headers = this.#headers.of({
      client: options.clientHeaders,
      sameProtocol: options.sameProtocol,
      protocol: config.protocol,
      auth: config.auth,
      key: call.key.text,
      stream: options.stream,
      contentType: options.contentType,
      extra: config.headers,
    });
    options.onSend?.(url, headers);
    const { body } = options;
    return this.#transport({
      url,
      method: options.method ?? 'POST',
      headers,
      body: body === undefined || body instanceof Uint8Array ? body : watched(body, call),
      abort: options.abort,
      onConnected: options.onConnected,
      limits: config.answers,
    });
  }

  /**
   * One try as a whole. Resolves with an answer of any status.
   * @throws GatewayError timeout, or upstream when nothing answered; the abort's reason when aborted
   */
  async send(options: SendOptions): Promise<Sent> {
    const call = await this.acquire(options.abort);
    try {
      const answer = await this.sendRequest(call, options);
      call.answered();
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

const tooLong = ({ name, timeouts }: ProviderConfig) =>
  new GatewayError(
    'timeout',
    `Provider ${name} was not done after ${Math.round(timeouts.totalMs / 1000)} s (timeouts.total).`,
  );

// The server cannot be reached, and will not be a moment later.
const UNREACHED =
  /^(?:ECONNREFUSED|ENOTFOUND|EAI_|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|ConnectionRefused|FailedToOpenSocket|DNS|CERT_|UNABLE_TO|DEPTH_|SELF_SIGNED|ERR_TLS)/;

/** A failure to connect, in words that name the provider but no URL (which may hold a key). */
export function connectionError(provider: string, thrown: unknown): GatewayError {
  const cause = { cause: thrown };
  if (thrown instanceof NotConnected) {
    const seconds = thrown.ms / 1000;
    const words = `Provider ${provider} could not be reached within ${seconds} s (timeouts.connect).`;
    return new TargetError('elsewhere', 'timeout', words, cause);
  }
  if (thrown instanceof MalformedReply) {
    const words = `Provider ${provider} sent no proper HTTP answer: ${thrown.message}.`;
    return thrown.message.includes('limits.')
      ? new TargetError('next-target', 'upstream', words, { ...cause, retryable: false })
      : new GatewayError('upstream', words, cause);
  }
  const limit = exhausted();
  if (limit !== undefined) {
    const words = `Provider ${provider} could not be reached: no file can be opened any more (${limit}).`;
    return new GatewayError('upstream', words, cause);
  }
  const code = (thrown as { code?: unknown } | null)?.code;
  const known = typeof code === 'string' ? code : undefined;
  const words = `Provider ${provider} could not be reached (${known ?? 'no connection'}).`;
  return known !== undefined && UNREACHED.test(known)
    ? new TargetError('elsewhere', 'upstream', words, cause)
    : new GatewayError('upstream', words, cause);
}

/** The limit on open files that has been reached: the system reports what fails then as another error. */
function exhausted(): string | undefined {
  const { closeSync, openSync } = process.getBuiltinModule('node:fs');
  try {
    closeSync(openSync('/dev/null', 'r'));
  } catch (thrown) {
    const { code } = thrown as { code?: unknown };
    if (code === 'EMFILE') return 'EMFILE: the limit of this process, see ulimit -n or LimitNOFILE';
    if (code === 'ENFILE') return 'ENFILE: the limit of this machine, see fs.file-max';
  }
  return undefined;
}
