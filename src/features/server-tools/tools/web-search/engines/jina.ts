/** Jina search: requests snippets, not whole pages. */

import { objects } from '../../../../../lib/json/typed-reads.ts';
import { ToolError } from '../../../tool.ts';
import { firstText, type HttpEngine, objectOf, searchHit, withSites } from '../engine.ts';

const SNIPPET = 1000;

export const jina: HttpEngine = {
  type: 'jina',
  baseUrl: 'https://s.jina.ai',
  needsKey: true,
  method: 'POST',
  path: '/',
  headers: (key) => ({ authorization: `Bearer ${key}`, 'x-respond-with': 'no-content' }),
  parameters: (query) => ({
    q: withSites(query),
    num: query.count,
    gl: query.country?.toUpperCase(),
  }),
  read: (body) => {
    const { data, code, readableMessage } = objectOf(body);
    if (typeof code === 'number' && code >= 400) {
      throw new ToolError(`jina: ${firstText(readableMessage) || `code ${code}`}.`);
    }
    return {
      hits: objects(data).flatMap(({ url, title, description, content, date }) =>
        searchHit(
          url,
          firstText(title),
          firstText(description, content).slice(0, SNIPPET),
          firstText(date),
        ),
      ),
    };
  },
};
