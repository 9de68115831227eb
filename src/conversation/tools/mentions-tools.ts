/** Does a request body mention tools? Several features ask this about the same bytes. */

import { containsAny, needles } from '../../lib/bytes/bytes.ts';

// `tools`, `tool_calls`, `tool_choice`, `functions`, `function_call`, and the role `tool`.
const NEEDLES = needles('"tool', '"function');
// A strong reference would keep a large body alive, so results for large bodies are stored by weak reference.
const MAX_HELD = 64 * 1024;

let last: { readonly body: Buffer; readonly found: boolean } | undefined;
const large = new WeakMap<Buffer, boolean>();

/** False: neither a key nor a value of the body begins with `tool` or `function`. */
export function mentionsTools(body: Buffer): boolean {
  const known = last?.body === body ? last.found : large.get(body);
  if (known !== undefined) return known;
  const found = containsAny(body, NEEDLES);
  if (body.length > MAX_HELD) large.set(body, found);
  else last = { body, found };
  return found;
}
