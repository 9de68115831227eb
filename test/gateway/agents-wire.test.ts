/** What coding agents need of a gateway beside the protocols: probes, waits in whole seconds, encoded bodies, no foreign tags. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import {
  brotliCompressSync,
  deflateRawSync,
  deflateSync,
  gzipSync,
  zstdCompressSync,
} from 'node:zlib';
import { type InProcess, startInProcess } from '../support/in-process.ts';

const LIMIT = 200_000;
const MESSAGE = { max_tokens: 10, messages: [{ role: 'user', content: 'one two three' }] };
const REPLY = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'm',
  content: [{ type: 'text', text: 'Hello.' }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 3, output_tokens: 2 },
};

/** The head of the next answers of a vendor; undefined: 200. */
let refusal: Record<string, string> | undefined;
const asked: string[] = [];
const vendor = (name: string, refuses: () => Record<string, string> | undefined) =>
  Bun.serve({
    port: 0,
    async fetch(request) {
      asked.push(`${name} ${new URL(request.url).pathname}`);
      await request.arrayBuffer();
      if (request.url.includes('count_tokens')) return Response.json({ input_tokens: 7 });
      const headers = refuses();
      if (headers === undefined) {
        return Response.json(REPLY, { headers: { 'x-models-etag': '"v"', 'x-trace-id': 'yes' } });
      }
      const error = { type: 'error', error: { type: 'rate_limit_error', message: 'Slow down.' } };
      return Response.json(error, { status: 429, headers });
    },
  });
const first = vendor('first', () => refusal);
const second = vendor('second', () => undefined);
let gateway: InProcess;

beforeAll(async () => {
  const provider = (url: URL, model: string) => ({
    protocol: 'anthropic-messages',
    base_url: url.origin,
    keys: ['sk'],
    models: [model],
  });
  gateway = await startInProcess({
    providers: { first: provider(first.url, 'm'), second: provider(second.url, 'n') },
    routes: [{ when: { model: 'both' }, to: ['first/m', 'second/n'] }],
    limits: { body_bytes: LIMIT },
    samples: { mode: 'off' },
  });
});
afterAll(async () => {
  await gateway?.stop();
  await first.stop(true);
  await second.stop(true);
});

const post = (
  model: string,
  path = '/v1/messages',
  more: {
    headers?: Record<string, string>;
    encode?: (text: string) => Uint8Array<ArrayBuffer>;
  } = {},
) => {
  const text = JSON.stringify({ model, ...MESSAGE });
  return fetch(`${gateway.url}${path}`, {
    method: 'POST',
    headers: { 'anthropic-version': '2023-06-01', ...more.headers },
    body: more.encode?.(text) ?? text,
  });
};

test.each(['/', '/api/hello'])('the probe HEAD %s of Claude Code finds a server', async (path) => {
  const { status } = await fetch(gateway.url + path, { method: 'HEAD', redirect: 'error' });
  expect(status).toBe(200);
});

test('a path that is not there: the 404 says which ones are, those of usage, memory and keys too', async () => {
  const answer = await fetch(`${gateway.url}/v1/nothing-like-it`, { method: 'POST' });
  expect(answer.status).toBe(404);
  const { error } = (await answer.json()) as { error: { message: string } };
  for (const one of [
    'POST /v1/messages',
    'GET /v1/usage',
    'GET /v1/memory',
    'GET /admin/v1/keys',
  ]) {
    expect(error.message).toContain(one);
  }
});

test("the tag of a vendor's catalogue stays here, other headers of the vendor do not", async () => {
  const { headers } = await post('m');
  expect([headers.get('x-models-etag'), headers.get('x-trace-id')]).toEqual([null, 'yes']);
});

describe('content encodings of a body', () => {
  const encoders = {
    gzip: gzipSync,
    deflate: deflateSync,
    br: brotliCompressSync,
    zstd: zstdCompressSync,
  } as const;
  for (const [name, compress] of Object.entries(encoders)) {
    const headers = { 'content-encoding': name };
    test(`${name} is undone; what unfolds beyond the limit is a 413, broken bytes a 400`, async () => {
      const encode = (text: string): Uint8Array<ArrayBuffer> =>
        new Uint8Array(compress(Buffer.from(text)));
      expect((await post('m', '/v1/messages', { headers, encode })).status).toBe(200);
      const bomb = (): Uint8Array<ArrayBuffer> => encode(' '.repeat(50 * LIMIT));
      expect((await post('m', '/v1/messages', { headers, encode: bomb })).status).toBe(413);
      const broken = () => Buffer.from('not encoded at all');
      expect((await post('m', '/v1/messages', { headers, encode: broken })).status).toBe(400);
    });
  }
});

test("deflate without zlib's frame is a 400, and no vendor is asked", async () => {
  const before = asked.length;
  const headers = { 'content-encoding': 'deflate' };
  const encode = (text: string) => new Uint8Array(deflateRawSync(text));
  expect((await post('m', '/v1/messages', { headers, encode })).status).toBe(400);
  expect(asked).toHaveLength(before);
});

// What rests from here on has no other tests behind it.
describe('a vendor that asks to wait', () => {
  test.each([
    ['a fraction', (): string => '3599.2', 3600],
    ['a date', (): string => new Date(Date.now() + 3_600_000).toUTCString(), 3600],
    ['whole seconds', (): string => '3500', 3500],
  ] as const)('as %s: the client reads whole seconds', async (_name, value, seconds) => {
    refusal = { 'retry-after': value() };
    const response = await post('m');
    const told = response.headers.get('retry-after') ?? '';
    expect(response.status).toBe(429);
    expect(told).toMatch(/^\d+$/);
    // The date has lost less than the seconds that this test takes.
    expect(Number(told)).toBeLessThanOrEqual(seconds);
    expect(Number(told)).toBeGreaterThan(seconds - 120);
  });

  test('is not asked for a count while it rests: the next target counts', async () => {
    asked.length = 0;
    const response = await post('both', '/v1/messages/count_tokens');
    expect(await response.json()).toEqual({ input_tokens: 7 });
    expect(asked).toEqual(['second /v1/messages/count_tokens']);
  });

  test('is not asked where no other target is left: the count is an estimate', async () => {
    asked.length = 0;
    const response = await post('m', '/v1/messages/count_tokens');
    expect(response.headers.get('x-hopgate-notes')).toContain('tokens_estimated');
    expect(asked).toEqual([]);
  });
});
