/** One provider at run time: its keys, its limits, and one try at sending a request there. */

import type { ProviderConfig } from '../config/config.ts';
import { GatewayError } from '../conversation/errors.ts';
import type { Abort } from '../lib/abort.ts';
import type { HeaderFields } from '../lib/header-list.ts';
import { watchSilence } from '../lib/silence.ts';
import { KeyRing, type LentKey } from './key-ring.ts';
import { UpstreamHeaders } from './request-headers.ts';
import { Slots } from './slots.ts';
import type { Transport, UpstreamAnswer } from './transport.ts';

export interface SendOptions {
  /** Appended to the base URL, e.g. `/chat/completions`. */
  readonly path: string;
  /** The client's query string, forwarded on the same protocol (`?beta=true`); '' or `?…`. */
  readonly search: string;
  readonly body: Uint8Array;
  readonly clientHeaders: HeaderFields;
  readonly sameProtocol: boolean;
  readonly stream: boolean;
  /** Aborts the try, before the headers and while the body streams. */
  readonly abort: Abort;
  /** Told what goes out, just before it does. */
  readonly onSend?: (url: string, headers: HeaderFields) => void;
  /** As the transport tells it. */
  readonly onConnected?: () => void;
}

export interface Sent {
  readonly answer: UpstreamAnswer;
  readonly key: LentKey;
  /** Gives the provider's slot back; call it when the body is done with. */
  release(): void;
}

class Answered implements Sent {
  readonly answer: UpstreamAnswer;
  readonly key: LentKey;
  readonly #release: () => void;
  readonly #limit: ReturnType<typeof setTimeout> | undefined;

  constructor(
    answer: UpstreamAnswer,
    key: LentKey,
    release: () => void,
    limit: ReturnType<typeof setTimeout> | undefined,
  ) {
    this.answer = answer;
    this.key = key;
    this.#release = release;
    this.#limit = limit;
  }

  release(): void {
    if (this.#limit !== undefined) clearTimeout(this.#limit);
    this.#release();
  }
}

export class Upstream {
  readonly config: ProviderConfig;
  readonly keys: KeyRing;
  readonly #transport: Transport;
  readonly #slots: Slots;
  readonly #query: string;
  readonly #headers = new UpstreamHeaders();
  #lastPath = '';
  #lastUrl = '';

  constructor(config: ProviderConfig, transport: Transport) {
    this.config = config;
    this.keys = new KeyRing(config.keys, config.retry.maxCooldownMs);
    this.#transport = transport;
    this.#slots = new Slots(config.transport.concurrency);
    this.#query = Object.entries(config.query)
      .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value.reveal())}`)
      .join('&');
  }

  /** The URL of a path here, with the query of the configuration and that of the client. */
  url(path: string, search: string): string {
    if (search === '' && this.#query === '') {
      // The very string each time: whoever keeps what was made of it need not compare it.
      if (this.#lastPath !== path) {
        this.#lastPath = path;
        this.#lastUrl = this.config.baseUrl + path;
      }
      return this.#lastUrl;
    }
    const queries = [this.#query, search.replace(/^\?/, '')].filter((part) => part !== '');
    return this.config.baseUrl + path + (queries.length > 0 ? `?${queries.join('&')}` : '');
  }

  /**
   * One try. Resolves with an answer of any status.
   * @throws GatewayError timeout, or upstream when nothing answered; the abort's reason when aborted
   */
  async send(options: SendOptions): Promise<Sent> {
    const { abort } = options;
    const taken = this.#slots.take(abort);
    const release = typeof taken === 'function' ? taken : await taken;
    const key = this.keys.lend();
    const { config } = this;
    const { totalMs } = config.timeouts;
    const limit = totalMs > 0 ? setTimeout(() => abort.abort(tooLong(config)), totalMs) : undefined;
    let late = false;
    const watch = watchSilence(config.timeouts.firstByteMs, () => {
      late = true;
      abort.abort(new Error('no answer in time'));
    });
    try {
      const url = this.url(options.path, options.sameProtocol ? options.search : '');
      const headers = this.#headers.of({
        client: options.clientHeaders,
        sameProtocol: options.sameProtocol,
        protocol: config.protocol,
        auth: config.auth,
        key: key.text,
        stream: options.stream,
        extra: config.headers,
      });
      options.onSend?.(url, headers);
      const answer = await this.#transport({
        url,
        method: 'POST',
        headers,
        body: options.body,
        abort,
        onConnected: options.onConnected,
      });
      return new Answered(answer, key, release, limit);
    } catch (thrown) {
      clearTimeout(limit);
      release();
      if (abort.reason instanceof GatewayError) throw abort.reason;
      if (late) {
        const seconds = Math.round(config.timeouts.firstByteMs / 1000);
        throw new GatewayError(
          'timeout',
          `Provider ${config.name} did not begin to answer within ${seconds} s.`,
          { cause: thrown },
        );
      }
      throw connectionError(config.name, thrown);
    } finally {
      watch.stop();
    }
  }
}

const tooLong = ({ name, timeouts }: ProviderConfig) =>
  new GatewayError(
    'timeout',
    `Provider ${name} was not done after ${Math.round(timeouts.totalMs / 1000)} s (timeouts.total).`,
  );

/** A failure to connect, in words that name the provider but no URL (which may hold a key). */
export function connectionError(provider: string, thrown: unknown): GatewayError {
  const code = (thrown as { code?: unknown } | null)?.code;
  const words = typeof code === 'string' ? code : 'no connection';
  return new GatewayError('upstream', `Provider ${provider} could not be reached (${words}).`, {
    cause: thrown,
  });
}
