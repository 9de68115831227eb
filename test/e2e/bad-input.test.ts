/** What clients send wrong: each mistake gets a clear error in the client's protocol, and the process goes on serving. */

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import { allProviders, type Gateway, startGateway } from '../support/binary.ts';
import { type FakeUpstream, say, startFakeUpstream } from '../support/fake-upstream/index.ts';
import { ALL_PROTOCOLS, PROTOCOLS, plainRequest, post, VIA } from './clients.ts';

let upstream: FakeUpstream;
let gateway: Gateway;
const LIMIT = 2_000_000;

beforeAll(async () => {
  upstream = await startFakeUpstream({ models: ['m1', 'gemini-3-m1'] });
  gateway = await startGateway(allProviders(upstream, { limits: { body_bytes: LIMIT } }));
}, 120_000);
afterEach(() => upstream.clear());
afterAll(async () => {
  await gateway?.stop();
  await upstream?.stop();
});

type Body = Record<string, unknown>;
const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`;

for (const protocol of PROTOCOLS) {
  const { path, body } = plainRequest(protocol, VIA[protocol], false);
  const list = protocol === 'openai-responses' ? 'input' : 'messages';
  const send = (more: unknown, headers?: Record<string, string>) =>
    post(gateway.url, path, more, { headers });

  /** The error object, in the client's protocol. */
  const refusal = async (response: Response) => {
    const text = await response.text();
    const reported = JSON.parse(text) as {
      type?: string;
      error: { message: string; type: string };
    };
    expect(reported.error.message.length).toBeGreaterThan(10);
    expect(typeof reported.error.type).toBe('string');
    if (protocol === 'anthropic-messages') expect(reported.type).toBe('error');
    expect(response.headers.get('x-hopgate-request-id')).toMatch(/^req_/);
    // No internals: no stack, no path of a source file.
    expect(text).not.toMatch(/\bat .*\.ts|node_modules|\/src\//);
    return { status: response.status, ...reported.error };
  };

  describe(protocol, () => {
    const bad: [string, unknown][] = [
      ['not JSON', '{"model": "via'],
      ['nothing', ''],
      ['a list', '[]'],
      ['a text', '"hello"'],
      ['null', 'null'],
      ['invalid UTF-8', new Uint8Array([...Buffer.from('{"model":"'), 0xff, 0xfe, 0x22, 0x7d])],
      ['no model', { ...body, model: undefined }],
      ['a number for the model', { ...body, model: 7 }],
      ['no messages', { ...body, [list]: undefined }],
      ['a number for the messages', { ...body, [list]: 7 }],
      ['null for the messages', { ...body, [list]: null }],
      ['messages that are no objects', { ...body, [list]: [7, null, 'x'] }],
      ['a role of a number', { ...body, [list]: [{ role: 7, content: 'x' }] }],
      ['an unknown role', { ...body, [list]: [{ role: 'king', content: 'x' }] }],
      ['a number for content', { ...body, [list]: [{ role: 'user', content: 7 }] }],
      ['parts that are no objects', { ...body, [list]: [{ role: 'user', content: [7] }] }],
      ['a text for the tools', { ...body, tools: 'all' }],
      ['tools that are no objects', { ...body, tools: [7] }],
      ['a text for stream', { ...body, stream: 'yes' }],
      ['nesting without end', `{"model":"${VIA[protocol]}","${list}":${nested(200_000)}}`],
    ];
    test.each(bad)('%s is a 400', async (_name, wrong) => {
      expect((await refusal(await send(wrong))).status).toBe(400);
    });

    test('an unknown model is a 404 that names the model, and no vendor gets the request', async () => {
      const response = await refusal(await send({ ...body, model: 'no-such-model' }));
      expect(response.status).toBe(404);
      expect(response.message).toContain('no-such-model');
      expect(upstream.received).toHaveLength(0);
    });

    test('a body over the limit is a 413, with and without Content-Length', async () => {
      const large = JSON.stringify({ ...body, [list]: 'x'.repeat(LIMIT) });
      expect((await refusal(await send(large))).status).toBe(413);
      const stream = new Blob([large]).stream();
      const response = await fetch(gateway.url + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: stream,
      });
      expect((await refusal(response)).status).toBe(413);
    });

    test('a small compressed body that expands over the limit is a 413', async () => {
      const bomb = Bun.gzipSync(Buffer.alloc(LIMIT * 20, 0x20));
      expect(bomb.length).toBeLessThan(LIMIT);
      const response = await refusal(await send(bomb, { 'content-encoding': 'gzip' }));
      expect(response.status).toBe(413);
    });

    test.each(['gzip', 'zstd'] as const)('a body encoded as %s is read', async (coding) => {
      upstream.enqueue(say('read'));
      const bytes = Buffer.from(JSON.stringify(body));
      const packed = coding === 'gzip' ? Bun.gzipSync(bytes) : Bun.zstdCompressSync(bytes);
      const response = await send(new Uint8Array(packed), { 'content-encoding': coding });
      expect(await response.text()).toContain('read');
      expect(response.status).toBe(200);
    });

    test('a body that does not match its Content-Encoding is a 400', async () => {
      const response = await refusal(
        await send(JSON.stringify(body), { 'content-encoding': 'gzip' }),
      );
      expect(response.status).toBe(400);
    });

    test('a wrong method is an error in JSON', async () => {
      const response = await fetch(gateway.url + path);
      expect([404, 405, 426]).toContain(response.status);
      expect(JSON.parse(await response.text())).toHaveProperty('error');
    });

    for (const vendor of ALL_PROTOCOLS) {
      test(`ten thousand messages reach ${vendor}`, async () => {
        upstream.enqueue(say('counted'));
        const many = Array.from({ length: 10_000 }, (_, i) => ({
          role: i % 2 === 0 ? 'user' : 'assistant',
          content: `message ${i}`,
        }));
        const response = await send({
          ...body,
          model: VIA[vendor],
          [list]: [...many, { role: 'user', content: 'end' }],
        });
        expect(await response.text()).toContain('counted');
        expect(upstream.refusals).toEqual([]);
        expect(JSON.stringify(upstream.modelRequests[0]?.body)).toContain('message 9999');
      }, 60_000);
    }

    test('after all these errors the process still serves', async () => {
      upstream.enqueue(say('still here'));
      expect(await (await send(body)).text()).toContain('still here');
      expect((await fetch(`${gateway.url}/healthz`)).status).toBe(200);
    });
  });
}

describe('histories that strict vendors refuse', () => {
  const call = (id: string) => ({
    id,
    type: 'function',
    function: { name: 'get', arguments: '{}' },
  });
  const tools: Body[] = [
    { type: 'function', function: { name: 'get', parameters: { type: 'object' } } },
  ];
  const tool = (tool_call_id: string, content: unknown = 'ok') => ({
    role: 'tool',
    tool_call_id,
    content,
  });
  const user = (content: string) => ({ role: 'user', content });
  const calls = (content: unknown, ...ids: string[]) => ({
    role: 'assistant',
    content,
    tool_calls: ids.map(call),
  });
  const histories: [string, Body[]][] = [
    ['a call without a result', [user('x'), calls(null, 'a'), user('y')]],
    ['a result without a call', [user('x'), tool('a'), user('y')]],
    ['one id for two calls', [user('x'), calls(null, 'a', 'a'), tool('a'), tool('a')]],
    ['one id in two turns', [user('x'), calls(null, 'a'), tool('a'), calls(null, 'a'), tool('a')]],
    ['two results for a call', [user('x'), calls(null, 'a'), tool('a'), tool('a'), user('y')]],
    ['words between call and result', [user('x'), calls(null, 'a'), user('y'), tool('a')]],
    ['ids of another vendor', [user('x'), calls('', 'functions.get:0'), tool('functions.get:0')]],
    ['an empty result', [user('x'), calls(null, 'a'), tool('a', ''), user('y')]],
    ['empty texts', [user('x'), { role: 'assistant', content: '' }, user('y')]],
    ['a call in the last message', [user('x'), calls('and now', 'a')]],
    ['a long id', [user('x'), calls(null, 'i'.repeat(90)), tool('i'.repeat(90))]],
  ];
  for (const vendor of ALL_PROTOCOLS) {
    test.each(histories)(`%s is repaired for ${vendor}`, async (_name, messages) => {
      upstream.enqueue(say('taken'));
      const body = { model: VIA[vendor], messages, tools };
      const response = await post(gateway.url, '/v1/chat/completions', body);
      const text = await response.text();
      expect(upstream.refusals).toEqual([]);
      expect(response.status).toBe(200);
      expect(text).toContain('taken');
    });
  }

  test.each(['', '{"city": "Par', 'nonsense', '[1]'])(
    'a Messages vendor accepts a history with the arguments %p',
    async (args) => {
      upstream.enqueue(say('taken'));
      const broken = { ...call('a'), function: { name: 'get', arguments: args } };
      const messages = [
        user('x'),
        { role: 'assistant', content: null, tool_calls: [broken] },
        tool('a', 'the arguments were broken'),
      ];
      const body = { model: 'via-messages', messages, tools };
      const response = await post(gateway.url, '/v1/chat/completions', body);
      expect(upstream.refusals).toEqual([]);
      expect(response.status).toBe(200);
    },
  );

  test('a Messages vendor accepts a history of calls without tools', async () => {
    upstream.enqueue(say('taken'));
    const messages = [user('x'), calls(null, 'a'), tool('a'), user('sum it up')];
    const body = { model: 'via-messages', messages };
    const response = await post(gateway.url, '/v1/chat/completions', body);
    expect(upstream.refusals).toEqual([]);
    expect(response.status).toBe(200);
  });
});
