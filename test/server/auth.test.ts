/** Who may ask, and how much: keys, Host, Origin, body limits and encodings. */

import { describe, expect, test } from 'bun:test';
import { createHash } from 'node:crypto';
import { GatewayError } from '../../src/conversation/errors.ts';
import { readBody } from '../../src/server/body.ts';
import { Connections } from '../../src/server/connections.ts';
import { accessWith } from '../support/access.ts';

const key = (name: string, text: string) => ({ name, key: text });
const status = (run: () => unknown) => {
  try {
    run();
    return 200;
  } catch (thrown) {
    return thrown instanceof GatewayError ? thrown.status : 500;
  }
};

const unlimited = new Connections({
  idleMs: 0,
  bodyIdleMs: 0,
  unfinishedBytes: 0,
  runningBytes: 0,
});
const reading = (asked: Request, limit: number) => readBody(asked, asked.headers, limit, unlimited);

describe('who may ask', () => {
  const hashed = `sha256:${createHash('sha256').update('k2').digest('hex')}`;
  const access = accessWith({ keys: [key('ann', 'k1'), key('bob', hashed)] });

  test('a key in either header, plain or hashed in the file, names its owner', () => {
    expect(access(new Headers({ authorization: 'Bearer k1' }))).toMatchObject({ id: 'ann' });
    expect(access(new Headers({ 'x-api-key': 'k2' }))).toMatchObject({ id: 'bob' });
  });

  test('no key, a wrong key and the hash itself are 401', () => {
    for (const headers of [{}, { 'x-api-key': 'k3' }, { 'x-api-key': hashed }]) {
      expect(status(() => access(new Headers(headers as Record<string, string>)))).toBe(401);
    }
  });

  const open = accessWith({});

  test.each([
    ['127.0.0.1:5520', 200],
    ['localhost:5520', 200],
    ['[::1]:5520', 200],
    ['app.localhost', 200],
    ['evil.example:5520', 403],
    ['127.0.0.1.evil.example', 403],
    ['localhost.evil.example', 403],
  ])('without keys, Host %s gets %i (DNS rebinding)', (host, expected) => {
    expect(status(() => open(new Headers({ host })))).toBe(expected);
  });

  test('without keys, a page of another site is turned away', () => {
    const from = (origin: string) => new Headers({ host: '127.0.0.1', origin });
    expect(status(() => open(from('https://evil.example')))).toBe(403);
    expect(status(() => open(from('null')))).toBe(403);
    expect(status(() => open(from('https://localhost.evil.example')))).toBe(403);
    expect(status(() => open(from('http://localhost:3000')))).toBe(200);
    expect(status(() => open(from('http://app.localhost:3000')))).toBe(200);
  });

  test('an empty key is none', () => {
    for (const name of ['x-api-key', 'api-key', 'authorization']) {
      for (const value of ['', ' ', 'Bearer ', 'Bearer']) {
        expect(status(() => access(new Headers({ [name]: value })))).toBe(401);
      }
    }
  });
});

describe('the body', () => {
  const request = (
    body: ConstructorParameters<typeof Response>[0],
    headers: Record<string, string> = {},
  ) => new Request('http://localhost/', { method: 'POST', body, headers });
  const refused = (promise: Promise<unknown>) =>
    promise.then(
      () => 200,
      (thrown) => (thrown instanceof GatewayError ? thrown.status : 500),
    );

  test('gzip, deflate, zstd and two of them on top of each other are undone', async () => {
    const text = JSON.stringify({ a: 'ü'.repeat(1000) });
    const zipped = Bun.gzipSync(Buffer.from(text));
    for (const [encoding, bytes] of [
      ['gzip', zipped],
      ['zstd', Bun.zstdCompressSync(Buffer.from(text))],
      ['gzip, zstd', Bun.zstdCompressSync(zipped)],
    ] as const) {
      const body = await reading(
        request(Buffer.from(bytes), { 'content-encoding': encoding }),
        1e6,
      );
      expect(new TextDecoder().decode(body)).toBe(text);
    }
  });

  test('a bomb is a 413, a broken or unknown encoding a 400 and a 415', async () => {
    const bomb = Buffer.from(Bun.gzipSync(Buffer.alloc(50_000_000)));
    expect(await refused(reading(request(bomb, { 'content-encoding': 'gzip' }), 1e6))).toBe(413);
    expect(await refused(reading(request('x', { 'content-encoding': 'gzip' }), 1e6))).toBe(400);
    expect(await refused(reading(request('x', { 'content-encoding': 'lzma' }), 1e6))).toBe(415);
    const inherited = request('x', { 'content-encoding': 'constructor' });
    expect(await refused(reading(inherited, 1e6))).toBe(415);
  });

  test('the limit holds with and without content-length', async () => {
    const endless = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(new Uint8Array(100_000)),
    });
    expect(await refused(reading(request(endless as never), 1e6))).toBe(413);
    expect(await refused(reading(request('x'.repeat(2000)), 1000))).toBe(413);
  });
});
