/** One exchange: a client's request and all that is done to answer it. */

import type { Codec } from '../codecs/codec.ts';
import type { ReadonlyHeaders } from '../lib/http/headers.ts';
import type { ExchangeOutcome } from '../samples/recording.ts';

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
  /** Who asks: the name of the gateway key, '' without auth. What is stored belongs to it. */
  readonly owner: string;
  /** `performance.now()` when the request came. */
  readonly started: number;
}

/** What happened, told once when it is over. */
export interface Summary extends ExchangeOutcome {
  readonly exchange: Exchange;
  /** Milliseconds until its turn came. */
  readonly queue: number | undefined;
}
