/** A client's request over HTTP as an exchange. */

import type { Codec } from '../codecs/codec.ts';
import type { Asked } from '../codecs/serve.ts';
import type { GatewayError } from '../conversation/errors.ts';
import type { EntryName } from '../conversation/models/endpoint-names.ts';
import { sessionOf } from '../conversation/session/session-id.ts';
import type { ClientLane } from '../gateway/stream/client-lane.ts';
import type { Exchange, FormSource } from '../gateway/types.ts';
import type { Principal } from '../keys/principal.ts';
import type { FlatHeaders } from '../lib/http/headers.ts';
import type { ExchangeTrace } from '../telemetry/trace.ts';
import type { Connections, Cuttable, Held } from './connections.ts';

type Read = Pick<
  Exchange,
  'id' | 'entry' | 'body' | 'form' | 'principal' | 'started' | 'address' | 'trace' | 'lane'
> & {
  readonly headers: FlatHeaders;
  readonly held: Held | undefined;
  readonly asked: Asked | undefined;
  readonly connections: Pick<Connections, 'follow' | 'unfollow'>;
};

export class HttpExchange implements Exchange, Cuttable {
  readonly id: string;
  readonly protocol: Codec;
  readonly entry: EntryName | undefined;
  readonly body: Uint8Array;
  readonly form: FormSource | undefined;
  readonly headers: FlatHeaders;
  readonly search: string;
  readonly principal: Principal;
  readonly owner: string;
  readonly started: number;
  readonly address: string | undefined;
  readonly trace: ExchangeTrace | undefined;
  readonly lane: ClientLane | undefined;
  readonly request: Request;
  /** What {@link Connections.begun} counts. */
  readonly held: Held | undefined;
  readonly #connections: Read['connections'];
  #sessionId: string | undefined;
  #abort: AbortController | undefined;
  #over = false;

  constructor(request: Request, protocol: Codec, read: Read) {
    this.id = read.id;
    this.protocol = protocol;
    this.entry = read.entry;
    this.body = read.body;
    this.form = read.form;
    this.headers = read.headers;
    this.search = read.asked?.search ?? search(request.url);
    this.principal = read.principal;
    this.owner = read.principal.id;
    this.started = read.started;
    this.held = read.held;
    this.address = read.address;
    this.trace = read.trace;
    this.lane = read.lane;
    this.request = request;
    this.#connections = read.connections;
  }

  get sessionId(): string {
    this.#sessionId ??= sessionOf(this.headers, this.body);
    return this.#sessionId;
  }

  // Only spans name it.
  get path(): string {
    return new URL(this.request.url).pathname;
  }

  // Made when it is first read, and aborted even then when the client has gone before.
  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController();
      const { signal } = this.request;
      if (signal.aborted) this.#abort.abort(signal.reason);
      else {
        signal.addEventListener('abort', this);
        if (!this.#over) this.#connections.follow(this);
      }
    }
    return this.#abort.signal;
  }

  /** The client has gone. */
  handleEvent(): void {
    this.#abort?.abort(this.request.signal.reason);
  }

  cut(error: GatewayError): void {
    this.#abort?.abort(error);
  }

  /** Nothing more is done for it. */
  ended(): void {
    this.#over = true;
    if (this.#abort !== undefined) this.#connections.unfollow(this);
  }
}

function search(url: string): string {
  const at = url.indexOf('?');
  return at < 0 ? '' : url.slice(at);
}
