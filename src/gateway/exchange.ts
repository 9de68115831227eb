/** One exchange: a client's request and all that is done to answer it. */

import type { GatewayError } from '../conversation/errors.ts';
import type { Note } from '../conversation/notes.ts';
import type { Target } from '../conversation/target.ts';
import type { Usage } from '../conversation/usage.ts';
import type { Protocol } from '../protocols/protocol.ts';

export interface Exchange {
  /** `req_…` */
  readonly id: string;
  readonly protocol: Protocol;
  readonly body: Uint8Array;
  readonly headers: Headers;
  /** The query string, `''` or `?…`. */
  readonly search: string;
  /** Fires when the client goes away. */
  readonly signal: AbortSignal;
  /** Who asks: the name of the gateway key, '' without auth. What is stored belongs to it. */
  readonly owner: string;
  /** `performance.now()` when the request came. */
  readonly started: number;
}

/** What happened, told once when it is over. Times in ms since the exchange started. */
export interface Summary {
  readonly exchange: Exchange;
  /** The model that was asked for; undefined when the body could not be read. */
  readonly model: string | undefined;
  readonly target: Target | undefined;
  /** Of the HTTP response; 499 when the client went away first. */
  readonly status: number;
  readonly stream: boolean;
  /** Until its turn came. */
  readonly queue: number | undefined;
  readonly firstByte: number | undefined;
  readonly total: number;
  readonly tries: number;
  /** Requests that made up the answer, retries not counted. */
  readonly hops: number;
  readonly usage: Usage | undefined;
  readonly notes: readonly Note[];
  /** Why it failed, also when that was after the first byte. */
  readonly error: GatewayError | undefined;
}
