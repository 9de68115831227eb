/** A client's request as the gateway gets it. */

import type { Codec } from '../codecs/codec.ts';
import type { Payer, TryAccount } from '../conversation/account/payer.ts';
import type { Principal } from '../keys/principal.ts';
import type { ReadonlyHeaders } from '../lib/http/headers.ts';
import type { ExchangeTrace } from '../telemetry/trace.ts';
import type { ClientLane } from './stream/client-lane.ts';

export type { Account } from './account.ts';
export type { Payer, TryAccount };

/** One exchange: a client's request and all that is done to answer it. */
export interface Exchange {
  /** `req_…` */
  readonly id: string;
  readonly protocol: Codec;
  readonly body: Uint8Array;
  readonly headers: ReadonlyHeaders;
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
  /** The path that the client asked for, without query; left out: the exchange came over no HTTP of its own. */
  readonly path?: string;
  /** Left out: exchanges are not traced. */
  readonly trace?: ExchangeTrace | undefined;
  /** Where the client asks on a WebSocket; the answer's stream goes there. */
  readonly lane?: ClientLane | undefined;
}

/** Answers an exchange. Never rejects: every failure is a response in the client's protocol. */
export type Gateway = (exchange: Exchange) => Promise<Response>;
