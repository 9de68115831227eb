/** Search engines: each against the shape of its vendor's real API. */

import { afterAll, describe, expect, test } from 'bun:test';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import {
  refusalError,
  requestOf as requestOfEngine,
  type SearchQuery,
} from '../../../src/features/server-tools/tools/web-search/engine.ts';
import {
  HTTP_ENGINES,
  makeEngine,
} from '../../../src/features/server-tools/tools/web-search/run-engine.ts';
import type { Json } from '../../../src/lib/json/json.ts';

const NOW = '2026-08-01T12:00:00.000Z';
const QUERY: SearchQuery = {
  query: 'bun 1.4',
  count: 5,
  recency: 'week',
  allowedDomains: ['bun.sh', 'example.com'],
  blockedDomains: ['spam.example'],
  country: 'de',
  now: NOW,
};

const engine = (type: string) => HTTP_ENGINES.find((one) => one.type === type)!;
const requestOf = (type: string, query = QUERY, options = {}) => {
  const one = engine(type);
  const { url, method, headers, body } = requestOfEngine(one, query, {
    baseUrl: one.baseUrl ?? 'http://searx.local',
    key: 'k-1',
    options,
  });
  const { origin, pathname, searchParams } = new URL(url);
  const sent = body === undefined ? Object.fromEntries(searchParams) : JSON.parse(body);
  return { at: `${method} ${origin}${pathname}`, headers, sent };
};

const DUCK = `<div class="serp__results">
<div class="result results_links results_links_deep result--ad web-result"><a class="result__a" href="https://duckduckgo.com/y.js?ad=1">Ad</a></div>
<div class="result results_links results_links_deep web-result "><div class="links_main links_deep result__body">
<h2 class="result__title"><a rel="nofollow" class="result__a" href="//duckduckgo.com/l/?uddg=https%3A%2F%2Fbun.sh%2Fblog%2Fbun%2Dv1.4&amp;rut=abc">Bun <b>v1.4</b> &amp; more</a></h2>
<div class="result__extras"><a class="result__url" href="//x">bun.sh</a></div>
<a class="result__snippet" href="//x">Bun is a <b>fast</b> runtime&#x27;s news.</a></div></div>
<div class="result results_links web-result"><a href="https://example.com/a" class="result__a">Second</a></div></div>`;

describe('requests and answers of each engine', () => {
  test('SearXNG', () => {
    expect(requestOf('searxng', QUERY, { language: 'de' })).toMatchObject({
      at: 'GET http://searx.local/search',
      sent: {
        q: 'bun 1.4 (site:bun.sh OR site:example.com) -site:spam.example',
        format: 'json',
        time_range: 'month',
        language: 'de',
      },
    });
    const body = {
      query: 'bun',
      results: [
        {
          url: 'https://bun.sh/',
          title: 'Bun &amp; co',
          content: 'Fast.',
          engine: 'brave',
          publishedDate: '2026-07-01T00:00:00',
        },
        { url: 'ftp://no', title: 'no' },
      ],
      answers: ['42'],
    };
    expect(engine('searxng').read(body, QUERY)).toEqual({
      hits: [
        {
          title: 'Bun & co',
          url: 'https://bun.sh/',
          snippet: 'Fast.',
          published: '2026-07-01T00:00:00',
        },
      ],
      summary: '42',
    });
  });

  test.each([
    [
      'all engines blocked',
      {
        results: [],
        unresponsive_engines: [
          ['google', 'CAPTCHA'],
          ['bing', 'timeout'],
        ],
      },
      'google: CAPTCHA; bing: timeout',
    ],
    ['engines named as texts', { results: [], unresponsive_engines: ['google'] }, '(google)'],
  ])('SearXNG: %s is a failure, not an answer without results', (_, body, words) => {
    expect(() => engine('searxng').read(body, QUERY)).toThrow(words);
  });

  test.each([
    ['no engine blocked', { results: [], unresponsive_engines: [] }, 0],
    [
      'one engine blocked, another answered',
      {
        results: [{ url: 'https://a.example', title: 'A' }],
        unresponsive_engines: [['google', 'CAPTCHA']],
      },
      1,
    ],
  ])('SearXNG: %s is an answer', (_, body, hits) => {
    expect(engine('searxng').read(body, QUERY).hits).toHaveLength(hits);
  });

  test('SearXNG without JSON says which setting, not that a key was refused', () => {
    const { message } = refusalError(engine('searxng'), 403, false);
    expect(message).toContain('`search.formats`');
    expect(refusalError(engine('tavily'), 403, true).message).toContain('key was refused');
    expect(refusalError(engine('jina'), 403, false).message).toBe('jina: HTTP 403.');
  });

  test('Tavily', () => {
    const { at, headers, sent } = requestOf('tavily', QUERY, { search_depth: 'advanced' });
    expect(at).toBe('POST https://api.tavily.com/search');
    expect(headers.authorization).toBe('Bearer k-1');
    expect(sent).toEqual({
      query: 'bun 1.4',
      max_results: 5,
      time_range: 'week',
      include_domains: ['bun.sh', 'example.com'],
      exclude_domains: ['spam.example'],
      search_depth: 'advanced',
    });
    const body = {
      query: 'bun',
      answer: 'A runtime.',
      results: [{ url: 'https://bun.sh', title: 'Bun', content: 'Fast.', score: 0.9 }],
    };
    expect(engine('tavily').read(body, QUERY)).toEqual({
      hits: [{ title: 'Bun', url: 'https://bun.sh', snippet: 'Fast.' }],
      summary: 'A runtime.',
    });
  });

  test('Brave', () => {
    const { at, headers, sent } = requestOf('brave');
    expect(at).toBe('GET https://api.search.brave.com/res/v1/web/search');
    expect(headers['x-subscription-token']).toBe('k-1');
    expect(sent).toMatchObject({ count: '5', freshness: 'pw', country: 'de' });
    const long = requestOf('brave', { query: 'word '.repeat(90), count: 99, now: NOW }).sent;
    expect(long.q.split(' ')).toHaveLength(50);
    expect(long.count).toBe('20');
    const body = {
      type: 'search',
      web: {
        results: [
          {
            title: 'Bun',
            url: 'https://bun.sh',
            description: 'A <strong>fast</strong> runtime',
            page_age: '2026-07-01T00:00:00',
            extra_snippets: ['More.'],
          },
        ],
      },
    };
    expect(engine('brave').read(body, QUERY).hits).toEqual([
      {
        title: 'Bun',
        url: 'https://bun.sh',
        snippet: 'A fast runtime More.',
        published: '2026-07-01T00:00:00',
      },
    ]);
  });

  test('Exa', () => {
    expect(requestOf('exa')).toMatchObject({
      at: 'POST https://api.exa.ai/search',
      headers: { 'x-api-key': 'k-1' },
      sent: {
        query: 'bun 1.4',
        numResults: 5,
        includeDomains: ['bun.sh', 'example.com'],
        startPublishedDate: '2026-07-25T00:00:00.000Z',
        userLocation: 'DE',
        contents: { highlights: true },
      },
    });
    const body = {
      requestId: 'r',
      results: [
        {
          id: 'x',
          title: 'Bun',
          url: 'https://bun.sh',
          publishedDate: '2026-07-01',
          highlights: ['a', 'b'],
        },
      ],
    };
    expect(engine('exa').read(body, QUERY).hits).toEqual([
      { title: 'Bun', url: 'https://bun.sh', snippet: 'a … b', published: '2026-07-01' },
    ]);
  });

  test('Serper', () => {
    expect(requestOf('serper')).toMatchObject({
      at: 'POST https://google.serper.dev/search',
      headers: { 'x-api-key': 'k-1' },
      sent: { num: 5, gl: 'de', tbs: 'qdr:w' },
    });
    const body = {
      searchParameters: { q: 'bun' },
      answerBox: { answer: '1.4.5' },
      organic: [
        {
          title: 'Bun',
          link: 'https://bun.sh',
          snippet: 'Fast.',
          position: 1,
          date: 'Jul 1, 2026',
        },
      ],
    };
    expect(engine('serper').read(body, QUERY)).toEqual({
      hits: [{ title: 'Bun', url: 'https://bun.sh', snippet: 'Fast.', published: 'Jul 1, 2026' }],
      summary: '1.4.5',
    });
  });

  test('Jina', () => {
    expect(requestOf('jina')).toMatchObject({
      at: 'POST https://s.jina.ai/',
      headers: { authorization: 'Bearer k-1', 'x-respond-with': 'no-content' },
      sent: { num: 5, gl: 'DE' },
    });
    const body = {
      code: 200,
      status: 20000,
      data: [{ title: 'Bun', url: 'https://bun.sh', description: 'Fast.', usage: { tokens: 1 } }],
    };
    expect(engine('jina').read(body, QUERY).hits).toHaveLength(1);
    const failed = { code: 402, status: 40203, readableMessage: 'InsufficientBalanceError' };
    expect(() => engine('jina').read(failed, QUERY)).toThrow('InsufficientBalance');
  });

  test('Zhipu', () => {
    expect(requestOf('zhipu')).toMatchObject({
      at: 'POST https://open.bigmodel.cn/api/paas/v4/web_search',
      headers: { authorization: 'Bearer k-1' },
      sent: {
        search_query: 'bun 1.4',
        search_engine: 'search_std',
        count: 5,
        search_recency_filter: 'oneWeek',
      },
    });
    const body = {
      id: '1',
      search_result: [
        {
          title: '新闻',
          content: '内容',
          link: 'https://news.example.cn/1',
          media: '网',
          refer: 'ref_1',
          publish_date: '2026-07-01',
        },
      ],
    };
    expect(engine('zhipu').read(body, QUERY).hits).toEqual([
      {
        title: '新闻',
        url: 'https://news.example.cn/1',
        snippet: '内容',
        published: '2026-07-01',
      },
    ]);
    expect(() =>
      engine('zhipu').read({ error: { code: '1113', message: '余额不足' } }, QUERY),
    ).toThrow('余额不足');
  });

  test('DuckDuckGo: results without advertisements, addresses unwrapped', () => {
    expect(requestOf('duckduckgo')).toMatchObject({
      at: 'GET https://html.duckduckgo.com/html/',
      sent: { df: 'w' },
    });
    expect(engine('duckduckgo').read(DUCK, QUERY).hits).toEqual([
      {
        title: 'Bun v1.4 & more',
        url: 'https://bun.sh/blog/bun-v1.4',
        snippet: "Bun is a fast runtime's news.",
      },
      { title: 'Second', url: 'https://example.com/a', snippet: '' },
    ]);
  });

  test.each(HTTP_ENGINES.map(({ type }) => type))(
    '%s: a malformed answer gives no hits',
    (type) => {
      const odd: Json[] = [
        null,
        7,
        'text',
        [],
        {},
        { results: 3, web: [], data: [null, { url: 1 }] },
      ];
      for (const body of odd) expect(engine(type).read(body, QUERY).hits).toEqual([]);
    },
  );
});

const recorded = new URL('../../../../shared/fixtures/tavily-search/', import.meta.url).pathname;
describe('recorded answers', () => {
  const there = existsSync(recorded);
  const run = there ? test : test.skip;
  run(there ? 'of Tavily are read whole' : 'SKIPPED: no recorded answers of Tavily here', () => {
    const files = readdirSync(recorded).filter((file) => !file.endsWith('.req.json'));
    expect(files.length).toBeGreaterThan(0);
    for (const file of files) {
      const body = JSON.parse(readFileSync(recorded + file, 'utf8'));
      const { hits } = engine('tavily').read(body, QUERY);
      expect(hits).toHaveLength(body.results?.length ?? 0);
    }
  });
});

describe('a search service that redirects', () => {
  const NEAR = '/near';
  const asked: string[] = [];
  const elsewhere = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      asked.push(JSON.stringify([request.url, request.headers, await request.text()]));
      return Response.json({});
    },
  });
  let to = '';
  let status = 302;
  const service = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: ({ url }) =>
      new URL(url).pathname === NEAR
        ? new Response('', { status: 500 })
        : new Response('', { status, headers: { location: to } }),
  });
  afterAll(async () => {
    await service.stop(true);
    await elsewhere.stop(true);
  });
  const search = (type: string) =>
    makeEngine(
      {
        name: type,
        type,
        baseUrl: `http://127.0.0.1:${service.port}`,
        keys: ['k-secret'],
        options: {},
      },
      { fetch: (url, init) => fetch(url, init) },
    ).search(QUERY, AbortSignal.timeout(5000));

  for (const { type } of HTTP_ENGINES) {
    test.each([301, 302, 303, 307, 308])(
      `to another host gets neither the key nor the question there: ${type}, %d`,
      async (code) => {
        status = code;
        to = `http://127.0.0.1:${elsewhere.port}/`;
        await expect(search(type)).rejects.toThrow('redirects to another host');
        expect(asked).toEqual([]);
      },
    );
  }

  test('within its own host is followed', async () => {
    status = 307;
    to = NEAR;
    await expect(search('brave')).rejects.toThrow('500');
    to = '/';
    await expect(search('brave')).rejects.toThrow('redirects');
  });
});
