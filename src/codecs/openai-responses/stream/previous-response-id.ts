/** Writes `previous_response_id` into a response object of a vendor that does not know the earlier response. */

import { splice } from '../../../lib/bytes/bytes.ts';
import { topLevel } from '../../../lib/json/json.ts';

const RESPONSE: ReadonlySet<string> = new Set(['response']);
const PREVIOUS: ReadonlySet<string> = new Set(['previous_response_id']);
const BRACE_OPEN = 0x7b;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** See `Codec.withPreviousResponseId`. Changes only these bytes, so that no field or number of the vendor is lost. */
export function withPreviousResponseId(json: string, id: string, of: 'answer' | 'frame'): string {
  if (of === 'frame' && !json.includes('"response"')) return json;
  const bytes = encoder.encode(json);
  let from = 0;
  let to = bytes.length;
  if (of === 'frame') {
    const response = topLevel(bytes, RESPONSE)?.get('response');
    if (response === undefined) return json;
    from = response.valueStart;
    to = response.valueEnd;
  }
  const object = bytes.subarray(from, to);
  const members = topLevel(object, PREVIOUS);
  if (members === undefined) return json;
  const text = JSON.stringify(id);
  const member = members.get('previous_response_id');
  if (member !== undefined) {
    const { valueStart, valueEnd } = member;
    return decoder.decode(splice(bytes, from + valueStart, from + valueEnd, text));
  }
  const at = from + object.indexOf(BRACE_OPEN) + 1;
  const rest = members.size === 0 ? '' : ',';
  return decoder.decode(splice(bytes, at, at, `"previous_response_id":${text}${rest}`));
}
