/** The admin API over HTTP: who may ask, one shape of errors, names of unknown fields, versions, pages, and what keys then may do. */

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { type InProcess, startInProcess } from '../support/in-process.ts';

setDefaultTimeout(60_000);

const ADMIN = 'an-admin-key-of-tests';
const CLIENT = 'a-client-key-of-tests';
let gateway: InProcess;
let off: InProcess;

const providers = {
  demo: { protocol: 'openai-chat', base_url: 'demo:', models: ['demo', 'other'] },
  second: { protocol: 'openai-chat', base_url: 'demo:', models: ['demo-2'] },
};

beforeAll(async () => {
  const samples = { mode: 'off' };
  gateway = await startInProcess({
    providers,
    samples,
    aliases: { fast: 'second/demo-2' },
    routes: [
      { name: 'mixed', when: { model: 'mixed' }, to: ['second/demo-2', 'demo/demo'] },
      { name: 'only', when: { model: 'only' }, to: ['demo/demo'] },
      { name: 'taken', when: { model: 'other' }, to: ['demo/other'] },
    ],
    auth: {
      admin_keys: [ADMIN],
      keys: [{ name: 'fixed', key: CLIENT, models: ['demo/*'] }],
    },
  });
  off = await startInProcess({ providers, samples, auth: { keys: [CLIENT] } });
});
afterAll(() => Promise.all([gateway?.stop(), off?.stop()]));

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: the tests look at JSON of many shapes
  readonly body: any;
}

async function admin(
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
  key = ADMIN,
): Promise<Answer> {
  const response = await fetch(`${gateway.url}/admin/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, ...headers },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  return { status: response.status, headers: response.headers, body: await response.json() };
}

async function chat(key: string, model = 'demo'): Promise<Answer> {
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello.' }] }),
  });
  return { status: response.status, headers: response.headers, body: await response.json() };
}

async function modelsOf(key: string): Promise<string[]> {
  const response = await fetch(`${gateway.url}/v1/models`, {
    headers: { authorization: `Bearer ${key}` },
  });
  const { data } = (await response.json()) as { data: { id: string }[] };
  return data.map(({ id }) => id).sort();
}

const made = async (body: Record<string, unknown>) =>
  (await admin('POST', '/keys', { name: 'k', ...body })).body as { id: string; key: string };

describe('who may ask', () => {
  test.each([
    ['GET', '/keys'],
    ['POST', '/keys'],
    ['GET', '/keys/x'],
    ['PATCH', '/keys/x'],
    ['DELETE', '/keys/x'],
    ['POST', '/keys/x/rotate'],
    ['GET', '/audit'],
    ['GET', '/audit/verify'],
    ['GET', '/nothing'],
  ])('%s %s: refused without an admin key', async (method, path) => {
    const { key } = await made({});
    const asked = method === 'GET' ? undefined : {};
    expect((await admin(method, path, asked, {}, 'wrong-key')).status).toBe(401);
    for (const client of [CLIENT, key]) {
      const { status, body } = await admin(method, path, asked, {}, client);
      expect([status, body.error.code]).toEqual([403, 'not_an_admin_key']);
    }
    const bare = await fetch(`${gateway.url}/admin/v1${path}`, { method });
    expect(bare.status).toBe(401);
  });

  test('without admin keys the API is off', async () => {
    const response = await fetch(`${off.url}/admin/v1/keys`, {
      headers: { authorization: `Bearer ${CLIENT}` },
    });
    expect(response.status).toBe(404);
    expect(await response.text()).toContain('auth.admin_keys');
  });

  test('an admin key serves no model request and lists no model', async () => {
    const { status, body } = await chat(ADMIN);
    expect([status, body.error.code]).toEqual([401, 'admin_key']);
    const models = await fetch(`${gateway.url}/v1/models`, {
      headers: { 'x-api-key': ADMIN },
    });
    expect(models.status).toBe(401);
  });
});

describe('errors have one shape, whatever the client sends along', () => {
  test.each<[string, string, unknown, Record<string, string>, number, string, string | null]>([
    ['GET', '/keys/hk_x', undefined, {}, 404, 'key_not_found', null],
    ['GET', '/keys?limt=3', undefined, {}, 400, 'invalid_request', 'limt'],
    ['GET', '/keys?limit=0', undefined, {}, 400, 'invalid_request', 'limit'],
    ['GET', '/audit?before=x', undefined, {}, 400, 'invalid_request', 'before'],
    ['POST', '/keys', '{"name":', {}, 400, 'invalid_request', null],
    ['POST', '/keys', '[]', {}, 400, 'invalid_request', null],
    ['POST', '/keys', { name: 'x', modles: [] }, {}, 400, 'invalid_field', 'modles'],
    ['POST', '/keys', { name: 'x'.repeat(300) }, {}, 400, 'invalid_field', 'name'],
    ['POST', '/keys', `{"name":"${'x'.repeat(300_000)}"}`, {}, 413, 'too_large', null],
    [
      'POST',
      '/keys',
      { name: 'x' },
      { 'idempotency-key': 'a b' },
      400,
      'invalid_request',
      'Idempotency-Key',
    ],
    ['PATCH', '/keys/fixed', {}, {}, 409, 'configured_key', null],
    ['DELETE', '/keys/fixed', undefined, {}, 409, 'configured_key', null],
    ['DELETE', '/keys/hk_x', undefined, { 'if-match': 'abc' }, 400, 'invalid_request', 'If-Match'],
    ['PUT', '/keys', {}, {}, 404, 'unknown_path', null],
    ['GET', '/usages', undefined, {}, 404, 'unknown_path', null],
  ])('%s %s %j', async (method, path, body, headers, status, code, param) => {
    const answer = await admin(method, path, body, { 'anthropic-version': 'x', ...headers });
    expect([answer.status, answer.body]).toEqual([
      status,
      {
        error: { type: expect.any(String), code, message: expect.any(String), param },
      },
    ]);
  });
});

describe('a key', () => {
  test('is shown once, used, changed, rotated, blocked and revoked', async () => {
    const created = await admin('POST', '/keys', { name: 'ci', labels: { team: 'web' } });
    expect([
      created.status,
      created.headers.get('etag'),
      created.headers.get('cache-control'),
    ]).toEqual([201, '"1"', 'no-store']);
    const { id, key } = created.body;
    expect(key.startsWith(`${id}_`)).toBe(true);
    expect((await chat(key)).status).toBe(200);
    const shown = await admin('GET', `/keys/${id}`);
    expect(shown.body).toMatchObject({ id, name: 'ci', labels: { team: 'web' }, source: 'admin' });
    expect(JSON.stringify(shown.body)).not.toContain(key.slice(-44));

    const stale = await admin('PATCH', `/keys/${id}`, { name: 'x' }, { 'if-match': '"7"' });
    expect([stale.status, stale.body.error.code]).toEqual([412, 'version_mismatch']);
    const patched = await admin('PATCH', `/keys/${id}`, { name: 'ci-2' }, { 'if-match': '"1"' });
    expect([patched.status, patched.headers.get('etag')]).toEqual([200, '"2"']);

    const rotated = await admin('POST', `/keys/${id}/rotate`, { grace: 60 });
    expect([rotated.status, rotated.body.id]).toEqual([201, id]);
    expect([(await chat(key)).status, (await chat(rotated.body.key)).status]).toEqual([200, 200]);

    await admin('PATCH', `/keys/${id}`, { blocked: true });
    const blocked = await chat(rotated.body.key);
    expect([blocked.status, blocked.body.error.code]).toEqual([401, 'key_blocked']);
    await admin('PATCH', `/keys/${id}`, { blocked: false, expires: '2020-01-01' });
    expect((await chat(key)).body.error.code).toBe('key_expired');
    const revoked = await admin('DELETE', `/keys/${id}`);
    expect([revoked.status, typeof revoked.body.revoked]).toEqual([200, 'string']);
    expect((await chat(key)).body.error.code).toBe('invalid_api_key');
    const log = gateway.lines.join('\n');
    expect(log).toContain('"keys.changed"');
    const audit = JSON.stringify((await admin('GET', `/audit?key=${id}`)).body);
    for (const secret of [key, rotated.body.key, ADMIN]) {
      expect(log).not.toContain(secret.slice(-20));
      expect(audit).not.toContain(secret.slice(-20));
    }
  });

  test('the same Idempotency-Key makes one key', async () => {
    const headers = { 'idempotency-key': 'once' };
    const first = await admin('POST', '/keys', { name: 'once' }, headers);
    const second = await admin('POST', '/keys', { name: 'once' }, headers);
    expect(second.body).toEqual(first.body);
    const other = await admin('POST', '/keys', { name: 'twice' }, headers);
    expect([other.status, other.body.error.code]).toEqual([409, 'idempotency_key_reused']);
  });

  test('pages list the configured keys first, then each other key once', async () => {
    for (let i = 0; i < 5; i++) await made({ name: `page ${i}` });
    const all = (await admin('GET', '/keys?limit=1000')).body.data as { id: string }[];
    expect(all[0]).toMatchObject({ id: 'fixed', source: 'configuration', models: ['demo/*'] });
    expect(JSON.stringify(all)).not.toContain(CLIENT);
    const ids: string[] = [];
    for (let path = '/keys?limit=2'; ; ) {
      const { data, has_more, next } = (await admin('GET', path)).body;
      ids.push(...data.map(({ id }: { id: string }) => id));
      if (!has_more) break;
      path = `/keys?limit=2&after=${next}`;
    }
    expect(ids).toEqual(all.map(({ id }) => id));
  });

  test('budgets of keys made at run time are reported until their key is revoked', async () => {
    const { id } = await made({ name: 'paid', budgets: [{ name: 'own', usd: 5, per: 'day' }] });
    const { body } = await admin('GET', '/budgets');
    const own = body.data.filter(({ name }: { name: string }) => name.endsWith('own'));
    expect(own).toMatchObject([{ usd: 5, per: 'day', spent_usd: 0, remaining_usd: 5 }]);
    await admin('DELETE', `/keys/${id}`);
    const left = (await admin('GET', '/budgets')).body.data as { id: string }[];
    expect(left.map((one) => one.id)).not.toContain(own[0].id);
  });

  test('the audit is whole, and comes in pages', async () => {
    const { body } = await admin('GET', '/audit/verify');
    expect(body).toMatchObject({ valid: true, fault: null });
    const page = (await admin('GET', '/audit?limit=2')).body;
    expect([page.data.length, page.has_more]).toEqual([2, true]);
    const next = (await admin('GET', `/audit?limit=2&before=${page.next}`)).body;
    expect(next.data[0].seq).toBe(page.next - 1);
    expect(page.data[0].actor).toMatch(/^admin:key-[0-9a-f]{6}$/);
  });
});

describe('what a key may use', () => {
  test.each([
    [['demo/*'], 'demo', 200],
    [['demo/*'], 'fast', 403],
    [['demo/*'], 'second/demo-2', 403],
    [['second/*'], 'fast', 200],
    [['fast'], 'fast', 200],
    [['fast'], 'second/demo-2', 403],
    [[], 'demo', 403],
  ])('%j asked for %s: %i', async (models, model, status) => {
    const { key } = await made({ models });
    const answer = await chat(key, model);
    expect(answer.status).toBe(status);
    if (status === 403) expect(answer.body.error.code).toBe('model_not_allowed');
  });

  test('a forbidden target of a route is passed over', async () => {
    const { key } = await made({ models: ['demo/*'] });
    const answer = await chat(key, 'mixed');
    expect([answer.status, answer.headers.get('x-hopgate-target')]).toEqual([200, 'demo/demo']);
  });

  test('a forbidden route is refused by name', async () => {
    const { key } = await made({ routes: ['mixed'] });
    expect((await chat(key, 'mixed')).status).toBe(200);
    const answer = await chat(key, 'only');
    expect([answer.status, answer.body.error.code]).toEqual([403, 'route_not_allowed']);
    expect(answer.body.error.message).toContain('only');
  });

  test('the list of models has only what the key may use', async () => {
    expect(await modelsOf(CLIENT)).toEqual([
      'demo',
      'demo/demo',
      'demo/other',
      'mixed',
      'only',
      'other',
    ]);
    const { key } = await made({ models: ['fast', 'demo/other'] });
    expect(await modelsOf(key)).toEqual(['demo/other', 'fast', 'other']);
    const one = (name: string) =>
      fetch(`${gateway.url}/v1/models/${name}`, { headers: { authorization: `Bearer ${key}` } });
    expect([(await one('fast')).status, (await one('demo')).status]).toEqual([200, 404]);
  });

  test('a listed name that a forbidden route takes is in no list', async () => {
    const { key } = await made({ routes: ['mixed'] });
    const headers = { authorization: `Bearer ${key}` };
    expect((await chat(key, 'other')).body.error.code).toBe('route_not_allowed');
    expect((await fetch(`${gateway.url}/v1/models/other`, { headers })).status).toBe(404);
    const names = await modelsOf(key);
    expect(names).toContain('mixed');
    expect(names).not.toContain('other');
  });

  test('a hosted tool that the key may not use is refused, one that it may goes on', async () => {
    const ask = async (key: string) => {
      const response = await fetch(`${gateway.url}/v1/responses`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'demo', input: 'Hello.', tools: [{ type: 'web_search' }] }),
      });
      return [response.status, await response.text()] as const;
    };
    const without = await made({ tools: ['web_fetch'] });
    const [status, text] = await ask(without.key);
    expect([status, text.includes('tool_not_allowed')]).toEqual([403, true]);
    const allowed = await made({ tools: ['web_*'] });
    expect((await ask(allowed.key))[0]).toBe(200);
  });

  const contents = [{ role: 'user', parts: [{ text: 'Hello.' }] }];
  const messages = [{ role: 'user', content: 'Hello.' }];
  const input = 'Hello.';
  const model = 'demo';
  test.each([
    ['/v1/responses', { model, input, tools: [{ type: 'mcp', server_url: 'https://a.example' }] }],
    ['/v1/responses', { model, input, tools: [{ type: 'file_search', vector_store_ids: ['v'] }] }],
    ['/v1/responses', { model, input, tools: [{ type: 'image_generation' }] }],
    [
      '/v1/responses',
      { model, input, tools: [{ type: 'shell', environment: { type: 'container_auto' } }] },
    ],
    ['/v1/chat/completions', { model, messages, tools: [{ type: 'retrieval', retrieval: {} }] }],
    [
      '/v1/messages',
      { model, max_tokens: 9, messages, tools: [{ type: 'mcp_toolset', mcp_server_name: 'a' }] },
    ],
    ['/v1/messages', { model, max_tokens: 9, messages, mcp_servers: [{ type: 'url', name: 'a' }] }],
    ['/v1beta/models/demo:generateContent', { contents, tools: [{ googleMaps: {} }] }],
  ])('a tool of the vendor that has no common name is refused, too: %s %j', async (path, body) => {
    const { key } = await made({ tools: ['web_*'] });
    const post = (headers: Record<string, string>, text: string) =>
      fetch(`${gateway.url}${path}`, { method: 'POST', headers, body: text });
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    expect((await post(headers, JSON.stringify(body))).status).toBe(403);
  });

  test('a hosted tool whose name is written in escapes is refused', async () => {
    const { key } = await made({ tools: [] });
    const answer = await fetch(`${gateway.url}/v1/responses`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}` },
      body: '{"model":"demo","input":"Hello.","tools":[{"type":"\\u0077\\u0065b_search"}]}',
    });
    expect(answer.status).toBe(403);
  });

  test('tools that the client runs need no permission', async () => {
    const { key } = await made({ tools: [] });
    const types = ['local_shell', 'shell', 'apply_patch', 'tool_search', 'computer_use_preview'];
    const answer = await fetch(`${gateway.url}/v1/responses`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}` },
      body: JSON.stringify({ model, input, tools: types.map((type) => ({ type })) }),
    });
    expect(answer.status).toBe(200);
  });
});

test('the page shows a key its own exchanges', async () => {
  const { key, id } = await made({});
  const response = await fetch(`${gateway.url}/ui/api/info`, {
    headers: { authorization: `Bearer ${key}` },
  });
  expect(await response.json()).toMatchObject({ auth: true, key: id, sees: 'own' });
});

describe('reports', () => {
  test('keys are searched in their names, labels and models, those of the configuration too', async () => {
    const { id } = await made({ name: 'Searched One', labels: { team: 'Quartz' } });
    const found = async (search: string) =>
      (await admin('GET', `/keys?search=${encodeURIComponent(search)}`)).body.data.map(
        (key: { id: string }) => key.id,
      );
    expect(await found('quartz')).toEqual([id]);
    expect(await found('SEARCHED o')).toEqual([id]);
    expect(await found(id)).toEqual([id]);
    expect(await found('fixed')).toContain('fixed');
    expect(await found('100%_of nothing')).toEqual([]);
  });

  test('budgets of keys made at run time are told with their key; those of revoked keys are not', async () => {
    const { id } = await made({ name: 'spender', budgets: [{ usd: 3, per: 'day', warn: [0.9] }] });
    const mine = async () =>
      (await admin('GET', '/budgets?limit=1000')).body.data.filter(
        (budget: { key: string }) => budget.key === id,
      );
    expect(await mine()).toEqual([
      expect.objectContaining({ key_name: 'spender', usd: 3, spent_usd: 0, warn: [0.9] }),
    ]);
    await admin('DELETE', `/keys/${id}`);
    expect(await mine()).toEqual([]);
    expect((await admin('GET', '/budgets?limt=3')).status).toBe(400);
  });

  test('health names every provider, and the places of those that were used', async () => {
    const { key } = await made({ models: ['demo'] });
    await chat(key);
    const { body } = await admin('GET', '/health');
    expect(body.workers).toBe(1);
    expect(body.data.map(({ provider }: { provider: string }) => provider)).toEqual([
      'demo',
      'second',
    ]);
    const [target] = body.data[0].targets;
    expect(target).toMatchObject({ target: 'demo/demo', state: 'serving', rest: null });
    expect(target.places).toEqual([
      {
        key: null,
        state: 'serving',
        rest: null,
        waiting: 0,
        quotas_seen: null,
        quotas: [],
        last_failure: null,
      },
    ]);
  });

  test('a key is told by id and name wherever its requests, tokens, refusals and rows are counted', async () => {
    const limits = { requests_per_minute: 1 };
    const { id, key } = await made({ name: 'metered', models: ['demo'], limits });
    await chat(key);
    await chat(key);
    const labels = `{key="${id}",key_name="metered",`;
    const metrics = await (
      await fetch(`${gateway.url}/metrics`, { headers: { authorization: `Bearer ${ADMIN}` } })
    ).text();
    const counted = metrics.split('\n').filter((line) => line.includes(labels));
    expect(new Set(counted.map((line) => line.slice(0, line.indexOf('{'))))).toEqual(
      new Set([
        'hopgate_key_requests_total',
        'hopgate_key_tokens_total',
        'hopgate_limit_refusals_total',
      ]),
    );
    const { body } = await admin('GET', `/spend?key=${id}`);
    expect(body.data).toEqual([expect.objectContaining({ key: id, key_name: 'metered' })]);
    const csv = await fetch(`${gateway.url}/admin/v1/spend?key=${id}&format=csv`, {
      headers: { authorization: `Bearer ${ADMIN}` },
    });
    const [head, row] = (await csv.text()).split('\r\n');
    expect(head).toMatch(/,key_name,requests(,|$)/);
    expect(row).toMatch(/,metered,1(,|$)/);
  });

  test('usage by key has the names of keys', async () => {
    const { id, key } = await made({ name: 'by its name', models: ['demo'] });
    await chat(key);
    const { body } = await admin('GET', '/usage?by=key&step=day&top=50');
    const mine = body.data.filter((group: { name: string }) => group.name === id);
    expect(mine).toEqual([expect.objectContaining({ key_name: 'by its name', tries: 1 })]);
    const csv = await fetch(`${gateway.url}/admin/v1/usage?by=key&format=csv`, {
      headers: { authorization: `Bearer ${ADMIN}` },
    });
    expect(csv.headers.get('content-type')).toBe('text/csv; charset=utf-8');
    expect(await csv.text()).toContain(`${id},by its name,`);
  });
});
