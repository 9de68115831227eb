/** web_search: the order of engines, filters, and the results for the model. */

import { describe, expect, test } from 'bun:test';
import { Notes } from '../../../src/conversation/notes.ts';
import type { ServerTool, ToolContext } from '../../../src/features/server-tools/tool.ts';
import {
  filterHits,
  liesUnder,
  webSearch,
} from '../../../src/features/server-tools/tools/web-search/index.ts';
import {
  answerCodexSearch,
  modelAnswer,
  modelResults,
  readCodexSearch,
  searchConversation,
} from '../../../src/features/server-tools/tools/web-search/model-search.ts';
import type { EngineServices } from '../../../src/features/server-tools/tools/web-search/run-engine.ts';
import { wantsSearch } from '../../../src/features/server-tools/tools/web-search/wants-search.ts';
import { isObject, type Json } from '../../../src/lib/json/json.ts';
import { fullText } from '../../../src/lib/text/full-text.ts';
import type { SuiteProtocol as ProtocolName } from '../../support/suite-protocols.ts';
import { PROTOCOLS, target } from './script.ts';

const NOW = '2026-08-01T12:00:00.000Z';

interface Call {
  readonly url: string;
  readonly body: string;
}

/** A tool over SearXNG at `one` and `two`, with answers by host. */
function tool(answers: Record<string, () => Response>, more: Partial<EngineServices> = {}) {
  const calls: Call[] = [];
  const made = webSearch(
    {
      inject: 'declared',
      maxResults: 8,
      timeoutMs: 1000,
      engines: [
        { name: 'one', type: 'searxng', baseUrl: 'http://one/', keys: [], options: {} },
        { name: 'two', type: 'tavily', baseUrl: 'http://two', keys: ['a', 'b'], options: {} },
        ...(more.docs ? [{ name: 'manual', type: 'docs', keys: [], options: {} }] : []),
        ...(more.askModel ? [{ name: 'asked', type: 'model', keys: [], options: {} }] : []),
      ],
    },
    {
      fetch: async (url, init) => {
        calls.push({ url, body: String(init.body ?? '') });
        const answer = answers[new URL(url).hostname];
        if (answer === undefined) throw new TypeError(`no way to ${url}?key=secret`);
        return answer();
      },
      ...more,
    },
  );
  return { made, calls };
}

const context = (more: Partial<ToolContext> = {}): ToolContext => ({
  signal: new AbortController().signal,
  callId: 'c1',
  options: {},
  log: () => {},
  ...more,
});
const page = (url: string) => Response.json({ results: [{ url, title: 'T', content: 'C' }] });
const run = (made: ServerTool, args: Record<string, Json>, more: Partial<ToolContext> = {}) =>
  made.run(args, context(more));
const payload = async (promise: ReturnType<typeof run>) => {
  const { payload: value } = await promise;
  return isObject(value) ? value : {};
};

describe('the order of engines', () => {
  test('the default engine goes first, and its hits are the answer', async () => {
    const { made, calls } = tool({ one: () => page('https://a.example') });
    const found = await run(made, { query: 'x' }, { wantsCitations: true });
    expect(found.payload).toEqual({
      query: 'x',
      engine: 'one',
      summary: '',
      hits: [{ title: 'T', url: 'https://a.example', snippet: 'C' }],
    });
    expect(calls).toHaveLength(1);
    const text = typeof found.text === 'function' ? found.text(5) : found.text;
    expect(JSON.parse(text).results[0].n).toBe(5);
    expect(text).toContain('Cite');
  });

  test.each([
    ['refuses', () => new Response('no', { status: 403 })],
    ['breaks', () => new Response('{', { status: 200 })],
    ['finds nothing', () => Response.json({ results: [] })],
  ])('an engine that %s hands over to the next', async (_, one) => {
    const { made } = tool({ one, two: () => page('https://b.example') });
    expect(await payload(run(made, { query: 'x' }))).toMatchObject({ engine: 'two' });
  });

  test('a requested engine goes first; keys are used in turn', async () => {
    const { made, calls } = tool({ two: () => page('https://b.example') });
    for (const _ of [1, 2])
      await run(made, { query: 'x', engine: 'two', recency: 'day', count: 3 });
    expect(calls.map(({ url }) => url)).toEqual(['http://two/search', 'http://two/search']);
    expect(JSON.parse(calls[0]!.body)).toMatchObject({ max_results: 3, time_range: 'day' });
  });

  test('no hits anywhere is an answer; failures everywhere are an error without any key', async () => {
    const empty = () => Response.json({ results: [] });
    expect(await payload(run(tool({ one: empty, two: empty }).made, { query: 'x' }))).toMatchObject(
      {
        engine: 'one',
        hits: [],
      },
    );
    const failed = await run(tool({}).made, { query: 'x' });
    expect(failed.ok).toBe(false);
    expect(failed.payload).toEqual({
      ok: false,
      tool: 'web_search',
      message: 'tavily: cannot be reached.',
      retryable: true,
    });
    expect(JSON.stringify(failed)).not.toContain('secret');
    const busy = await run(tool({ one: () => new Response('', { status: 429 }) }).made, {
      query: 'x',
      engine: 'one',
    });
    expect(busy.ok).toBe(false);
  });

  test('a model with its own search, and local pages, as engines', async () => {
    const { made } = tool(
      {},
      {
        docs: fullText([
          { url: 'https://docs/keys', title: 'Keys', text: 'Where keys are set. 密钥设置在这里。' },
          { url: 'https://docs/routes', title: 'Routes', text: 'First match wins.' },
        ]),
        askModel: () => async (prompt) => ({
          text: `asked: ${prompt.split('\n')[0]}`,
          citations: [{ url: 'https://m.example', title: 'M', citedText: 'quote' }],
        }),
      },
    );
    const manual = await payload(run(made, { query: 'keys set', engine: 'manual' }));
    expect(manual.hits).toMatchObject([{ url: 'https://docs/keys' }]);
    const han = await payload(run(made, { query: '密钥', engine: 'manual' }));
    expect(han.hits).toMatchObject([{ url: 'https://docs/keys' }]);
    expect(await payload(run(made, { query: 'q', engine: 'asked' }))).toMatchObject({
      engine: 'asked',
      summary: 'asked: Search the web for: q',
      hits: [{ title: 'M', url: 'https://m.example', snippet: 'quote' }],
    });
  });

  test('a model engine declares the search tool in every protocol', () => {
    const request = searchConversation('p', 'm');
    const bodyAt = (protocol: ProtocolName) =>
      JSON.stringify(
        PROTOCOLS[protocol].encodeRequest(
          request,
          target(protocol, { hostedTools: ['web_search'] }),
          new Notes(),
        ).tools,
      );
    expect(bodyAt('anthropic-messages')).toContain('web_search_20250305');
    expect(bodyAt('openai-responses')).toContain('{"type":"web_search"}');
    expect(bodyAt('openai-chat')).toContain('"web_search":{"enable":true');
    const answer = modelAnswer({
      id: '',
      model: 'm',
      finish: 'stop',
      blocks: [
        {
          type: 'tool-result',
          callId: 's',
          kind: 'function',
          isError: false,
          by: 'provider',
          content: [
            {
              type: 'opaque',
              name: 'web_search_result',
              wire: { protocol: 'anthropic-messages', value: { url: 'https://f', title: 'F' } },
            },
          ],
        },
        { type: 'text', text: 'Said.', citations: [{ url: 'https://c', citedText: 'q' }] },
      ],
    });
    expect(modelResults(answer)).toEqual({
      summary: 'Said.',
      hits: [
        { url: 'https://c', title: 'https://c', snippet: 'q' },
        { url: 'https://f', title: 'F', snippet: '' },
      ],
    });
    const links = { text: 'See [Bun](https://bun.sh).', citations: [] };
    expect(modelResults(links).hits).toEqual([
      { url: 'https://bun.sh', title: 'Bun', snippet: '' },
    ]);
  });

  test("the client's domain rules apply to every engine", async () => {
    const { made } = tool({
      one: () =>
        Response.json({
          results: ['https://a.example/x', 'https://evil.example/', 'https://sub.a.example/'].map(
            (url) => ({ url, title: 't', content: '' }),
          ),
        }),
    });
    const found = await run(made, { query: 'x' }, { options: { allowed_domains: ['a.example'] } });
    expect(found.sources?.map(({ url }) => url)).toEqual([
      'https://a.example/x',
      'https://sub.a.example/',
    ]);
    const filters = { filters: { allowed_domains: ['b.example'] } };
    expect((await run(made, { query: 'x' }, { options: filters })).sources ?? []).toEqual([]);
  });

  test('a missing or too long query gives the protocol’s error codes', async () => {
    const { made } = tool({});
    await expect(run(made, {})).rejects.toMatchObject({ code: 'invalid_tool_input' });
    await expect(run(made, { query: 'x'.repeat(2000) })).rejects.toMatchObject({
      code: 'query_too_long',
    });
  });

  test('an invalid configuration is refused at once', () => {
    const make = (type: string, more = {}) =>
      webSearch(
        {
          inject: 'force',
          maxResults: 1,
          timeoutMs: 1,
          engines: [{ name: 'e', type, keys: [], options: {}, ...more }],
        },
        { fetch: async () => new Response() },
      );
    expect(() => make('searxng')).toThrow('base_url');
    expect(() => make('tavily')).toThrow('key');
    expect(() => make('model')).toThrow('model');
    expect(() => make('bing')).toThrow('unknown type');
  });
});

test('hosts and paths of domain rules', () => {
  expect(liesUnder('https://docs.a.example/other', 'a.example/api')).toBe(false);
  expect(liesUnder('https://docs.a.example/x', 'https://a.example/')).toBe(true);
  expect(liesUnder('https://docs.a.example/api/x', 'docs.a.example/api')).toBe(true);
  expect(liesUnder('https://docs.a.example/apiary', 'docs.a.example/api')).toBe(false);
  expect(liesUnder('https://nota.example/', 'a.example')).toBe(false);
  const twice = ['https://a/x', 'https://a/x#y'].map((url) => ({ url, title: '', snippet: '' }));
  expect(filterHits(twice, { query: '', count: 9, now: NOW })).toHaveLength(1);
});

describe('selective', () => {
  test.each([
    'Search the web for bun 1.4',
    "What's the latest version of Node?",
    'What is the weather today in Berlin?',
    '帮我搜索一下 Bun 的文档',
    '今天有什么新闻',
    'Who is currently the president of France, as of today?',
    'What happened today in Berlin?',
    'google the opening hours of the zoo',
    'who won the match between Ajax and PSV yesterday',
    'bitcoin price now',
    'What are gas prices right now in Spain?',
    '<system-reminder> what is the latest news',
  ])('a message that wants a search: %s', (text) => expect(wantsSearch(text)).toBe(true));

  test.each([
    'Rename this function',
    'Fix the search box: ```\nsearch the web for latest news today\n```',
    '把这个函数重构一下',
    'Write a quicksort in Rust',
    'What is the current directory?',
    'The price is now computed twice, fix it',
    'Deploy this to Google Cloud',
    'Add a column for the price now shown in the cart',
    'How do I get today in Python?',
    '<system-reminder>search the web for the latest news</system-reminder>Thanks',
  ])('a message that wants no search: %s', (text) => expect(wantsSearch(text)).toBe(false));
});

describe("Codex's search", () => {
  test('several queries give one text with continuous numbers', async () => {
    const request = readCodexSearch({
      id: '1',
      model: 'm',
      commands: { search_query: [{ q: 'a' }, { q: ' ' }, { q: 'b' }] },
      settings: {},
      max_output_tokens: 5000,
    });
    expect(request).toEqual({ queries: ['a', 'b'], limit: 20_000 });
    const { made } = tool({ one: () => page('https://a.example') });
    const answer = await answerCodexSearch(request!, made, {
      signal: new AbortController().signal,
      log: () => {},
    });
    const parts = String(answer.output).split('\n\n');
    expect(parts.map((part) => JSON.parse(part).results[0].n)).toEqual([1, 2]);
  });

  test('without a query there is no search; a failure is reported in the text', async () => {
    expect(readCodexSearch({ commands: { open: [{ url: 'x' }] } })).toBeUndefined();
    const { made } = tool({});
    const answer = await answerCodexSearch({ queries: ['x'.repeat(1500)], limit: 100 }, made, {
      signal: new AbortController().signal,
      log: () => {},
    });
    expect(String(answer.output)).toContain('too long');
  });
});
