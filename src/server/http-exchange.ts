/** A client's request over HTTP as an exchange. */

import type { Codec } from '../codecs/codec.ts';
import type { Asked } from '../codecs/serve.ts';
import type { EntryName } from '../conversation/models/endpoint-names.ts';
import { sessionOf } from '../conversation/session/session-id.ts';
import type { ClientLane } from '../gateway/stream/client-lane.ts';
import type { Exchange, FormSource } from '../gateway/types.ts';
import type { Principal } from '../keys/principal.ts';
import type { FlatHeaders } from '../lib/http/headers.ts';
import { withFirstMembers, withoutMembers } from '../lib/json/body-members.ts';
import type { ExchangeTrace } from '../telemetry/trace.ts';
import type { Held } from './connections.ts';

type Read = Pick<
  Exchange,
  'id' | 'entry' | 'body' | 'form' | 'principal' | 'started' | 'address' | 'trace' | 'lane'
> & {
  readonly headers: FlatHeaders;
  readonly held: Held | undefined;
  readonly asked: Asked | undefined;
  /** Aborts when the gateway ends what still runs. */
  readonly cutting: AbortSignal;
};

export class HttpExchange implements Exchange {
  readonly id: string;
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
  /** What {@link Connections.begun} counts. */
  readonly held: Held | undefined;
  readonly #cutting: AbortSignal;
  #sessionId: string | undefined;
  #signal: AbortSignal | undefined;

  constructor(
    readonly request: Request,
    readonly protocol: Codec,
    read: Read,
  ) {
    this.id = read.id;
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
    this.#cutting = read.cutting;
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
    this.#signal ??= AbortSignal.any([this.request.signal, this.#cutting]);
    return this.#signal;
  }
}

function search(url: string): string {
  const at = url.indexOf('?');
  return at < 0 ? '' : url.slice(at);
}

/** The model in the path of a client of Azure stands for the one in the body, which may have none. */
export function askedAtDeployment(request: Request): Asked | undefined {
  const { deployment } = request as { deployment?: string };
  return deployment === undefined ? undefined : askedOf(deployment);
}

function askedOf(deployment: string): Asked {
  const member = `"model":${JSON.stringify(deployment)}`;
  return {
    body: (bytes) => withFirstMembers(withoutMembers(bytes, MODEL), member),
    search: '',
  };
}

const MODEL: ReadonlySet<string> = new Set(['model']);
