/** Brave Search: an index of its own; descriptions hold markup. */

import { get, type HttpEngine, withSites } from '../engine.ts';
import { hit, list, object, plain, texts, words } from '../fields.ts';

const FRESHNESS = { day: 'pd', week: 'pw', month: 'pm', year: 'py' } as const;

export const brave: HttpEngine = {
  type: 'brave',
  baseUrl: 'https://api.search.brave.com',
  needsKey: true,
  request: (query, { baseUrl, key, options }) =>
    get(
      `${baseUrl}/res/v1/web/search`,
      { 'x-subscription-token': key },
      {
        // At most 400 characters and 50 words, or 422.
        q: withSites(query).split(/\s+/).slice(0, 50).join(' ').slice(0, 400),
        count: Math.min(query.count, 20),
        freshness: query.recency === undefined ? undefined : FRESHNESS[query.recency],
        country: query.country,
      },
      options,
    ),
  read: (body) => ({
    hits: list(object(object(body).web).results).flatMap((result) => {
      const more = texts(result.extra_snippets);
      const snippet = [words(result.description), ...more].map(plain).join(' ').trim();
      return hit(
        result.url,
        plain(words(result.title)),
        snippet,
        words(result.page_age, result.age),
      );
    }),
  }),
};
