/** DuckDuckGo's page without scripts: no key, no promise; throttling answers 202. */

import { get, type HttpEngine, withSites } from '../engine.ts';
import { hit, plain } from '../fields.ts';

const TIME = { day: 'd', week: 'w', month: 'm', year: 'y' } as const;
const AGENT =
  'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0 Safari/537.36';

const RESULT = /<div[^>]*class="[^"]*\bresult\b(?![-_])[^"]*"/g;
const LINK = /<a[^>]*class="[^"]*result__a[^"]*"[^>]*href="([^"]+)"[^>]*>([\s\S]*?)<\/a>/;
const LINK_TURNED = /<a[^>]*href="([^"]+)"[^>]*class="[^"]*result__a[^"]*"[^>]*>([\s\S]*?)<\/a>/;
const SNIPPET = /class="[^"]*result__snippet[^"]*"[^>]*>([\s\S]*?)<\/(?:a|div|td)>/;

export const duckduckgo: HttpEngine = {
  type: 'duckduckgo',
  baseUrl: 'https://html.duckduckgo.com',
  needsKey: false,
  html: true,
  refusals: [202],
  request: (query, { baseUrl, options }) =>
    get(
      `${baseUrl}/html/`,
      { accept: 'text/html', 'user-agent': AGENT },
      { q: withSites(query), df: query.recency && TIME[query.recency] },
      options,
    ),
  read: (body, { count }) => {
    const page = typeof body === 'string' ? body : '';
    const starts = [...page.matchAll(RESULT)].map(({ index }) => index);
    const hits = starts.flatMap((start, at) => {
      const block = page.slice(start, starts[at + 1]);
      if (/^<div[^>]*result--ad/.test(block)) return [];
      const link = LINK.exec(block) ?? LINK_TURNED.exec(block);
      if (link === null) return [];
      const snippet = SNIPPET.exec(block)?.[1] ?? '';
      return hit(address(plain(link[1] ?? '')), plain(link[2] ?? ''), plain(snippet));
    });
    return { hits: hits.slice(0, count) };
  },
};

/** `//duckduckgo.com/l/?uddg=<address>` → the address. */
function address(href: string): string {
  const url = href.startsWith('//') ? `https:${href}` : href;
  if (!URL.canParse(url)) return '';
  const target = new URL(url);
  return target.searchParams.get('uddg') ?? url;
}
