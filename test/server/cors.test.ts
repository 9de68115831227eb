/** Pages of other origins: who may read what, through the whole server. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { environmentFrom } from '../../src/config/environment.ts';
import { parseConfig } from '../../src/config/load.ts';
import { type FakeUpstream, startFakeUpstream } from '../support/fake-upstream/index.ts';
import { type InProcess, startInProcess } from '../support/in-process.ts';

const ORIGIN = 'https://chat.example.com';
const APP = 'app://obsidian.md';
const KEY = 'key-of-a-page';
let upstream: FakeUpstream;
const gateways: InProcess[] = [];

const config = (cors: readonly string[] | undefined, auth: unknown = { keys: [KEY] }) => ({
  listen: { address: '127.0.0.1:0', ...(cors && { cors }) },
  auth,
  providers: {
    chat: {
      protocol: 'openai-chat',
      base_url: upstream.baseUrl('openai-chat'),
      keys: ['sk-up'],
      models: ['m'],
    },
  },
  samples: { mode: 'off' },
});

async function start(...of: Parameters<typeof config>): Promise<InProcess> {
  const gateway = await startInProcess(config(...of));
  gateways.push(gateway);
  return gateway;
}

let listed: InProcess;
let any: InProcess;
let off: InProcess;
let open: InProcess;
beforeAll(async () => {
  upstream = await startFakeUpstream();
  listed = await start([ORIGIN, APP]);
  any = await start(['*']);
  off = await start(undefined);
  open = await start([ORIGIN], {});
});
afterAll(async () => {
  for (const gateway of gateways) await gateway.stop();
  await upstream.stop();
});

const ask = (gateway: InProcess, path: string, headers: Record<string, string>, body?: unknown) =>
  fetch(gateway.url + path, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${KEY}`, ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });

const preflight = (gateway: InProcess, path: string, origin: string, names: string) =>
  fetch(gateway.url + path, {
    method: 'OPTIONS',
    headers: {
      origin,
      'access-control-request-method': 'POST',
      'access-control-request-headers': names,
    },
  });

const corsOf = ({ headers }: Response) =>
  [...headers.keys()].filter((name) => name.startsWith('access-control-'));

const ENDPOINTS = [
  '/v1/chat/completions',
  '/v1/responses',
  '/v1/messages',
  '/v1/messages/count_tokens',
  '/v1beta/models/m:streamGenerateContent',
  '/v1/models',
  '/v1/embeddings',
  '/v1/usage',
  '/v1/memory/spaces',
  '/v1/v1/chat/completions',
];

describe('a preflight', () => {
  test.each(ENDPOINTS)('of %s by a listed origin says what may be sent', async (path) => {
    for (const origin of [ORIGIN, APP]) {
      const asked =
        'Authorization, x-api-key,x-goog-api-key,content-type,anthropic-version,anthropic-dangerous-direct-browser-access,openai-beta,x-stainless-os,x-evil';
      const answer = await preflight(listed, path, origin, asked);
      expect(answer.status).toBe(204);
      expect(answer.headers.get('access-control-allow-origin')).toBe(origin);
      expect(answer.headers.get('vary')).toContain('origin');
      const allowed = answer.headers.get('access-control-allow-headers')!.split(', ');
      expect(allowed).toEqual(asked.toLowerCase().split(/, ?/).slice(0, -1));
      expect(answer.headers.get('access-control-allow-methods')).toContain('POST');
      expect(answer.headers.has('access-control-allow-credentials')).toBe(false);
    }
  });

  test.each([
    ['another origin', () => listed, 'https://evil.example.com', '/v1/responses'],
    ['a name that begins like a listed one', () => listed, `${ORIGIN}.evil.com`, '/v1/responses'],
    ['another port', () => listed, `${ORIGIN}:8443`, '/v1/responses'],
    ['the origin null', () => listed, 'null', '/v1/responses'],
    ['any origin, where it is off', () => off, ORIGIN, '/v1/responses'],
    ['the page', () => listed, ORIGIN, '/ui/api/samples'],
    ['the page by another way', () => listed, ORIGIN, '//ui/api/samples'],
    ['the page in escapes', () => listed, ORIGIN, '/%75i/api/samples'],
    ['the admin API', () => any, ORIGIN, '/admin/v1/keys'],
  ] as const)('%s is refused', async (_, gateway, origin, path) => {
    const answer = await preflight(gateway(), path, origin, 'authorization');
    expect(answer.status).toBeGreaterThanOrEqual(400);
    expect(corsOf(answer)).toEqual([]);
  });
});

describe('an answer', () => {
  const chat = (stream: boolean) => ({
    model: 'm',
    stream,
    messages: [{ role: 'user', content: 'hi' }],
  });

  test.each([
    ['a whole one', chat(false), 200],
    ['a stream', chat(true), 200],
    ['an error', { ...chat(false), model: 'unknown' }, 404],
    ['a body that is no JSON', 'nonsense', 400],
  ] as const)('%s can be read by a listed origin, with its headers', async (_, body, status) => {
    const answer = await ask(listed, '/v1/chat/completions', { origin: ORIGIN }, body);
    expect(answer.status).toBe(status);
    expect(answer.headers.get('access-control-allow-origin')).toBe(ORIGIN);
    expect(answer.headers.get('vary')).toContain('origin');
    expect(answer.headers.get('access-control-expose-headers')).toContain('x-hopgate-request-id');
    expect(answer.headers.has('access-control-allow-credentials')).toBe(false);
    expect((await answer.text()).length).toBeGreaterThan(0);
  });

  test('so can a missing key, a path that is none, and a list', async () => {
    for (const [path, headers, status] of [
      ['/v1/models', { authorization: '' }, 401],
      ['/v1/nothing', {}, 404],
      ['/v1/models', {}, 200],
    ] as const) {
      const answer = await ask(listed, path, { ...headers, origin: APP });
      expect([answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([
        status,
        APP,
      ]);
    }
  });

  test('"*" is every origin', async () => {
    const answer = await ask(any, '/v1/models', { origin: 'https://anywhere.example.com' });
    expect(answer.headers.get('access-control-allow-origin')).toBe('*');
  });

  test('of another origin, of none, and of the page has no such header', async () => {
    const evil = await ask(listed, '/v1/models', { origin: 'https://evil.example.com' });
    expect(corsOf(evil)).toEqual([]);
    expect(evil.headers.get('vary')).toContain('origin');
    expect(corsOf(await ask(listed, '/v1/models', {}))).toEqual([]);
    expect(corsOf(await ask(off, '/v1/models', { origin: ORIGIN }))).toEqual([]);
    for (const path of ['/ui', '/ui/api/samples', '/admin/v1/keys', '//admin/v1/keys']) {
      expect(corsOf(await ask(listed, path, { origin: ORIGIN }))).toEqual([]);
    }
  });

  test('without keys, a listed origin alone may ask', async () => {
    const answer = await ask(open, '/v1/models', { origin: ORIGIN });
    expect([answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([
      200,
      ORIGIN,
    ]);
    const evil = await ask(open, '/v1/models', { origin: 'https://evil.example.com' });
    expect([evil.status, corsOf(evil)]).toEqual([403, []]);
  });

  test('follows a reload', async () => {
    const gateway = await start(undefined);
    gateway.reload(config([ORIGIN]));
    const answer = await ask(gateway, '/v1/models', { origin: ORIGIN });
    expect(answer.headers.get('access-control-allow-origin')).toBe(ORIGIN);
  });
});

test.each([
  ['https://chat.example.com/', 'must be an origin'],
  ['https://Chat.example.com', 'must be an origin'],
  ['https://chat.example.com:443', 'must be an origin'],
  ['https://*.example.com', 'must be an origin'],
  ['chat.example.com', 'must be an origin'],
  ['null', 'must be an origin'],
  ['*', 'need a key'],
])('listen.cors: %s is refused in words', (origin, words) => {
  const text = JSON.stringify({ ...config([origin], {}) });
  const loaded = parseConfig(text, '/x/hopgate.yaml', environmentFrom({}, '/nowhere'));
  expect(loaded.ok ? [] : loaded.problems.map(({ message }) => message)).toEqual([
    expect.stringContaining(words),
  ]);
});
