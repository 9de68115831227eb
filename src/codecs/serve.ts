/** How the plugin of a codec hands a request to the gateway. */

import type { Codec } from './codec.ts';

/** What a request says outside its body, in protocols that put it there. */
export interface Asked {
  /**
   * The body with what the URL says, so that it says everything.
   * @throws GatewayError invalid_request
   */
  body(bytes: Uint8Array): Uint8Array;
  /** The query that may be forwarded: without credentials. `''` or `?…`. */
  readonly search: string;
  /** The client's key, where the query holds it. */
  readonly key?: string;
}

/** Answers a request in the protocol of this codec; never rejects. `asked` left out: the body says everything. */
export type Serve = (request: Request, codec: Codec, asked?: Asked) => Promise<Response>;
