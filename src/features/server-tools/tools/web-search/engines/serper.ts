/** Serper: Google's results by API. */

import { type HttpEngine, post, withSites } from '../engine.ts';
import { hit, list, object, words } from '../fields.ts';

const TIME = { day: 'qdr:d', week: 'qdr:w', month: 'qdr:m', year: 'qdr:y' } as const;

export const serper: HttpEngine = {
  type: 'serper',
  baseUrl: 'https://google.serper.dev',
  needsKey: true,
  request: (query, { baseUrl, key, options }) =>
    post(
      `${baseUrl}/search`,
      { 'x-api-key': key },
      {
        q: withSites(query),
        num: query.count,
        gl: query.country,
        tbs: query.recency && TIME[query.recency],
      },
      options,
    ),
  read: (body) => {
    const { organic, answerBox, knowledgeGraph } = object(body);
    const box = object(answerBox);
    const summary = words(box.answer, box.snippet, object(knowledgeGraph).description);
    const hits = list(organic).flatMap(({ link, title, snippet, date }) =>
      hit(link, words(title), words(snippet), words(date)),
    );
    return summary === '' ? { hits } : { hits, summary };
  },
};
