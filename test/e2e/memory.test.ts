/** The memory API through the compiled binary: responses against the OpenAPI document, access, crashes, vectors. */

import { Database } from 'bun:sqlite';
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isObject, type Json, type JsonObject } from '../../src/lib/json/json.ts';
import { type Gateway, startGateway } from '../support/binary.ts';
import { until } from '../support/until.ts';
import { described, type OpenApi } from './memory-openapi.ts';

setDefaultTimeout(60_000);

const PROVIDERS = {
  p: { protocol: 'openai-chat', base_url: 'http://127.0.0.1:9/v1', keys: ['sk-p'], models: ['m'] },
};
const folder = mkdtempSync(join(tmpdir(), 'hopgate-e2e-memory-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: JsonObject;
}

interface Send {
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
}

/** One request to the API, below `/v1/memory`. */
async function send(gateway: Gateway, method: string, path: string, { body, headers }: Send = {}) {
  const response = await fetch(`${gateway.url}/v1/memory${path}`, {
    method,
    headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = undefined;
  }
  return {
    status: response.status,
    headers: response.headers,
    text,
    body: (isObject(value as Json) ? value : {}) as JsonObject,
  } satisfies Answer;
}
const texts = ({ body }: Answer) => (body.events as { text: string }[]).map(({ text }) => text);

describe('every operation', () => {
  let gateway: Gateway;
  let api: OpenApi;
  beforeAll(async () => {
    gateway = await startGateway({
      providers: PROVIDERS,
      memory: { limits: { text: 50, events: 5 } },
    });
    api = described((await send(gateway, 'GET', '/openapi.json')).body);
  });
  afterAll(() => gateway.stop());

  /** Sends a request and compares the response with the document. */
  async function call(method: string, path: string, more?: Send): Promise<Answer> {
    const answer = await send(gateway, method, path, more);
    expect(api.faults(method, `/v1/memory${path}`, answer)).toEqual([]);
    return answer;
  }

  test('every operation answers as documented: add, list, get, recall, export, add again, delete, erase', async () => {
    const space = '/%E7%BB%84%2F1%20%26';
    const one = await call('POST', `${space}/events`, {
      body: {
        text: '小明对花生过敏',
        source: '小明',
        tags: ['健康'],
        importance: 0.9,
        time: '2026-01-02T03:04:05Z',
      },
    });
    expect([one.status, one.body]).toMatchObject([
      201,
      {
        text: '小明对花生过敏',
        time: Date.parse('2026-01-02T03:04:05Z'),
        tags: ['健康'],
        importance: 0.9,
      },
    ]);
    const several = await call('POST', `${space}/events`, {
      body: { events: [{ text: 'Bob moved to Berlin' }, { text: '今晚吃火锅' }] },
    });
    expect([several.status, texts(several)]).toEqual([201, ['Bob moved to Berlin', '今晚吃火锅']]);

    const page = await call('GET', `${space}/events?limit=2&order=asc`);
    expect(texts(page)).toEqual(['小明对花生过敏', 'Bob moved to Berlin']);
    const rest = await call(
      'GET',
      `${space}/events?limit=2&order=asc&cursor=${page.body.next_cursor}`,
    );
    expect([texts(rest), rest.body.next_cursor]).toEqual([['今晚吃火锅'], null]);
    expect(texts(await call('GET', `${space}/events?tag=%E5%81%A5%E5%BA%B7`))).toHaveLength(1);
    expect(texts(await call('GET', `${space}/events?until=2026-06-01`))).toEqual([
      '小明对花生过敏',
    ]);

    const got = await call('GET', `${space}/events/${one.body.id}`);
    expect(got.body).toEqual(one.body);
    const found = await call('POST', `${space}/recall`, { body: { query: '火锅', limit: 1 } });
    expect(texts(found)).toEqual(['今晚吃火锅']);
    expect(
      texts(await call('POST', `${space}/recall`, { body: { query: 'where did bob move' } }))[0],
    ).toBe('Bob moved to Berlin');
    expect(texts(await call('POST', '/elsewhere/recall', { body: { query: 'bob' } }))).toEqual([]);

    const out = await call('GET', `${space}/export`);
    expect(out.text.trim().split('\n')).toHaveLength(3);
    const lines = { body: out.text, headers: { 'content-type': 'application/x-ndjson' } };
    expect((await call('POST', `${space}/events`, lines)).body).toEqual({ added: 0, known: 3 });
    expect((await call('POST', '/copy/events', lines)).body).toEqual({ added: 3, known: 0 });
    expect((await call('GET', '/copy/export')).text).toBe(out.text);

    expect((await call('DELETE', `${space}/events/${one.body.id}`)).body).toEqual({
      id: one.body.id!,
      deleted: true,
    });
    expect((await call('GET', `${space}/events/${one.body.id}`)).status).toBe(404);
    expect((await call('DELETE', space)).body).toEqual({
      space: '组/1 &',
      erased: true,
      events: 2,
      samples: 0,
    });
    expect(texts(await call('GET', `${space}/events`))).toEqual([]);
    expect(texts(await call('GET', '/copy/events'))).toHaveLength(3);
  });

  test.each<[string, string, Send, number, string | null, RegExp]>([
    ['POST', '/s/events', { body: '{' }, 400, null, /not valid JSON/],
    ['POST', '/s/events', { body: [] }, 400, null, /object/],
    ['POST', '/s/events', { body: { txt: 'x' } }, 400, 'text', /text/],
    ['POST', '/s/events', { body: { text: 'x', tag: ['y'] } }, 400, 'tag', /tag/],
    ['POST', '/s/events', { body: { text: 5 } }, 400, 'text', /string/],
    ['POST', '/s/events', { body: { text: ' ' } }, 400, 'text', /needs a text/],
    ['POST', '/s/events', { body: { text: 'x', time: 'soon' } }, 400, 'time', /ISO 8601/],
    ['POST', '/s/events', { body: { events: [] } }, 400, 'events', /events/],
    [
      'POST',
      '/s/events',
      { body: { events: [{ text: 'x' }, { text: 'x', importance: 2 }] } },
      400,
      'events[1].importance',
      /1/,
    ],
    [
      'POST',
      '/s/events',
      { body: { events: [{ text: 'x'.repeat(51) }] } },
      413,
      'events[0].text',
      /memory\.limits\.text/,
    ],
    [
      'POST',
      '/s/events',
      { body: { events: Array.from({ length: 1001 }, () => ({ text: 'x' })) } },
      413,
      'events',
      /1000/,
    ],
    [
      'POST',
      '/s/events',
      { body: { events: Array.from({ length: 6 }, () => ({ text: 'x' })) } },
      413,
      null,
      /memory\.limits\.events/,
    ],
    [
      'POST',
      // The lines before the wrong one are stored.
      '/lines/events',
      { body: '{"text":"a"}\n{"text":', headers: { 'content-type': 'application/x-ndjson' } },
      400,
      'line 2',
      /Line 2/,
    ],
    [
      'POST',
      '/s/events',
      {
        body: `\n{"text":"${'x'.repeat(51)}"}\n`,
        headers: { 'content-type': 'application/x-ndjson' },
      },
      413,
      'line 2.text',
      /50 characters/,
    ],
    ['POST', '/s/recall', { body: {} }, 400, 'query', /query/],
    ['POST', '/s/recall', { body: { query: 'x', limit: 101 } }, 400, 'limit', /100/],
    ['GET', '/s/events?limit=0', {}, 400, 'limit', /limit/],
    ['GET', '/s/events?since=soon', {}, 400, 'since', /since/],
    ['GET', '/s/events?cursor=abc', {}, 400, 'cursor', /cursor/],
    ['GET', '/s/events/mem_none', {}, 404, 'id', /no event/],
    ['DELETE', '/s/events/mem_none', {}, 404, 'id', /no event/],
    ['GET', '/%FF/events', {}, 400, 'space', /percent-encoded/],
    ['GET', '/a%0Ab/events', {}, 400, 'space', /control/],
    ['GET', `/${'x'.repeat(201)}/events`, {}, 400, 'space', /200/],
  ])('%s %s with %j is %i and names %p', async (method, path, more, status, param, textPart) => {
    const answer = await call(method, path, more);
    expect([answer.status, answer.body.error]).toMatchObject([
      status,
      { param, message: expect.stringMatching(textPart) },
    ]);
    expect(texts(await call('GET', '/s/events'))).toEqual([]);
  });

  test("an unknown operation is reported as such, and the gateway's other pages still work", async () => {
    expect((await send(gateway, 'PUT', '/s/events')).status).toBe(405);
    expect((await send(gateway, 'GET', '/s')).status).toBe(405);
    expect((await send(gateway, 'GET', '/s/nothing')).status).toBe(404);
    expect((await fetch(`${gateway.url}/docs/memory`)).status).toBe(200);
  });
});

describe('access', () => {
  test('keys open only their spaces; foreign pages and large bodies are refused', async () => {
    const gateway = await startGateway({
      providers: PROVIDERS,
      limits: { body_bytes: 2048 },
      memory: { limits: { key_bytes: 40 } },
      auth: {
        keys: [
          { name: 'alice', key: 'key-of-alice', spaces: ['alice', 'family-*'] },
          { name: 'admin', key: 'key-of-admin' },
        ],
      },
    });
    try {
      const as = (key: string, more: Send = {}) => ({
        ...more,
        headers: { authorization: `Bearer ${key}`, ...more.headers },
      });
      const event = { body: { text: 'x' } };
      const status = async (...args: [string, string, Send?]) =>
        (await send(gateway, ...args)).status;
      expect(await status('POST', '/alice/events', event)).toBe(401);
      expect(await status('POST', '/alice/events', as('wrong', event))).toBe(401);
      expect(await status('POST', '/alice/events', as('key-of-alice', event))).toBe(201);
      expect(await status('POST', '/family-1/events', as('key-of-alice', event))).toBe(201);
      for (const [method, path] of [
        ['POST', '/bob/events'],
        ['GET', '/bob/events'],
        ['GET', '/bob/events/mem_1'],
        ['DELETE', '/bob/events/mem_1'],
        ['POST', '/bob/recall'],
        ['GET', '/bob/export'],
        ['DELETE', '/bob'],
        ['GET', '/ALICE/events'],
      ] as const) {
        const answer = await send(
          gateway,
          method,
          path,
          as('key-of-alice', method === 'POST' ? event : {}),
        );
        expect([method, path, answer.status, answer.body.error]).toMatchObject([
          method,
          path,
          403,
          { code: 'space_not_allowed', param: 'space' },
        ]);
      }
      expect(await status('POST', '/bob/events', as('key-of-admin', event))).toBe(201);
      const large = { body: { text: 'x'.repeat(3000) } };
      expect(await status('POST', '/alice/events', as('key-of-alice', large))).toBe(413);
      // The log holds no names of spaces and keys.
      const refused = () => gateway.logs().filter(({ event }) => event === 'memory.refused').length;
      await until(() => refused() === 11);
      // Each has its share, in the same space too.
      const long = { body: { text: 'x'.repeat(39) } };
      const full = await send(gateway, 'POST', '/alice/events', as('key-of-alice', long));
      expect([full.status, full.text.includes('memory.limits.key_bytes')]).toEqual([413, true]);
      expect(await status('POST', '/alice/events', as('key-of-admin', long))).toBe(201);
      expect(gateway.stderr()).not.toMatch(/family-1|key-of/);
    } finally {
      await gateway.stop();
    }
  });

  test('without keys, foreign pages and foreign Hosts are refused', async () => {
    const gateway = await startGateway({ providers: PROVIDERS });
    try {
      const refused = await send(gateway, 'GET', '/s/events', {
        headers: { origin: 'https://evil.test' },
      });
      expect([refused.status, refused.body.error]).toMatchObject([
        403,
        { code: 'origin_not_allowed' },
      ]);
      const rebound = await send(gateway, 'GET', '/s/export', { headers: { host: 'evil.test' } });
      expect(rebound.status).toBe(403);
    } finally {
      await gateway.stop();
    }
  });
});

test('after kill -9, every acknowledged event is stored whole and the file is sound', async () => {
  const path = join(folder, 'crash', 'memory.db');
  const config = { providers: PROVIDERS, memory: { path } };
  const answered = new Set<number>();
  let batch = 0;
  for (let round = 0; round < 3; round++) {
    const gateway = await startGateway(config);
    const dead = gateway.exited;
    const writers = Array.from({ length: 4 }, async () => {
      for (;;) {
        const own = batch++;
        const events = Array.from({ length: 20 }, (_, at) => ({
          text: `batch ${own} event ${at} 火锅`,
        }));
        const answer = await send(gateway, 'POST', '/s/events', { body: { events } }).catch(
          () => undefined,
        );
        if (answer?.status !== 201) return;
        answered.add(own);
      }
    });
    const before = answered.size;
    while (answered.size < before + 5) await Bun.sleep(5);
    await Bun.sleep(round * 100);
    gateway.signal('SIGKILL');
    await dead;
    await Promise.all(writers);
    await gateway.stop();
  }
  expect(answered.size).toBeGreaterThan(10);

  const gateway = await startGateway(config);
  try {
    const out = await send(gateway, 'GET', '/s/export');
    const counts = new Map<number, number>();
    for (const line of out.text.trim().split('\n')) {
      const own = Number(/^batch (\d+) /.exec((JSON.parse(line) as { text: string }).text)![1]);
      counts.set(own, (counts.get(own) ?? 0) + 1);
    }
    expect([...counts.values()].filter((count) => count !== 20)).toEqual([]);
    expect([...answered].filter((own) => !counts.has(own))).toEqual([]);
    const own = [...answered].at(-1)!;
    const found = await send(gateway, 'POST', '/s/recall', {
      body: { query: `batch ${own} 火锅`, limit: 20 },
    });
    expect(texts(found).every((text) => text.startsWith(`batch ${own} `))).toBe(true);
  } finally {
    await gateway.stop();
  }
  const db = new Database(path);
  expect(db.query('PRAGMA integrity_check').get()).toEqual({ integrity_check: 'ok' });
  db.run("INSERT INTO words(words) VALUES ('integrity-check')");
  const { events, said: position } = db
    .query('SELECT events, (SELECT count(*) FROM memory_events) AS said FROM memory_spaces')
    .get() as { events: number; said: number };
  expect(events).toBe(position);
  expect(db.query("SELECT doc FROM vocabulary WHERE term = '1:火锅'").get()).toEqual({
    doc: position,
  });
  db.close();
});

test('the next process completes an erasure that kill -9 cut short, and serves none of its data meanwhile', async () => {
  const path = join(folder, 'half', 'memory.db');
  const config = { providers: PROVIDERS, memory: { path } };
  const first = await startGateway(config);
  for (let at = 0; at < 6; at++) {
    const events = Array.from({ length: 1000 }, (_, n) => ({ text: `zebra ${at} ${n} quagga` }));
    expect((await send(first, 'POST', '/gone/events', { body: { events } })).status).toBe(201);
  }
  const erasing = send(first, 'DELETE', '/gone').catch(() => undefined);
  const reader = new Database(path, { readonly: true });
  const named = () =>
    reader.query("SELECT 1 FROM memory_spaces WHERE name = 'gone'").get() !== null;
  await until(() => !named());
  first.signal('SIGKILL');
  await first.exited;
  await erasing;
  const left = reader.query('SELECT count(*) AS n FROM memory_events').get() as { n: number };
  reader.close();
  expect(left.n).toBeGreaterThan(0);
  await first.stop();

  const second = await startGateway(config);
  try {
    expect(texts(await send(second, 'GET', '/gone/events'))).toEqual([]);
    const bytes = () =>
      ['', '-wal'].map((end) =>
        existsSync(path + end) ? readFileSync(path + end) : Buffer.alloc(0),
      );
    await until(() => !bytes().some((one) => one.includes('quagga')));
  } finally {
    await second.stop();
  }
});

/** A provider with /embeddings: texts about cars are close to each other. */
function embeddings() {
  const received: { key: string | null; body: JsonObject }[] = [];
  const state = { status: 200 };
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const body = (await request.json()) as JsonObject;
      if (!request.url.endsWith('/v1/embeddings')) return new Response('no', { status: 404 });
      received.push({ key: request.headers.get('authorization'), body });
      if (state.status !== 200)
        return Response.json({ error: { message: 'no more' } }, { status: state.status });
      const data = (body.input as string[]).map((text, index) => ({
        index,
        embedding: [
          /car|vehicle|Kia/.test(text) ? 1 : -0.2,
          /boat|ship/.test(text) ? 1 : -0.2,
          0.1,
        ],
      }));
      return Response.json({ data });
    },
  });
  return { server, received, state, url: `http://127.0.0.1:${server.port}/v1` };
}

test('vectors come from a provider with its key; when it fails, word search goes on and log and metrics say so', async () => {
  const { server, received, state, url } = embeddings();
  const gateway = await startGateway({
    providers: {
      vectors: { protocol: 'openai-chat', base_url: url, keys: ['sk-vec-1'], models: ['x'] },
    },
    memory: { embeddings: { provider: 'vectors', model: 'e5' } },
  });
  try {
    const events = [
      { text: 'ordered a used Kia' },
      { text: 'the boat is red' },
      { text: 'tea is ready' },
    ];
    await send(gateway, 'POST', '/s/events', { body: { events } });
    let first = '';
    for (let tries = 0; first === '' && tries < 60; tries++) {
      first =
        texts(await send(gateway, 'POST', '/s/recall', { body: { query: 'Which vehicle?' } }))[0] ??
        '';
      await Bun.sleep(50);
    }
    expect(first).toBe('ordered a used Kia');
    expect(
      received.every(({ key, body }) => key === 'Bearer sk-vec-1' && body.model === 'e5'),
    ).toBe(true);
    state.status = 500;
    const found = await send(gateway, 'POST', '/s/recall', { body: { query: 'boat' } });
    expect([found.status, texts(found)]).toEqual([200, ['the boat is red']]);
    const failed = () => gateway.logs().find(({ event }) => event === 'memory.embeddings.failed');
    await until(failed);
    expect(failed()).toMatchObject({
      level: 'warn',
      message: expect.stringContaining('500: no more'),
    });
    const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
    expect(metrics).toMatch(/hopgate_memory_recall_seconds_count\{kind="hybrid"\} [1-9]/);
    expect(metrics).toMatch(/hopgate_memory_recall_seconds_count\{kind="fallback"\} 1/);
  } finally {
    await gateway.stop();
    server.stop(true);
  }
});

test('an external store gets recall and events with its key, and other operations say why they are unavailable', async () => {
  const requests: { method: string; key: string | null; body: JsonObject }[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const body = (await request.json()) as JsonObject;
      requests.push({ method: request.method, key: request.headers.get('authorization'), body });
      return Response.json({ events: ['她喜欢洋桔梗'] });
    },
  });
  const url = `http://127.0.0.1:${server.port}/memo`;
  const gateway = await startGateway({
    providers: PROVIDERS,
    memory: { url, key: 'memo-key-12345' },
  });
  try {
    const api = described((await send(gateway, 'GET', '/openapi.json')).body);
    const call = async (method: string, path: string, more?: Send) => {
      const answer = await send(gateway, method, path, more);
      expect(api.faults(method, `/v1/memory${path}`, answer)).toEqual([]);
      return answer;
    };
    const found = await call('POST', '/s/recall', { body: { query: '花', limit: 2 } });
    expect(texts(found)).toEqual(['她喜欢洋桔梗']);
    expect((await call('POST', '/s/events', { body: { text: 'x', time: 5 } })).status).toBe(202);
    expect(await call('GET', '/s/events')).toMatchObject({
      status: 501,
      body: { error: { code: 'memory_is_external' } },
    });
    expect((await call('GET', '/s/export')).status).toBe(501);
    for (let tries = 0; requests.length < 2 && tries < 50; tries++) await Bun.sleep(20);
    expect((await call('DELETE', '/s')).body).toEqual({
      space: 's',
      erased: true,
      events: null,
      samples: 0,
    });
    expect(requests.map(({ method, body }) => [method, body])).toEqual([
      ['POST', { space: 's', query: '花', limit: 2 }],
      ['POST', { space: 's', events: [{ text: 'x', time: 5, tags: [], importance: 0.5 }] }],
      ['DELETE', { space: 's' }],
    ]);
    expect(requests.every(({ key }) => key === 'Bearer memo-key-12345')).toBe(true);
    expect(existsSync(join(gateway.home, 'state', 'memory.db'))).toBe(false);
  } finally {
    await gateway.stop();
    server.stop(true);
  }
});

test('a reload switches memory off and on with the same events, and an unused memory creates no file', async () => {
  const config = (memory: object) => JSON.stringify({ providers: PROVIDERS, memory });
  const gateway = await startGateway(config({}));
  const file = join(gateway.home, 'state', 'memory.db');
  const reloads = () => gateway.logs().filter(({ event }) => event === 'config.reloaded').length;
  const reload = async (memory: object) => {
    const before = reloads();
    writeFileSync(gateway.configPath, config(memory));
    gateway.signal('SIGHUP');
    await until(() => reloads() > before);
  };
  try {
    expect(existsSync(file)).toBe(false);
    await send(gateway, 'POST', '/s/events', { body: { text: 'kept' } });
    expect(existsSync(file)).toBe(true);
    await reload({ enabled: false });
    const off = await send(gateway, 'GET', '/s/events');
    expect([off.status, off.body.error]).toMatchObject([
      404,
      { message: expect.stringContaining('memory.enabled') },
    ]);
    await reload({ limits: { text: 10 } });
    expect(texts(await send(gateway, 'GET', '/s/events'))).toEqual(['kept']);
    const long = await send(gateway, 'POST', '/s/events', { body: { text: 'x'.repeat(11) } });
    expect(long.status).toBe(413);
  } finally {
    await gateway.stop();
  }
});
