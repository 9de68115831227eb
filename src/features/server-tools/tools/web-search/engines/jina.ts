/** Jina search: asked for snippets only, not for whole pages. */

import { ToolError } from '../../../tool.ts';
import { type HttpEngine, post, withSites } from '../engine.ts';
import { hit, list, object, words } from '../fields.ts';

const SNIPPET = 1000;

export const jina: HttpEngine = {
  type: 'jina',
  baseUrl: 'https://s.jina.ai',
  needsKey: true,
  request: (query, { baseUrl, key, options }) =>
    post(
      `${baseUrl}/`,
      { authorization: `Bearer ${key}`, 'x-respond-with': 'no-content' },
      { q: withSites(query), num: query.count, gl: query.country?.toUpperCase() },
      options,
    ),
  read: (body) => {
    const { data, code, readableMessage } = object(body);
    if (typeof code === 'number' && code >= 400) {
      throw new ToolError(`jina: ${words(readableMessage) || `code ${code}`}.`);
    }
    return {
      hits: list(data).flatMap(({ url, title, description, content, date }) =>
        hit(url, words(title), words(description, content).slice(0, SNIPPET), words(date)),
      ),
    };
  },
};
