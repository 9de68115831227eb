/** Brave Search, whose descriptions contain markup. */

import { objects } from '../../../../../lib/json/typed-reads.ts';
import {
  firstText,
  get,
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
  request: (query, { baseUrl, key, options }) =>
    get(
      `${baseUrl}/res/v1/web/search`,
      { 'x-subscription-token': key },
      {
        // Longer than 400 characters or 50 words is refused with 422.
        q: withSites(query).split(/\s+/).slice(0, 50).join(' ').slice(0, 400),
        count: Math.min(query.count, 20),
        freshness: query.recency === undefined ? undefined : FRESHNESS[query.recency],
        country: query.country,
      },
      options,
    ),
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
