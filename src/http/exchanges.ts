/** From an HTTP request to an exchange, with everything that can be wrong about it said in its own protocol. */

import { asGatewayError, type GatewayError } from '../conversation/errors.ts';
import { errorResponse } from '../gateway/error-response.ts';
import type { Exchange } from '../gateway/exchange.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { HeaderList } from '../lib/header-list.ts';
import { requestId } from '../lib/ids.ts';
import { turnEnd } from '../lib/turn-end.ts';
import type { Protocol, Serve } from '../protocols/protocol.ts';
import type { Access } from './access.ts';
import { readBody } from './read-body.ts';

export interface ExchangesOptions {
  readonly access: () => Access;
  readonly bodyBytes: () => number;
  /** Told of requests that never became an exchange. */
  readonly onRefused: (
    request: Request,
    protocol: Protocol,
    id: string,
    error: GatewayError,
  ) => void;
}

/** A handler that opens an exchange and hands it on. Never rejects. */
export function serveWith(options: ExchangesOptions, handle: Gateway): Serve {
  return async (request, protocol) => {
    const started = performance.now();
    const id = requestId();
    try {
      const headers = HeaderList.from(request.headers);
      const owner = options.access()(headers);
      const read = await readBody(request, headers, options.bodyBytes());
      // What came in the same turn goes on together.
      await turnEnd();
      const exchange: Exchange = {
        id,
        protocol,
        body: read instanceof Uint8Array ? read : Buffer.from(read),
        headers,
        search: search(request.url),
        signal: request.signal,
        owner,
        started,
      };
      return await handle(exchange);
    } catch (thrown) {
      const error = asGatewayError(thrown);
      options.onRefused(request, protocol, id, error);
      return errorResponse(protocol, error, {
        requestId: id,
        target: undefined,
        notes: undefined,
      });
    }
  };
}

function search(url: string): string {
  const at = url.indexOf('?');
  return at < 0 ? '' : url.slice(at);
}
