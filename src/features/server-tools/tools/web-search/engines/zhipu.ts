/** Zhipu, and Z.AI under another base URL: the web search of the GLM platform. */

import { objects } from '../../../../../lib/json/typed-reads.ts';
import { ToolError } from '../../../tool.ts';
import { firstText, type HttpEngine, objectOf, searchHit } from '../engine.ts';

const RECENCY = { day: 'oneDay', week: 'oneWeek', month: 'oneMonth', year: 'oneYear' } as const;

export const zhipu: HttpEngine = {
  type: 'zhipu',
  baseUrl: 'https://open.bigmodel.cn/api/paas/v4',
  needsKey: true,
  method: 'POST',
  path: '/web_search',
  headers: (key) => ({ authorization: `Bearer ${key}` }),
  parameters: (query, baseUrl) => ({
    // Longer queries find nothing; the service advises 70 characters.
    search_query: [...query.query].slice(0, 70).join(''),
    search_engine: baseUrl.includes('z.ai') ? 'search-prime' : 'search_std',
    search_intent: false,
    count: Math.min(query.count, 50),
    search_recency_filter: query.recency && RECENCY[query.recency],
    // The filter takes a single domain.
    search_domain_filter: query.allowedDomains?.length === 1 ? query.allowedDomains[0] : undefined,
  }),
  read: (body) => {
    const { search_result: results, error } = objectOf(body);
    const message = firstText(objectOf(error).message);
    if (message !== '') throw new ToolError(`zhipu: ${message}`);
    return {
      hits: objects(results).flatMap(({ link, title, content, publish_date: date }) =>
        searchHit(link, firstText(title), firstText(content), firstText(date)),
      ),
    };
  },
};
