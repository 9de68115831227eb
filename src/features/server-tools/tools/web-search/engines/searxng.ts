/** SearXNG, the operator's own metasearch engine; its settings must allow `format=json`. */

import { get, type HttpEngine, withSites } from '../engine.ts';
import { firstText, objectOf, objectsOf, plainText, searchHit, textsOf } from '../fields.ts';

export const searxng: HttpEngine = {
  type: 'searxng',
  needsKey: false,
  request: (query, { baseUrl, key, options }) => {
    // It has no time range of a week; a month contains one.
    const range = query.recency === 'week' ? 'month' : query.recency;
    return get(
      `${baseUrl}/search`,
      key === '' ? {} : { authorization: `Bearer ${key}` },
      { q: withSites(query), format: 'json', time_range: range },
      options,
    );
  },
  read: (body) => {
    const { results, answers } = objectOf(body);
    const answerTexts = [
      ...textsOf(answers),
      ...objectsOf(answers).map((answer) => firstText(answer.answer)),
    ];
    const summary = answerTexts.filter((text) => text !== '').join('\n');
    const hits = objectsOf(results).flatMap(({ url, title, content, publishedDate }) =>
      searchHit(
        url,
        plainText(firstText(title)),
        plainText(firstText(content)),
        firstText(publishedDate),
      ),
    );
    return summary === '' ? { hits } : { hits, summary };
  },
};
