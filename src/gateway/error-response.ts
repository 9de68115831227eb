/** An error as a response in the client's own protocol. */

import type { Codec } from '../codecs/codec.ts';
import type { GatewayError } from '../conversation/errors.ts';
import { FlatHeaders } from '../lib/http/headers.ts';
import { nativeHeaders } from '../lib/http/native-headers.ts';
import { type OwnHeaders, ownHeaders } from './response-headers.ts';

/** The parts of the response, for a caller that adds headers before it goes out. */
export function errorParts(
  protocol: Codec,
  error: GatewayError,
  own: OwnHeaders,
): { status: number; headers: FlatHeaders; body: string } {
  const { status, headers, body } = protocol.encodeError(error, own.requestId);
  const all = FlatHeaders.of({ ...error.headers, ...headers });
  all.set('content-type', 'application/json');
  return { status, headers: ownHeaders(all, own), body: JSON.stringify(body) };
}

/** The response: status, headers and body as the codec writes the error, with the headers of every answer. */
export function errorResponse(protocol: Codec, error: GatewayError, own: OwnHeaders): Response {
  const { status, headers, body } = errorParts(protocol, error, own);
  return new Response(body, { status, headers: nativeHeaders(headers) });
}
