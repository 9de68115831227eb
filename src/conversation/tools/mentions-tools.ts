/** Whether a request's body holds any word of tools: several features ask that of the same bytes. */

import { containsAny, needles } from '../../lib/bytes/bytes.ts';

// `tools`, `tool_calls`, `tool_choice`, `functions`, `function_call`, and the role `tool`.
const NEEDLES = needles('"tool', '"function');
// A larger body takes long to search, and is not to be held on to only to spare that.
const MOST_HELD = 64 * 1024;

let last: { readonly body: Buffer; readonly found: boolean } | undefined;
const large = new WeakMap<Buffer, boolean>();

/** False: neither a key nor a value of the body begins with `tool` or `function`. */
export function mentionsTools(body: Buffer): boolean {
  const known = last?.body === body ? last.found : large.get(body);
  if (known !== undefined) return known;
  const found = containsAny(body, NEEDLES);
  if (body.length > MOST_HELD) large.set(body, found);
  else last = { body, found };
  return found;
}
