/** SearXNG: the operator's own metasearch; its settings must allow `format=json`. */

import { get, type HttpEngine, withSites } from '../engine.ts';
import { hit, list, object, plain, texts, words } from '../fields.ts';

export const searxng: HttpEngine = {
  type: 'searxng',
  needsKey: false,
  request: (query, { baseUrl, key, options }) => {
    // It knows no time range of a week; a month holds one.
    const range = query.recency === 'week' ? 'month' : query.recency;
    return get(
      `${baseUrl}/search`,
      key === '' ? {} : { authorization: `Bearer ${key}` },
      { q: withSites(query), format: 'json', time_range: range },
      options,
    );
  },
  read: (body) => {
    const { results, answers } = object(body);
    const said = [...texts(answers), ...list(answers).map((answer) => words(answer.answer))];
    const summary = said.filter((text) => text !== '').join('\n');
    const hits = list(results).flatMap(({ url, title, content, publishedDate }) =>
      hit(url, plain(words(title)), plain(words(content)), words(publishedDate)),
    );
    return summary === '' ? { hits } : { hits, summary };
  },
};
