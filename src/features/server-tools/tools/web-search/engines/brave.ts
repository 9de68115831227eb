/** Brave Search, whose descriptions contain markup. */

import { objects } from '../../../../../lib/json/typed-reads.ts';
import {
  firstText,
  type HttpEngine,
  objectOf,
  plainText,
  searchHit,
  textsOf,
  withSites,
} from '../engine.ts';

const FRESHNESS = { day: 'pd', week: 'pw', month: 'pm', year: 'py' } as const;

export const brave: HttpEngine = {
  type: 'brave',
  baseUrl: 'https://api.search.brave.com',
  needsKey: true,
  method: 'GET',
  path: '/res/v1/web/search',
  headers: (key) => ({ 'x-subscription-token': key }),
  parameters: (query) => ({
    // Longer than 400 characters or 50 words is refused with 422.
    q: withSites(query).split(/\s+/).slice(0, 50).join(' ').slice(0, 400),
    count: Math.min(query.count, 20),
    freshness: query.recency === undefined ? undefined : FRESHNESS[query.recency],
    country: query.country,
  }),
  read: (body) => ({
    hits: objects(objectOf(objectOf(body).web).results).flatMap((result) => {
      const more = textsOf(result.extra_snippets);
      const snippet = [firstText(result.description), ...more].map(plainText).join(' ').trim();
      return searchHit(
        result.url,
        plainText(firstText(result.title)),
        snippet,
        firstText(result.page_age, result.age),
      );
    }),
  }),
};
