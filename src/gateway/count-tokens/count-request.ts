/** What a request for a count is: a body without the limit of the output that every other request has, and an address. */

import type { Codec } from '../../codecs/codec.ts';
import type { ProtocolName } from '../../conversation/types.ts';
import { splice } from '../../lib/bytes/bytes.ts';
import type { SendOptions } from '../../upstream/upstream.ts';
import type { Exchange } from '../types.ts';

const OUTPUT_CAP = '"max_tokens":1,';

/** The body of a count request as the codec reads it: it has no `max_tokens`, which is wanted of every other one. */
export function countedBody({ body, protocol }: Pick<Exchange, 'body' | 'protocol'>): Uint8Array {
  if (protocol.addressed !== undefined) return body;
  const brace = body.indexOf(0x7b);
  return brace < 0 ? body : splice(body, brace + 1, brace + 1, OUTPUT_CAP);
}

/** Where a protocol's vendors count, below its path; left out: `count_tokens`. */
const COUNTS: Partial<Record<ProtocolName, string>> = { 'openai-responses': 'input_tokens' };

/** Where a vendor of the client's protocol counts, and the body as the client sent it (but for the model). */
export const countRequest = (
  protocol: Codec,
  body: Uint8Array,
  model: string,
): Pick<SendOptions, 'path' | 'query' | 'body'> =>
  protocol.addressed?.(body, model, 'count') ?? {
    path: `${protocol.upstreamPath}/${COUNTS[protocol.name] ?? 'count_tokens'}`,
    body: withoutOutputCap(body),
  };

/** The cap stands right behind the first brace. */
function withoutOutputCap(body: Uint8Array): Uint8Array {
  const brace = body.indexOf(0x7b);
  return splice(body, brace + 1, brace + 1 + OUTPUT_CAP.length, '');
}
