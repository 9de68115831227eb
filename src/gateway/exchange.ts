/** A client's request as the gateway gets it. */

import type { Codec } from '../codecs/codec.ts';
import type { Payer, Spent, TryAccount } from '../conversation/account/payer.ts';
import type { Principal } from '../keys/principal.ts';
import type { ReadonlyHeaders } from '../lib/http/headers.ts';
import type { EntryName } from '../samples/recording.ts';
import type { ExchangeTrace } from '../telemetry/trace.ts';
import type { ClientLane } from './stream/client-lane.ts';

export type { Account } from './account.ts';
export type { Payer, Spent, TryAccount };

/** The body of a form while it comes from the client. */
export interface FormSource {
  /** Bytes of the whole, as the client says; undefined: it does not say. */
  readonly length: number | undefined;
  /**
   * The next chunk; undefined at the end.
   * @throws GatewayError too_large (413), or what the runtime throws when the client goes away
   */
  read(): Promise<Uint8Array | undefined>;
  /** From here on the vendor sets the pace: the client may be kept waiting. */
  endTimeLimit(): void;
  /** The rest is not read. Safe at any time. */
  cancel(): void;
}

/** One exchange: a client's request and all that is done to answer it. */
export interface Exchange {
  /** `req_…` */
  readonly id: string;
  readonly protocol: Codec;
  /** In logs, metrics and samples; left out: the name of the protocol. */
  readonly entry?: EntryName | undefined;
  readonly body: Uint8Array;
  /** The body, where it is a form; `body` is empty then. */
  readonly form?: FormSource | undefined;
  readonly headers: ReadonlyHeaders;
  /** The client's session id, '' when it sends none; searched for when it is first read. */
  readonly sessionId: string;
  /** The query string, `''` or `?…`. */
  readonly search: string;
  /** Fires when the client goes away. */
  readonly signal: AbortSignal;
  /** Who asks. */
  readonly principal: Principal;
  /** The principal's id, '' without auth. What is stored belongs to it. */
  readonly owner: string;
  /** Asked by another exchange: what it costs goes on the account of that one. */
  readonly payer?: Payer | undefined;
  /** `performance.now()` when the request came. */
  readonly started: number;
  /** The client's address; left out where it is not asked for. */
  readonly address?: string | undefined;
  /** The path that the client asked for, without query; left out: the exchange came over no HTTP of its own. */
  readonly path?: string;
  /** Left out: exchanges are not traced. */
  readonly trace?: ExchangeTrace | undefined;
  /** Where the client asks on a WebSocket; the answer's stream goes there. */
  readonly lane?: ClientLane | undefined;
}

/** Answers an exchange. Never rejects: every failure is a response in the client's protocol. */
export type Gateway = (exchange: Exchange) => Promise<Response>;
