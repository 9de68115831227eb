/** DuckDuckGo's HTML page: needs no key, guarantees nothing, answers 202 when it throttles. */

import { HtmlTokens } from '../../web-fetch/html-tokens.ts';
import { type HttpEngine, plainText, searchHit, withSites } from '../engine.ts';

const TIME = { day: 'd', week: 'w', month: 'm', year: 'y' } as const;
const AGENT =
  'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0 Safari/537.36';

export const duckduckgo: HttpEngine = {
  type: 'duckduckgo',
  baseUrl: 'https://html.duckduckgo.com',
  needsKey: false,
  html: true,
  refusals: [202],
  method: 'GET',
  path: '/html/',
  headers: () => ({ accept: 'text/html', 'user-agent': AGENT }),
  parameters: (query) => ({ q: withSites(query), df: query.recency && TIME[query.recency] }),
  read: (body, { count }) => ({
    hits: (typeof body === 'string' ? resultsOf(body) : [])
      .flatMap(({ link, title, snippet }) =>
        searchHit(address(plainText(link)), plainText(title.join('')), plainText(snippet.join(''))),
      )
      .slice(0, count),
  }),
};

interface ResultEntry {
  link: string;
  readonly title: string[];
  readonly snippet: string[];
}

/** The results of a page without advertisements: each is a `div` with a link and a snippet. */
function resultsOf(page: string): readonly ResultEntry[] {
  const results: ResultEntry[] = [];
  const tokens = new HtmlTokens(page);
  let result: ResultEntry | undefined;
  /** The field that gets the text, and the name of the end tag that ends it. */
  let into: string[] | undefined;
  let until = '';
  for (let token = tokens.next(); token !== undefined; token = tokens.next()) {
    if (token.type === 'text') into?.push(token.text);
    else if (token.type === 'close' && token.name === until) into = undefined;
    else if (token.type === 'open') {
      const { name, attributes } = token;
      const classes = (attributes.get('class') ?? '').split(/\s+/, 50);
      if (name === 'div' && classes.includes('result')) {
        into = undefined;
        result = classes.some((one) => one.startsWith('result--ad'))
          ? undefined
          : { link: '', title: [], snippet: [] };
        if (result !== undefined) results.push(result);
      } else if (name === 'a' && result?.link === '' && classes.includes('result__a')) {
        result.link = attributes.get('href') ?? '';
        [into, until] = [result.title, 'a'];
      } else if (result?.snippet.length === 0 && classes.includes('result__snippet')) {
        [into, until] = [result.snippet, name];
      }
    }
  }
  return results;
}

/** `//duckduckgo.com/l/?uddg=<address>` → the address. */
function address(href: string): string {
  const url = href.startsWith('//') ? `https:${href}` : href;
  if (!URL.canParse(url)) return '';
  const target = new URL(url);
  return target.searchParams.get('uddg') ?? url;
}
