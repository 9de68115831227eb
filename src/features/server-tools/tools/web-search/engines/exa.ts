/** Exa: search by meaning; asked for highlights, which are short and to the point. */

import { type HttpEngine, post, since } from '../engine.ts';
import { hit, list, object, texts, words } from '../fields.ts';

const SNIPPET = 1000;

export const exa: HttpEngine = {
  type: 'exa',
  baseUrl: 'https://api.exa.ai',
  needsKey: true,
  request: (query, { baseUrl, key, options }) =>
    post(
      `${baseUrl}/search`,
      { 'x-api-key': key },
      {
        query: query.query,
        numResults: Math.min(query.count, 100),
        includeDomains: query.allowedDomains,
        excludeDomains: query.blockedDomains,
        startPublishedDate: query.recency && `${since(query.recency, query.now)}T00:00:00.000Z`,
        userLocation: query.country?.toUpperCase(),
        contents: { highlights: true },
      },
      options,
    ),
  read: (body) => ({
    hits: list(object(body).results).flatMap((result) => {
      const highlights = texts(result.highlights).join(' … ');
      const snippet = words(highlights, result.summary, result.text).slice(0, SNIPPET);
      return hit(result.url, words(result.title), snippet, words(result.publishedDate));
    }),
  }),
};
