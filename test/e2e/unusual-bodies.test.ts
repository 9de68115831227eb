/** Bodies in forms that clients seldom send: a byte order mark, and trailer fields behind the last chunk. */

import { afterAll, beforeAll, expect, test } from 'bun:test';
import { connect } from 'node:net';
import { type InProcess, startInProcess } from '../support/in-process.ts';

const asked: Uint8Array[] = [];
let gateway: InProcess;
const vendor = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  async fetch(request) {
    asked.push(await request.bytes());
    return Response.json({ error: { message: 'teapot here' } }, { status: 418 });
  },
});
beforeAll(async () => {
  const provider = (protocol: string, path: string) => ({
    protocol,
    base_url: `http://127.0.0.1:${vendor.port}${path}`,
    keys: ['x'],
    models: ['m'],
  });
  gateway = await startInProcess({
    listen: '127.0.0.1:0',
    providers: {
      chat: provider('openai-chat', '/v1'),
      responses: provider('openai-responses', '/v1'),
      messages: provider('anthropic-messages', ''),
      gemini: provider('google-gemini', '/v1beta'),
    },
    retry: { attempts: 1 },
  });
});
afterAll(async () => {
  await gateway.stop();
  await vendor.stop(true);
});

const messages = [{ role: 'user', content: 'x' }];
const BODIES: readonly (readonly [path: string, body: object])[] = [
  ['/v1/chat/completions', { model: 'chat/m', messages }],
  ['/v1/responses', { model: 'responses/m', input: 'x' }],
  ['/v1/messages', { model: 'messages/m', max_tokens: 9, messages }],
  ['/v1beta/models/gemini/m:generateContent', { contents: [{ parts: [{ text: 'x' }] }] }],
  ['/v1/embeddings', { model: 'chat/m', input: 'x' }],
  ['/v1/images/generations', { model: 'chat/m', prompt: 'x' }],
];

test.each(BODIES)(
  '%s: a byte order mark is taken off, and no vendor gets it',
  async (path, body) => {
    asked.length = 0;
    const headers = { 'content-type': 'application/json' };
    const answer = await fetch(gateway.url + path, {
      method: 'POST',
      headers,
      body: `\uFEFF${JSON.stringify(body)}`,
    });
    expect(await answer.text()).toContain('teapot here');
    expect(asked.map((bytes) => String.fromCharCode(bytes[0]!))).toEqual(['{']);
  },
);

test('trailer fields: the runtime refuses the request before any vendor is asked', async () => {
  asked.length = 0;
  const { hostname, port } = new URL(gateway.url);
  const body = JSON.stringify(BODIES[0]![1]);
  const answer = await new Promise<string>((resolve) => {
    let text = '';
    const socket = connect(Number(port), hostname, () =>
      socket.write(
        'POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n' +
          `transfer-encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\nx-sum: 1\r\n\r\n`,
      ),
    );
    socket.on('data', (bytes) => {
      text += bytes;
    });
    socket.on('close', () => resolve(text));
  });
  // Once this fails, the runtime reads them, and the manual need not speak of it (errors.md).
  expect(answer).toStartWith('HTTP/1.1 400 ');
  expect(asked).toEqual([]);
});
