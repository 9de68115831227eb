/** The binary behind a reverse proxy: whom it believes, and what it makes of it. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { type Gateway, runBinary, startGateway } from '../support/binary.ts';
import { until } from '../support/until.ts';

const KEY = 'a-key-of-the-team';
const ADMIN = 'an-admin-key-of-the-team';
const config = (trusted: string[]) => ({
  listen: { address: '127.0.0.1:0', trusted_proxies: trusted },
  auth: { keys: [{ name: 'ann', key: KEY, sees: 'all' }], admin_keys: [ADMIN] },
  samples: { mode: 'all' },
  log: { format: 'json' },
});

let trusting: Gateway;
let strict: Gateway;
beforeAll(async () => {
  trusting = await startGateway(config(['127.0.0.0/8']));
  strict = await startGateway(config(['192.0.2.1']));
}, 120_000);
afterAll(async () => {
  await trusting?.stop();
  await strict?.stop();
});

/** As a proxy hands it on: its own Host, and what it got. */
const VIA = {
  'x-forwarded-for': '198.51.100.9, 203.0.113.7',
  'x-forwarded-proto': 'https',
  'x-forwarded-host': 'gw.example',
};

const ask = (gateway: Gateway, headers: Record<string, string>, key = KEY) =>
  fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}`, ...headers },
    body: JSON.stringify({ model: 'demo', messages: [{ role: 'user', content: 'Hi' }] }),
  });

const addresses = (gateway: Gateway, status: number) =>
  gateway
    .logs()
    .filter((line) => line.event === 'exchange' && line.status === status)
    .map((line) => line.address);

describe('behind trusted proxies', () => {
  test('the log names the client, also of what is refused; an untrusted peer names itself only', async () => {
    for (const gateway of [trusting, strict]) {
      expect((await ask(gateway, VIA)).status).toBe(200);
      expect((await ask(gateway, VIA, 'wrong')).status).toBe(401);
      await until(() => addresses(gateway, 200).length > 0 && addresses(gateway, 401).length > 0);
    }
    expect([addresses(trusting, 200), addresses(trusting, 401)]).toEqual([
      ['203.0.113.7'],
      ['203.0.113.7'],
    ]);
    expect([addresses(strict, 200), addresses(strict, 401)]).toEqual([
      ['127.0.0.1'],
      ['127.0.0.1'],
    ]);
  }, 60_000);

  test('a WebSocket is named by its upgrade', async () => {
    const headers = { authorization: `Bearer ${KEY}`, 'x-forwarded-for': '203.0.113.8' };
    const url = `${trusting.url.replace('http', 'ws')}/v1/responses`;
    const socket = new WebSocket(url, { headers } as never);
    await new Promise((done) => (socket.onopen = done));
    socket.send(JSON.stringify({ type: 'response.create', model: 'demo', input: 'Say hello.' }));
    await until(() => addresses(trusting, 200).includes('203.0.113.8'));
    socket.close();
  }, 60_000);

  test('the page takes requests of its own origin as the browser knows it, and links to it', async () => {
    const headers = {
      authorization: `Bearer ${KEY}`,
      'x-hopgate-ui': '1',
      origin: 'https://gw.example',
      ...VIA,
    };
    const list = await fetch(`${trusting.url}/ui/api/samples`, { headers });
    expect(list.status).toBe(200);
    const { rows } = (await list.json()) as { rows: { id: string }[] };
    const curl = await fetch(`${trusting.url}/ui/api/samples/${rows[0]!.id}/curl`, { headers });
    expect(await curl.text()).toContain('https://gw.example/v1/');
    expect((await fetch(`${strict.url}/ui/api/samples`, { headers })).status).toBe(403);
  }, 60_000);

  test('the audit says from where a key was made', async () => {
    const admin = { authorization: `Bearer ${ADMIN}`, ...VIA };
    const made = await fetch(`${trusting.url}/admin/v1/keys`, {
      method: 'POST',
      headers: admin,
      body: '{"name":"new"}',
    });
    expect(made.status).toBe(201);
    const audit = await fetch(`${trusting.url}/admin/v1/audit`, { headers: admin });
    const { data } = (await audit.json()) as { data: { actor: string }[] };
    expect(data[0]?.actor).toMatch(/^admin:key-[0-9a-f]{6}@203\.0\.113\.7$/);
    const verified = await fetch(`${trusting.url}/admin/v1/audit/verify`, { headers: admin });
    expect(((await verified.json()) as { valid: boolean }).valid).toBe(true);
  }, 60_000);

  test('metrics need a key: the peer on this machine may be the proxy', async () => {
    expect((await fetch(`${trusting.url}/metrics`)).status).toBe(401);
    const headers = { authorization: `Bearer ${KEY}` };
    expect((await fetch(`${trusting.url}/metrics`, { headers })).status).toBe(200);
  });

  test('without keys it does not start, although it listens on loopback', async () => {
    const file = `${trusting.home}/open.yaml`;
    await Bun.write(file, JSON.stringify({ listen: { trusted_proxies: ['127.0.0.1'] } }));
    for (const command of ['serve', 'check']) {
      const { code, stderr } = await runBinary([command, '--config', file]);
      expect([code, stderr]).toEqual([1, expect.stringContaining('listen.trusted_proxies')]);
    }
  }, 60_000);
});
