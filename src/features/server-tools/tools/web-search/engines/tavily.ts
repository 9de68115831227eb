/** Tavily: a search made for models, with its own answer on request. */

import { objects } from '../../../../../lib/json/typed-reads.ts';
import { firstText, type HttpEngine, objectOf, searchHit } from '../engine.ts';

export const tavily: HttpEngine = {
  type: 'tavily',
  baseUrl: 'https://api.tavily.com',
  needsKey: true,
  method: 'POST',
  path: '/search',
  headers: (key) => ({ authorization: `Bearer ${key}` }),
  parameters: (query) => ({
    query: query.query,
    max_results: Math.min(query.count, 20),
    time_range: query.recency,
    include_domains: query.allowedDomains,
    exclude_domains: query.blockedDomains,
  }),
  read: (body) => {
    const { results, answer } = objectOf(body);
    const summary = firstText(answer);
    const hits = objects(results).flatMap(({ url, title, content, published_date: date }) =>
      searchHit(url, firstText(title), firstText(content), firstText(date)),
    );
    return summary === '' ? { hits } : { hits, summary };
  },
};
