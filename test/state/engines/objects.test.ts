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

test('a store that lets this key read and not write is away, and names the refusal', async () => {
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch({ method, url }) {
      if (method === 'GET' && url.includes('list-type')) return new Response('<Result/>');
      return new Response('<Error><Code>AccessDenied</Code></Error>', { status: 403 });
    },
  });
  const address = {
    bucket: 'b',
    prefix: '',
    endpoint: `http://127.0.0.1:${server.port}`,
    region: 'us-east-1',
    accessKeyId: 'key',
    secretAccessKey: new Secret('secret'),
  };
  const store = new ObjectStore(address, () => {});
  // Some stores say so of one object that is not there.
  const read = await store.get('a', undefined, LONG).catch((error) => error);
  expect(read).toMatchObject({ name: 'ObjectsRefusal', status: 403 });
  expect(store.state.status).toBe('up');
  const written = await store.put('a', new Uint8Array(), LONG).catch((error) => error);
  expect(written).toBeInstanceOf(EngineAway);
  expect(store.state).toMatchObject({ status: 'down', message: 'HTTP 403 AccessDenied' });
  await store.close();
  await server.stop(true);
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
