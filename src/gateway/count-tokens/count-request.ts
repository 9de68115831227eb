/** A request for a count: a body without the output limit that every other request has, and an address. */

import type { Codec } from '../../codecs/codec.ts';
import type { ProtocolName } from '../../conversation/types.ts';
import { splice } from '../../lib/bytes/bytes.ts';
import { topLevel } from '../../lib/json/json.ts';
import type { SendOptions } from '../../upstream/upstream.ts';
import type { Exchange } from '../types.ts';

const OUTPUT_CAP = '"max_tokens":1,';
const CAP: ReadonlySet<string> = new Set(['max_tokens']);

/**
 * The body of a count request as the codec reads it: mostly it has no `max_tokens`, which is wanted of every other
 * one.
 */
export function countedBody({ body, protocol }: Pick<Exchange, 'body' | 'protocol'>): Uint8Array {
  if (protocol.addressed !== undefined) return body;
  const brace = body.indexOf(0x7b);
  if (topLevel(body, CAP)?.has('max_tokens') === true) return body;
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

/** The cap stands right behind the first brace, where the client gave none. */
function withoutOutputCap(body: Uint8Array): Uint8Array {
  const start = body.indexOf(0x7b) + 1;
  const end = start + OUTPUT_CAP.length;
  return Buffer.from(body.subarray(start, end)).toString() === OUTPUT_CAP
    ? splice(body, start, end, '')
    : body;
}
