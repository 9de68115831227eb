/** Follows `previous` links back to the start of a conversation. */

import type { JsonObject } from '../../lib/json.ts';
import type { Link } from './row.ts';

/** All items oldest first, or the id of the link that is not there. */
export type Chain =
  | { readonly items: readonly JsonObject[]; readonly links: number }
  | { readonly missing: string };

/**
 * Input and output items of every link up to and with `id`, oldest first. A link that comes twice (a
 * damaged file) counts as missing, so the walk always ends.
 */
export function walkChain(id: string, read: (id: string) => Link | undefined): Chain {
  const links: Link[] = [];
  const seen = new Set<string>();
  for (let at: string | undefined = id; at !== undefined; ) {
    const link: Link | undefined = seen.has(at) ? undefined : read(at);
    if (link === undefined) return { missing: at };
    seen.add(at);
    links.push(link);
    at = link.previous;
  }
  const items: JsonObject[] = [];
  for (let i = links.length - 1; i >= 0; i--) {
    const link = links[i]!;
    for (const item of link.input) items.push(item);
    for (const item of link.output) items.push(item);
  }
  return { items, links: links.length };
}
