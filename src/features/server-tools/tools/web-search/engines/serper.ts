/** Serper: Google's results by API. */

import { objects } from '../../../../../lib/json/typed-reads.ts';
import { firstText, type HttpEngine, objectOf, searchHit, withSites } from '../engine.ts';

const TIME = { day: 'qdr:d', week: 'qdr:w', month: 'qdr:m', year: 'qdr:y' } as const;

export const serper: HttpEngine = {
  type: 'serper',
  baseUrl: 'https://google.serper.dev',
  needsKey: true,
  method: 'POST',
  path: '/search',
  headers: (key) => ({ 'x-api-key': key }),
  parameters: (query) => ({
    q: withSites(query),
    num: query.count,
    gl: query.country,
    tbs: query.recency && TIME[query.recency],
  }),
  read: (body) => {
    const { organic, answerBox, knowledgeGraph } = objectOf(body);
    const box = objectOf(answerBox);
    const summary = firstText(box.answer, box.snippet, objectOf(knowledgeGraph).description);
    const hits = objects(organic).flatMap(({ link, title, snippet, date }) =>
      searchHit(link, firstText(title), firstText(snippet), firstText(date)),
    );
    return summary === '' ? { hits } : { hits, summary };
  },
};
