/** Gateways whose providers lead to a gateway: a ring ends at once, a chain works. */

import { afterAll, describe, expect, test } from 'bun:test';
import { startInProcess } from '../support/in-process.ts';

const open: { stop(): unknown }[] = [];
afterAll(async () => {
  for (const one of open.splice(0)) await one.stop();
});

const PATHS = {
  'openai-chat': '/v1/chat/completions',
  'openai-responses': '/v1/responses',
  'anthropic-messages': '/v1/messages',
} as const;

async function gateway(protocol: string, baseUrl: string) {
  const up = { protocol, base_url: baseUrl, keys: ['x'], models: ['*'] };
  const one = await startInProcess({
    listen: '127.0.0.1:0',
    providers: { up },
    routes: [{ to: ['up/*'] }],
    retry: { attempts: 1 },
  });
  open.push(one);
  return one;
}

const body = {
  model: 'm',
  max_tokens: 9,
  messages: [{ role: 'user', content: 'hi' }],
  input: 'hi',
};

const ask = (url: string, protocol: keyof typeof PATHS) =>
  fetch(url + PATHS[protocol], {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'hopgate-loop': 'x, ' },
    body: JSON.stringify(body),
  });

/** Stands before a gateway, because its port is known only once it runs. */
function relay() {
  const passed = { next: '', statuses: [] as number[] };
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const { pathname } = new URL(request.url);
      const answer = await fetch(passed.next + pathname, request);
      passed.statuses.push(answer.status);
      return answer;
    },
  });
  open.push(server);
  return Object.assign(passed, { url: `http://127.0.0.1:${server.port}` });
}

describe('lists of models', () => {
  const SUFFIXES = {
    'openai-chat': '/v1',
    'openai-responses': '/v1',
    'anthropic-messages': '',
    'google-gemini': '/v1beta',
  } as const;
  const listOf = async (url: string) => (await fetch(`${url}/v1/models`)).status;

  test.each(Object.entries(SUFFIXES))(
    '%s: a gateway that leads to itself does not wait for its own list',
    async (protocol, suffix) => {
      const before = relay();
      const one = await gateway(protocol, before.url + suffix);
      before.next = one.url;
      expect(await listOf(one.url)).toBe(200);
      expect(before.statuses).toEqual([508]);
    },
  );

  test('two gateways that lead to each other ask each other once', async () => {
    const before = relay();
    const first = await gateway('openai-chat', `${before.url}/v1`);
    const between = relay();
    const second = await gateway('openai-chat', `${between.url}/v1`);
    before.next = second.url;
    between.next = first.url;
    expect(await listOf(first.url)).toBe(200);
    expect([before.statuses, between.statuses]).toEqual([[200], [508]]);
  });
});

describe.each(Object.keys(PATHS) as (keyof typeof PATHS)[])('%s', (protocol) => {
  const suffix = protocol === 'anthropic-messages' ? '' : '/v1';

  test('two gateways in a ring refuse the request that comes around', async () => {
    let asked = 0;
    // Stands between, because the ports are known only once the gateways run.
    let next = '';
    const between = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch(request) {
        asked++;
        return fetch(next + new URL(request.url).pathname, request);
      },
    });
    open.push(between);
    const first = await gateway(protocol, `http://127.0.0.1:${between.port}${suffix}`);
    const second = await gateway(protocol, `${first.url}${suffix}`);
    next = second.url;
    const answer = await ask(first.url, protocol);
    const text = await answer.text();
    expect([answer.status, text.includes('leads back')]).toEqual([508, true]);
    expect(asked).toBeLessThan(4);
  });

  test('a chain of gateways works', async () => {
    const marks: (string | null)[] = [];
    const vendor = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch(request) {
        marks.push(request.headers.get('hopgate-loop'));
        return Response.json({ error: { message: 'teapot here' } }, { status: 418 });
      },
    });
    open.push(vendor);
    const last = await gateway(protocol, `http://127.0.0.1:${vendor.port}${suffix}`);
    const middle = await gateway(protocol, `${last.url}${suffix}`);
    const first = await gateway(protocol, `${middle.url}${suffix}`);
    const answer = await ask(first.url, protocol);
    expect(await answer.text()).toContain('teapot here');
    expect(marks[0]!.split(', ')).toHaveLength(3);
  });
});
