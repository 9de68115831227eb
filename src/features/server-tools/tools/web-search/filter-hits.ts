/** Filters an engine's hits: allowed domains only, each page once, up to the limit. */

import { withoutTrailing } from '../../../../lib/text/trim-end.ts';
import type { SearchHit, SearchQuery } from './engine.ts';

/** Reads a domain rule as clients write it: `example.com`, `https://docs.example.com/api`. */
export function readDomain(rule: string): { readonly host: string; readonly path: string } {
  const bare = rule
    .trim()
    .toLowerCase()
    .replace(/^[a-z]+:\/\//, '')
    .replace(/^\*\./, '');
  const slash = bare.indexOf('/');
  return slash < 0
    ? { host: bare, path: '' }
    : { host: bare.slice(0, slash), path: withoutTrailing(bare.slice(slash), '/') };
}

/** Is the page under the rule's domain (or a subdomain) and path? */
export function liesUnder(url: string, rule: string): boolean {
  if (!URL.canParse(url)) return false;
  const { hostname, pathname } = new URL(url);
  const { host, path } = readDomain(rule);
  if (host === '') return false;
  const under = hostname === host || hostname.endsWith(`.${host}`);
  return under && (path === '' || pathname === path || pathname.startsWith(`${path}/`));
}

export function filterHits(hits: readonly SearchHit[], query: SearchQuery): readonly SearchHit[] {
  const { allowedDomains = [], blockedDomains = [], count } = query;
  const seen = new Set<string>();
  return hits
    .filter(({ url }) => {
      if (allowedDomains.length > 0 && !allowedDomains.some((rule) => liesUnder(url, rule))) {
        return false;
      }
      if (blockedDomains.some((rule) => liesUnder(url, rule))) return false;
      const same = url.split('#', 1)[0]!.replace(/\/$/, '');
      if (seen.has(same)) return false;
      seen.add(same);
      return true;
    })
    .slice(0, count);
}
