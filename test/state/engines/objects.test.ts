/** The object store on a real server: ranges, pages in order, and a deadline for every call. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { Secret } from '../../../src/config/secret.ts';
import type { ObjectsAddress } from '../../../src/config/sections/engines.ts';
import { EngineAway } from '../../../src/state/engines/engine.ts';
import { ObjectStore } from '../../../src/state/engines/objects.ts';
import {
  HAS_OBJECTS,
  type ObjectServer,
  startObjects,
} from '../../support/engines/object-servers.ts';
import { until } from '../../support/until.ts';

const LONG = 10_000;

test('a store where nothing listens is named with the code, and asks nobody about the computer', async () => {
  const listener = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } });
  const { port } = listener;
  listener.stop(true);
  const address = {
    bucket: 'b',
    prefix: '',
    endpoint: `http://127.0.0.1:${port}`,
    region: 'us-east-1',
    accessKeyId: 'key',
    secretAccessKey: new Secret('secret'),
  };
  const store = new ObjectStore(address, () => {});
  const thrown = await store.list('', '', LONG).catch((error) => error);
  expect(thrown).toBeInstanceOf(EngineAway);
  const message = /^the object store cannot be reached \(\w*refused\)$/i;
  expect(store.state).toMatchObject({ status: 'down', message: expect.stringMatching(message) });
  await store.close();
});

/** A store that gives one answer to everything that `isAsked` names, and serves the rest. */
function storeThat(answers: () => Response, isAsked: (method: string, url: string) => boolean) {
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch({ method, url }) {
      if (isAsked(method, url)) return answers();
      if (url.includes('list-type')) return new Response('<ListBucketResult/>');
      return new Response('', { headers: { etag: '"e"' } });
    },
  });
  const store = new ObjectStore(
    {
      bucket: 'b',
      prefix: '',
      endpoint: `http://127.0.0.1:${server.port}`,
      region: 'us-east-1',
      accessKeyId: 'key',
      secretAccessKey: new Secret('secret'),
    },
    () => {},
  );
  return {
    store,
    async stop() {
      await store.close();
      await server.stop(true);
    },
  };
}

const refusal = (status: number, code: string, more = '', headers: Record<string, string> = {}) => {
  const body = `<?xml version="1.0"?><Error><Code>${code}</Code>${more}</Error>`;
  return () => new Response(body, { status, headers });
};
const page = (status: number) => () => new Response('<html>Welcome</html>', { status });
const IN_EUROPE = { 'x-amz-bucket-region': 'eu-west-1' };
const ELSEWHERE = { location: 'http://127.0.0.1:1/b' };
const FOREIGN = 'the answer is not that of an object store: look at its endpoint';

test.each<[string, () => Response, string]>([
  ['is read-only for this key', refusal(403, 'AccessDenied'), 'HTTP 403 AccessDenied'],
  ['is full', refusal(507, 'XMinioStorageFull'), 'HTTP 507 XMinioStorageFull'],
  ['is asked too often', refusal(503, 'SlowDown'), 'HTTP 503 SlowDown'],
  ['counts requests', refusal(429, 'TooManyRequests'), 'HTTP 429 TooManyRequests'],
  ['has another time', refusal(403, 'RequestTimeTooSkewed'), 'HTTP 403 RequestTimeTooSkewed'],
  [
    'is in another region',
    refusal(301, 'PermanentRedirect', '', IN_EUROPE),
    'HTTP 301 PermanentRedirect (the bucket is in the region eu-west-1)',
  ],
  [
    'says so with another status',
    refusal(400, 'AuthorizationHeaderMalformed', '<Region>eu-west-1</Region>'),
    'HTTP 400 AuthorizationHeaderMalformed (the bucket is in the region eu-west-1)',
  ],
  [
    'sends to another host',
    refusal(307, 'TemporaryRedirect', '', ELSEWHERE),
    'HTTP 307 TemporaryRedirect',
  ],
  ['has lost the bucket', refusal(404, 'NoSuchBucket'), 'HTTP 404 NoSuchBucket'],
  ['takes no PUT', refusal(405, 'MethodNotAllowed'), 'HTTP 405 MethodNotAllowed'],
  ['is a page that is not there', page(404), 'HTTP 404'],
  ['is a page', page(200), FOREIGN],
  ['says an error with status 200', refusal(200, 'InternalError'), FOREIGN],
])('a store that %s is away: nothing counts as stored', async (_, answer, message) => {
  const { store, stop } = storeThat(answer, (method) => method === 'PUT');
  const thrown = await store.put('a', new Uint8Array(8), LONG).catch((error) => error);
  expect(thrown).toBeInstanceOf(EngineAway);
  expect(store.state).toMatchObject({ status: 'down', message });
  await stop();
});

test('a list that is no list counts as away, and not as one without objects', async () => {
  const { store, stop } = storeThat(page(200), (_, url) => url.includes('list-type'));
  const thrown = await store.list('', '', LONG).catch((error) => error);
  expect(thrown).toBeInstanceOf(EngineAway);
  expect(store.state).toMatchObject({ status: 'down', message: FOREIGN });
  await stop();
});

test('a page in place of an object is neither the object nor a sign that it is gone', async () => {
  for (const status of [200, 404]) {
    const { store, stop } = storeThat(page(status), (method) => method === 'GET');
    const thrown = await store.get('a', undefined, LONG).catch((error) => error);
    expect(thrown).toBeInstanceOf(EngineAway);
    await stop();
  }
});

test.each([
  ['too large', 'PUT', refusal(400, 'EntityTooLarge')],
  ['too large for a proxy before the store', 'PUT', page(413)],
  // Some stores say so of one object that is not there.
  ['not shown', 'GET', refusal(403, 'AccessDenied')],
  ['in an archive', 'GET', refusal(403, 'InvalidObjectState')],
])('one object that is %s leaves the store up', async (_, method, answer) => {
  const { store, stop } = storeThat(answer, (asked) => asked === method);
  const call =
    method === 'PUT' ? store.put('a', new Uint8Array(8), LONG) : store.get('a', undefined, LONG);
  const thrown = await call.catch((error) => error);
  expect(thrown).toMatchObject({ name: 'ObjectsRefusal' });
  expect(store.state.status).toBe('up');
  await stop();
});

test('an object that is not there can be removed, whatever the store says of it', async () => {
  const { store, stop } = storeThat(refusal(404, 'NoSuchKey'), (method) => method === 'DELETE');
  await store.remove('a', LONG);
  expect(store.state.status).toBe('up');
  await stop();
});

describe.skipIf(!HAS_OBJECTS)('a store that speaks S3', () => {
  let server: ObjectServer;
  const address = (prefix: string, bucket = server.bucket): ObjectsAddress => ({
    bucket,
    prefix,
    endpoint: server.endpoint,
    region: 'us-east-1',
    accessKeyId: 'key',
    secretAccessKey: new Secret('secret'),
  });
  const open = (prefix: string, bucket?: string) =>
    new ObjectStore(address(prefix, bucket), () => {});
  beforeAll(async () => {
    server = await startObjects();
  });
  afterAll(() => server.stop());

  test('put, get, a range, list below the prefix, remove', async () => {
    const store = open('one/');
    const other = open('two/');
    const body = Uint8Array.from({ length: 1000 }, (_, i) => i % 256);
    const keys = ['2026/b & c', '2026/ü', '2026/a'];
    for (const key of keys) await store.put(key, body, LONG);
    await other.put('2026/z', body, LONG);
    expect(Buffer.from((await store.get('2026/ü', undefined, LONG))!).equals(body)).toBe(true);
    expect([...(await store.get('2026/a', [10, 13], LONG))!]).toEqual([10, 11, 12]);
    expect(await store.get('2026/none', undefined, LONG)).toBeUndefined();
    const listed = await store.list('2026/', '', LONG);
    expect(listed).toEqual([
      { key: '2026/a', bytes: 1000 },
      { key: '2026/b & c', bytes: 1000 },
      { key: '2026/ü', bytes: 1000 },
    ]);
    expect((await store.list('2026/', '2026/a', LONG)).length).toBe(2);
    for (const { key } of listed) await store.remove(key, LONG);
    expect(await store.list('', '', LONG)).toEqual([]);
    expect((await other.list('', '', LONG)).length).toBe(1);
  });

  test('a refusal is the caller’s; a frozen server ends calls at their deadline and comes back', async () => {
    const store = open('frozen/');
    await store.put('a', new Uint8Array(), LONG);
    const refused = await store.get('a', [50, 60], LONG).catch((thrown) => thrown);
    expect(refused).toMatchObject({ name: 'ObjectsRefusal', status: 416 });
    expect(store.state.status).toBe('up');
    server.freeze();
    try {
      const late = await store.get('a', undefined, 200).catch((thrown) => thrown);
      expect(late).toBeInstanceOf(EngineAway);
    } finally {
      server.thaw();
    }
    await until(() => store.state.status === 'up');
    expect((await store.get('a', undefined, LONG))!.length).toBe(0);
    await store.close();
  });

  test('a bucket that is not there counts as away, and not as an error of each call', async () => {
    const missing = open('', 'no-such-bucket');
    const refused = await missing.put('a', new Uint8Array(), LONG).catch((thrown) => thrown);
    expect(refused).toBeInstanceOf(EngineAway);
    expect(missing.state).toMatchObject({ status: 'down', message: 'HTTP 404 NoSuchBucket' });
    await missing.close();
  });

  test('doctor’s findings', async () => {
    const findings = await open('doctor/').examine();
    expect(findings.map(({ status }) => status)).not.toContain('fail');
    expect(findings[0]!.message).toContain('samples/doctor/');
  });
});
