/** Requests whose framing servers and proxies may understand in two ways, as bytes on a connection. */

import { afterAll, beforeAll, expect, test } from 'bun:test';
import { connect } from 'node:net';
import { type InProcess, startInProcess } from '../support/in-process.ts';

const KEY = 'k'.repeat(32);
const ADMIN = 'a'.repeat(32);
const V = { v: { protocol: 'openai-chat', base_url: 'http://127.0.0.1:1/v1', keys: ['k'] } };

const gateways: Record<string, InProcess> = {};
beforeAll(async () => {
  gateways.open = await startInProcess({ providers: V });
  gateways.keyed = await startInProcess({
    providers: V,
    auth: { keys: [{ name: 'one', key: KEY }], admin_keys: [ADMIN] },
  });
});
afterAll(async () => {
  for (const gateway of Object.values(gateways)) await gateway.stop();
});

/** Everything that comes back until the connection is closed. */
const exchange = (gateway: InProcess, text: string) =>
  new Promise<string>((done) => {
    const { hostname, port } = new URL(gateway.url);
    const socket = connect(Number(port), hostname, () => socket.write(text));
    let got = '';
    socket.on('data', (bytes) => {
      got += bytes;
    });
    socket.on('error', () => {});
    socket.on('close', () => done(got));
  });

const BODY = '{"model":"m","messages":[]}';
const PATHS = [
  'POST /v1/chat/completions',
  'POST /v1/responses',
  'POST /v1/messages',
  'POST /v1/messages/count_tokens',
  'POST /v1beta/models/m:generateContent',
  'POST /v1/embeddings',
  'GET /v1/models',
  'GET /v1/usage',
  'GET /metrics',
  'GET /health/targets',
  'GET /ui/api/info',
  'GET /admin/v1/keys',
  'GET /v1/memory/space',
  'GET /nowhere',
];
const HOSTS: readonly (readonly [string, string])[] = [
  ['127.0.0.1', 'evil.example'],
  ['evil.example', '127.0.0.1'],
  ['127.0.0.1', '127.0.0.1'],
  ['127.0.0.1', ''],
  ['127.0.0.1, evil.example', '127.0.0.1'],
];

test.each(['open', 'keyed'])('two Host headers are refused on every path (%s)', async (which) => {
  for (const path of PATHS) {
    for (const hosts of HOSTS) {
      const body = path.startsWith('POST') ? BODY : '';
      const lines = [
        `${path} HTTP/1.1`,
        ...hosts.map((host) => `host: ${host}`),
        `authorization: Bearer ${path.includes('admin') ? ADMIN : KEY}`,
        `content-type: application/json`,
        `content-length: ${body.length}`,
        'connection: close',
      ];
      const answer = await exchange(gateways[which]!, `${lines.join('\r\n')}\r\n\r\n${body}`);
      expect([path, hosts, answer.slice(0, 12)]).toEqual([path, hosts, 'HTTP/1.1 400']);
    }
  }
});

test.each([
  ['no handshake', 'sec-websocket-version: 12\r\nsec-websocket-key: x\r\n', `Bearer ${KEY}`],
  [
    'a wrong key',
    'sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n',
    'Bearer wrong',
  ],
])(
  'a refused upgrade (%s) is the last answer: what stands behind it in the packet is not served',
  async (_, fields, authorization) => {
    for (const path of ['/v1/responses', '/nowhere']) {
      const host = new URL(gateways.keyed!.url).host;
      const upgrade = `GET ${path} HTTP/1.1\r\nhost: ${host}\r\nconnection: upgrade\r\nupgrade: websocket\r\n${fields}authorization: ${authorization}\r\n\r\n`;
      const behind = `GET /v1/models HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${KEY}\r\n\r\n`;
      const answer = await exchange(gateways.keyed!, upgrade + behind);
      expect(answer).toMatch(/^HTTP\/1\.1 4\d\d /);
      expect(answer.toLowerCase()).toContain('connection: close');
      expect(answer.split('HTTP/1.1 ')).toHaveLength(2);
    }
  },
);
