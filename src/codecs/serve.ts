/** How the plugin of a codec hands a request to the gateway. */

import type { Codec } from './codec.ts';

/** Answers a request in the protocol of this codec; never rejects. */
export type Serve = (request: Request, codec: Codec) => Promise<Response>;
