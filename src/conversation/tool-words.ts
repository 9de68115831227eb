/** Whether a request's body holds any word of tools: several features ask that of the same bytes. */

import { holdsAny, marks } from '../lib/bytes.ts';

// `tools`, `tool_calls`, `tool_choice`, `functions`, `function_call`, and the role `tool`.
const WORDS = marks('"tool', '"function');
// A larger body is not held on to only to spare a search.
const MOST_HELD = 64 * 1024;

let last: { readonly body: Buffer; readonly found: boolean } | undefined;

/** False: neither a key nor a value of the body begins with `tool` or `function`. */
export function mentionsTools(body: Buffer): boolean {
  if (last?.body === body) return last.found;
  const found = holdsAny(body, WORDS);
  last = body.length <= MOST_HELD ? { body, found } : undefined;
  return found;
}
