/** What an operator relies on: callers by name, failures by kind, sums over processes, graceful stops, tolerant paths. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { type Gateway, startGateway, threeProviders } from '../support/binary.ts';
import { type FakeUpstream, say, startFakeUpstream } from '../support/fake-upstream/index.ts';
import { until } from '../support/until.ts';
import { plainRequest, post } from './clients.ts';

let upstream: FakeUpstream;
let gateway: Gateway;

const KEYS = {
  auth: {
    admin_keys: ['sk-operator-0000'],
    keys: [
      { name: 'ann', key: 'sk-ann-0001' },
      { name: 'bob', key: 'sk-bob-0002' },
    ],
  },
};

beforeAll(async () => {
  upstream = await startFakeUpstream({ models: ['m1'] });
  gateway = await startGateway(threeProviders(upstream, KEYS));
}, 120_000);
afterAll(async () => {
  await gateway?.stop();
  await upstream?.stop();
});

const chat = plainRequest('openai-chat', 'via-chat', false);
const as = (key: string) => ({ headers: { authorization: `Bearer ${key}` } });
const metricsOf = async (url: string) =>
  (await fetch(`${url}/metrics`, as('sk-operator-0000'))).text();

/** What each API says of a path that it does not have. */
const UNKNOWN_PATH: Readonly<Record<string, object>> = {
  openai: { error: { type: 'invalid_request_error', code: 'unknown_path' } },
  anthropic: {
    type: 'error',
    error: { type: 'not_found_error', details: { code: 'unknown_path' } },
  },
  google: {
    error: { code: 404, status: 'NOT_FOUND', details: [{ reason: 'UNKNOWN_PATH' }] },
  },
};

describe('the caller', () => {
  test('log and metrics name the caller, and never show the key', async () => {
    upstream.clear();
    upstream.enqueue(say('for ann'), say('for bob'));
    await (await post(gateway.url, chat.path, chat.body, as('sk-ann-0001'))).text();
    await (await post(gateway.url, chat.path, chat.body, as('sk-bob-0002'))).text();
    await (await post(gateway.url, chat.path, '{', as('sk-bob-0002'))).text();
    const lines = await until(() => {
      const found = gateway.logs().filter(({ event }) => event === 'exchange');
      return found.length >= 3 && found;
    });
    expect(lines.map(({ key, key_name }) => [key, key_name])).toEqual([
      ['ann', 'ann'],
      ['bob', 'bob'],
      ['bob', 'bob'],
    ]);
    const metrics = await metricsOf(gateway.url);
    expect(metrics).toContain(
      'hopgate_key_requests_total{key="ann",key_name="ann",status="200"} 1\n',
    );
    expect(metrics).toContain(
      'hopgate_key_requests_total{key="bob",key_name="bob",status="400"} 1\n',
    );
    expect(metrics).toMatch(
      /^hopgate_key_tokens_total\{key="ann",key_name="ann",kind="input"\} [1-9]/m,
    );
    expect(gateway.stderr() + metrics).not.toContain('sk-ann');
  });

  test('failures are counted by kind, including streams that broke off', async () => {
    upstream.clear();
    const cut = say('This is cut in its middle.', { delivery: { cut: { at: 3, by: 'reset' } } });
    upstream.enqueue(cut);
    const stream = plainRequest('openai-chat', 'via-chat', true);
    const answer = await post(gateway.url, stream.path, stream.body, as('sk-ann-0001'));
    expect(answer.status).toBe(200);
    await answer.text().catch(() => '');
    await until(async () =>
      /^hopgate_errors_total\{kind="upstream"\} 1$/m.test(await metricsOf(gateway.url)),
    );
    expect(await metricsOf(gateway.url)).toContain(
      'hopgate_errors_total{kind="invalid_request"} 1',
    );
  });
});

describe('request paths', () => {
  const ask = (path: string, init: RequestInit = {}) =>
    fetch(gateway.url + path, {
      ...init,
      headers: { authorization: 'Bearer sk-ann-0001', ...(init.headers as Record<string, string>) },
    });

  test.each([
    ['/chat/completions', 'openai-chat'],
    ['//v1/chat/completions', 'openai-chat'],
    ['/v1/v1/chat/completions', 'openai-chat'],
    ['/responses', 'openai-responses'],
    ['/v1/v1/responses', 'openai-responses'],
    ['/messages', 'anthropic-messages'],
    ['//v1/messages', 'anthropic-messages'],
  ] as const)('a small mistake in a base URL is understood: %s', async (path, protocol) => {
    upstream.clear();
    upstream.enqueue(say('understood'));
    const { body } = plainRequest(protocol, 'via-chat', false);
    const answer = await post(gateway.url, path, body, as('sk-ann-0001'));
    expect([answer.status, await answer.text()]).toEqual([
      200,
      expect.stringContaining('understood'),
    ]);
  });

  test('a path that is not there, or takes another method, is in the log once, without its query', async () => {
    const agent = { headers: { 'user-agent': 'mis-set/1.0 (by hand)' } };
    const wrong = [
      ['/chat/completion?key=a-secret', 'POST', 'POST /v1/chat/completions'],
      ['/v1/messages', 'PUT', 'POST'],
      ['/v1beta/models/m1:generateContent', 'GET', 'POST'],
    ] as const;
    // What a browser asks for by itself is no mistake.
    const icon = ['/favicon.ico', 'GET', ''] as const;
    for (const [path, method] of [icon, ...wrong, ...wrong]) {
      const answer = await ask(path, { method, ...agent });
      expect([404, 405]).toContain(answer.status);
      await answer.text();
    }
    const lines = await until(() => {
      const found = gateway.logs().filter(({ client }) => client === 'mis-set/1.0');
      return found.length >= wrong.length && found;
    });
    expect(lines.map(({ event, method, path, use }) => [event, path, method, use])).toEqual(
      wrong.map(([path, method, use]) => ['path.unknown', path.split('?')[0], method, use]),
    );
  });

  test('model paths work with and without /v1, and names may be encoded', async () => {
    for (const path of ['/v1/models', '/models', '//v1/models', '/v1/v1/models']) {
      const { data } = (await (await ask(path)).json()) as { data: { id: string }[] };
      expect(data.length).toBeGreaterThan(0);
      const id = data[0]!.id;
      const one = await ask(`/v1/models/${encodeURIComponent(id)}`);
      expect(await one.json()).toMatchObject({ id });
    }
  });

  test('the model list is paged as Anthropic’s clients expect', async () => {
    const headers = { 'anthropic-version': '2023-06-01' };
    type List = { data: { id: string }[]; has_more: boolean; first_id: string; last_id: string };
    const page = async (query: string) =>
      (await (await ask(`/v1/models${query}`, { headers })).json()) as List;
    const all = (await page('')).data.map(({ id }) => id);
    expect(all.length).toBeGreaterThan(2);
    const received: string[] = [];
    for (let query = '?limit=1'; ; ) {
      const { data, has_more, last_id } = await page(query);
      received.push(...data.map(({ id }) => id));
      if (!has_more) break;
      query = `?limit=1&after_id=${encodeURIComponent(last_id)}`;
    }
    expect(received).toEqual(all);
    const back = await page(`?limit=1&before_id=${encodeURIComponent(all[2]!)}`);
    expect([back.data[0]?.id, back.has_more]).toEqual([all[1], true]);
    expect((await ask('/v1/models?limit=0', { headers })).status).toBe(400);
    expect((await ask('/v1/models?after_id=none', { headers })).status).toBe(400);
  });

  test.each([
    ['POST', '/v1/videos', {}, 'openai'],
    ['POST', '/v1/images/upscales', { 'x-api-key': 'sk-ann-0001' }, 'openai'],
    ['GET', '/v1/nope', {}, 'openai'],
    ['GET', '/v1/nope', { 'anthropic-version': '1' }, 'anthropic'],
    ['POST', '/v1/messages/drafts', {}, 'anthropic'],
    ['POST', '/v1/responses/a/b/c', {}, 'openai'],
    ['GET', '/v1/memories', {}, 'openai'],
    ['GET', '/v1beta/files', {}, 'google'],
    ['POST', '/v1beta/interactions', {}, 'google'],
    ['POST', '/v1/projects/p/locations/l/endpoints/e:predict', {}, 'google'],
    ['GET', '/v1/nope', { 'x-goog-api-key': 'sk-ann-0001' }, 'google'],
  ])(
    'an unknown path gets an error in the shape of its API: %s %s',
    async (method, path, headers, shape) => {
      const answer = await fetch(gateway.url + path, {
        method,
        headers: headers as Record<string, string>,
      });
      expect(answer.status).toBe(404);
      const response = (await answer.json()) as object;
      expect(response).toMatchObject(UNKNOWN_PATH[shape]!);
      expect(JSON.stringify(response)).toContain('POST /v1/messages');
    },
  );

  test('a wrong method is a 405 that lists the allowed methods', async () => {
    for (const [method, path, allow] of [
      ['GET', '/v1/messages', 'POST'],
      ['GET', '/v1/responses', 'POST'],
      ['DELETE', '/v1/models', 'GET'],
      ['PUT', '/v1/memory/a/events/x', 'GET, PATCH, DELETE'],
      ['PUT', '/healthz', 'GET'],
    ] as const) {
      const answer = await ask(path, { method });
      expect([answer.status, answer.headers.get('allow')]).toEqual([405, allow]);
    }
  });

  test('a preflight from a foreign page is refused without CORS headers', async () => {
    const headers = { origin: 'https://evil.example', 'access-control-request-method': 'POST' };
    const answer = await fetch(gateway.url + chat.path, { method: 'OPTIONS', headers });
    expect(answer.status).toBe(403);
    expect([...answer.headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual(
      [],
    );
  });
});

test('metrics are the sum of all processes, whichever process answers', async () => {
  const several = await startGateway(threeProviders(upstream, { workers: 3 }));
  try {
    upstream.clear();
    const count = 12;
    for (let i = 0; i < count; i++) {
      upstream.enqueue(say('counted'));
      await (
        await post(several.url, chat.path, chat.body, { headers: { connection: 'close' } })
      ).text();
    }
    const sum = new RegExp(`^hopgate_requests_total\\{.*status="200"\\} ${count}$`, 'm');
    for (let i = 0; i < 8; i++) {
      const answer = await fetch(`${several.url}/metrics`, { keepalive: false });
      expect(await answer.text()).toMatch(sum);
    }
  } finally {
    await several.stop();
  }
});

describe('start and stop', () => {
  test('the log reports start and stop, and readiness fails before the port closes', async () => {
    const run = await startGateway(threeProviders(upstream, { limits: { drain_delay: 1 } }));
    const named = (name: string) => run.logs().find(({ event }) => event === name);
    expect(await until(() => named('server.started'))).toMatchObject({
      address: run.url,
      pid: run.pid,
      version: expect.any(String),
    });
    run.signal('SIGTERM');
    await until(async () => (await fetch(`${run.url}/readyz`)).status === 503);
    upstream.clear();
    upstream.enqueue(say('still served'));
    expect((await post(run.url, chat.path, chat.body)).status).toBe(200);
    expect(await run.exited).toBe(0);
    expect(named('server.stopped')).toMatchObject({ pid: run.pid });
    await run.stop();
  });
});
