/** The answers of `count_tokens`: a number of this gateway's, or what the vendor said. */

import type { Codec } from '../../codecs/codec.ts';
import { FlatHeaders } from '../../lib/http/headers.ts';
import { nativeHeaders } from '../../lib/http/native-headers.ts';
import { forwardedHeaders, type OwnHeaders, ownHeaders } from '../response-headers.ts';
import type { Count } from './upstream-count.ts';

/** A number in the client's protocol. */
export function countAnswer(protocol: Codec, tokens: number, own: OwnHeaders): Response {
  const headers = ownHeaders(FlatHeaders.of({ 'content-type': 'application/json' }), own);
  const body = protocol.encodeCount?.(tokens) ?? { input_tokens: tokens };
  return new Response(JSON.stringify(body), { headers: nativeHeaders(headers) });
}

/** The vendor's own answer, in the client's protocol already. */
export function vendorAnswer(
  { status, headers, bytes }: Count,
  secrets: readonly string[],
  own: OwnHeaders,
): Response {
  const all = ownHeaders(forwardedHeaders(headers, secrets), own);
  return new Response(bytes as Uint8Array<ArrayBuffer>, { status, headers: nativeHeaders(all) });
}
