/** With nothing configured, a declared web search finds pages of the manual: no key, no network. */

import { describe, expect, test } from 'bun:test';
import { environmentFrom } from '../../src/config/environment.ts';
import { parseConfig } from '../../src/config/load.ts';
import type { WebSearchConfig } from '../../src/config/sections/server-tools/web-search.ts';
import { runBinary, startGateway } from '../support/binary.ts';

const searchOf = (yaml: string, variables = {}): WebSearchConfig | undefined => {
  const environment = environmentFrom({ HOME: '/nonexistent', ...variables });
  const result = parseConfig(yaml, '/c/hopgate.yaml', environment);
  if (!result.ok) throw new Error(JSON.stringify(result.problems));
  return result.config.serverTools.webSearch;
};
const DOCS = { inject: 'declared', engines: [{ type: 'docs', name: 'docs' }] };

describe('the default of server_tools.web_search', () => {
  test.each([
    ['nothing at all', '', {}],
    ['a vendor found by its key', '', { DEEPSEEK_API_KEY: 'k' }],
    ['a file without providers', 'log: { level: warn }', {}],
    ['other server tools', 'server_tools: { web_fetch: {} }', {}],
  ])('%s: the manual', (_, yaml, variables) => {
    expect(searchOf(yaml, variables)).toMatchObject(DOCS);
  });

  test('a search that the file names is left alone', () => {
    const own = searchOf('server_tools: { web_search: { engines: [{ type: duckduckgo }] } }');
    expect(own?.engines.map(({ type }) => type)).toEqual(['duckduckgo']);
  });

  test('a file with providers has the search that it names, or none', () => {
    expect(searchOf('providers: { deepseek: { keys: [k] } }')).toBeUndefined();
  });

  test('server_tools of a wrong kind is still a problem', () => {
    expect(() => searchOf('server_tools: [1]')).toThrow();
  });
});

describe('the demo, compiled', () => {
  const ask = async (url: string, path: string, body: object) => {
    const response = await fetch(`${url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    expect(response.status).toBe(200);
    return response.text();
  };
  const question = 'Search the web for tool_text_shortened';

  test('the configuration of a fresh machine is sound', async () => {
    expect((await runBinary(['check'])).code).toBe(0);
  }, 60_000);

  test('searches for real, for clients of every protocol', async () => {
    const gateway = await startGateway('samples: { mode: "off" }\n');
    try {
      const messages = [{ role: 'user', content: question }];
      const tool = { type: 'web_search_20250305', name: 'web_search' };
      const answers = await Promise.all([
        ask(gateway.url, '/v1/messages', {
          model: 'demo',
          max_tokens: 500,
          messages,
          tools: [tool],
        }),
        ask(gateway.url, '/v1/responses', {
          model: 'demo',
          input: question,
          tools: [{ type: 'web_search' }],
        }),
        ask(gateway.url, '/v1/chat/completions', {
          model: 'demo',
          messages,
          web_search_options: {},
        }),
      ]);
      for (const answer of answers)
        expect(answer).toContain('hopgate manual: Notes – tool_text_shortened');
    } finally {
      await gateway.stop();
    }
  }, 60_000);
});
