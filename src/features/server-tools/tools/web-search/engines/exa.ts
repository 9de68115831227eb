/** Exa: search by meaning. Requests highlights, which are short. */

import { objects } from '../../../../../lib/json/typed-reads.ts';
import { firstText, type HttpEngine, objectOf, searchHit, since, textsOf } from '../engine.ts';

const SNIPPET = 1000;

export const exa: HttpEngine = {
  type: 'exa',
  baseUrl: 'https://api.exa.ai',
  needsKey: true,
  method: 'POST',
  path: '/search',
  headers: (key) => ({ 'x-api-key': key }),
  parameters: (query) => ({
    query: query.query,
    numResults: Math.min(query.count, 100),
    includeDomains: query.allowedDomains,
    excludeDomains: query.blockedDomains,
    startPublishedDate: query.recency && `${since(query.recency, query.now)}T00:00:00.000Z`,
    userLocation: query.country?.toUpperCase(),
    contents: { highlights: true },
  }),
  read: (body) => ({
    hits: objects(objectOf(body).results).flatMap((result) => {
      const highlights = textsOf(result.highlights).join(' … ');
      const snippet = firstText(highlights, result.summary, result.text).slice(0, SNIPPET);
      return searchHit(
        result.url,
        firstText(result.title),
        snippet,
        firstText(result.publishedDate),
      );
    }),
  }),
};
