/** The limit of the output that every request but a count has: put into a count's body for the decoder, and taken out again. */

import { splice } from '../../lib/bytes/bytes.ts';
import type { Exchange } from '../types.ts';

const OUTPUT_CAP = '"max_tokens":1,';

/** The body of a count request as the codec reads it: it has no `max_tokens`, which is wanted of every other one. */
export function countedBody({ body, protocol }: Pick<Exchange, 'body' | 'protocol'>): Uint8Array {
  if (protocol.addressed !== undefined) return body;
  const brace = body.indexOf(0x7b);
  return brace < 0 ? body : splice(body, brace + 1, brace + 1, OUTPUT_CAP);
}

/** The body as the client sent it (but for the model): the cap stands right behind the first brace. */
export function withoutOutputCap(body: Uint8Array): Uint8Array {
  const brace = body.indexOf(0x7b);
  return splice(body, brace + 1, brace + 1 + OUTPUT_CAP.length, '');
}
