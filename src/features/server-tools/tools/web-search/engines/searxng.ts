/** SearXNG, the operator's own metasearch engine; its settings must allow `format=json`. */

import type { Json } from '../../../../../lib/json/json.ts';
import { objects } from '../../../../../lib/json/typed-reads.ts';
import { ToolError } from '../../../tool.ts';
import {
  firstText,
  type HttpEngine,
  objectOf,
  plainText,
  searchHit,
  textsOf,
  withSites,
} from '../engine.ts';

export const searxng: HttpEngine = {
  type: 'searxng',
  needsKey: false,
  // https://docs.searxng.org/dev/search_api.html: a format that is not in the settings is a 403, and JSON is not by default.
  refusalHints: { 403: 'HTTP 403; its settings must have `json` in `search.formats`' },
  method: 'GET',
  path: '/search',
  headers: (key): Record<string, string> => (key === '' ? {} : { authorization: `Bearer ${key}` }),
  parameters: (query) => ({
    q: withSites(query),
    format: 'json',
    // It has no time range of a week; a month contains one.
    time_range: query.recency === 'week' ? 'month' : query.recency,
  }),
  read: (body) => {
    const { results, answers, unresponsive_engines: unresponsive } = objectOf(body);
    const answerTexts = [
      ...textsOf(answers),
      ...objects(answers).map((answer) => firstText(answer.answer)),
    ];
    const summary = answerTexts.filter((text) => text !== '').join('\n');
    const hits = objects(results).flatMap(({ url, title, content, publishedDate }) =>
      searchHit(
        url,
        plainText(firstText(title)),
        plainText(firstText(content)),
        firstText(publishedDate),
      ),
    );
    if (hits.length === 0 && summary === '') throwIfBlocked(unresponsive);
    return summary === '' ? { hits } : { hits, summary };
  },
};

/**
 * Without results, engines that did not answer mean that nothing was looked up, not that nothing exists.
 * @param unresponsive `[["google", "CAPTCHA"], …]`
 */
function throwIfBlocked(unresponsive: Json | undefined): void {
  if (!Array.isArray(unresponsive) || unresponsive.length === 0) return;
  const named = unresponsive.slice(0, 5).map((entry: Json) => {
    const [name = '', why = ''] = Array.isArray(entry) ? entry.map(String) : [String(entry)];
    return `${name.slice(0, 50)}${why === '' ? '' : `: ${why.slice(0, 80)}`}`;
  });
  throw new ToolError(`searxng: its engines did not answer (${named.join('; ')}).`, {
    retryable: true,
  });
}
