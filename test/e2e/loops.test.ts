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
