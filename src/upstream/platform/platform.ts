/** The interface of a cloud's platform: the same protocol in another envelope, with credentials of its own. */

import type { ReadonlyHeaders } from '../../lib/http/headers.ts';
import type { UpstreamAnswer, UpstreamRequest } from '../transport.ts';

/** A request as the vendor itself would get it. */
export interface PlatformRequest {
  /** The protocol's path behind the base URL: `/v1/messages`. */
  readonly path: string;
  /** The URL of a path at this provider. `withSearch`: with the client's query too. */
  readonly url: (path: string, withSearch: boolean) => string;
  /** Its URL is the vendor's, and counts for nothing here. */
  readonly request: UpstreamRequest;
  readonly stream: boolean;
  /** Called just before the request goes out. */
  readonly onSend?: ((url: string, headers: ReadonlyHeaders) => void) | undefined;
}

export interface Platform {
  /**
   * Sends the request in the platform's form, and gives its answer in the protocol's own, errors included.
   * @throws GatewayError where there are no credentials; otherwise as a transport does
   */
  send(request: PlatformRequest): Promise<UpstreamAnswer>;
  /** Gets credentials, as a request would. What they are, in words. @throws GatewayError where there are none */
  authorize(): Promise<string>;
}
