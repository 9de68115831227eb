/** The cache on real servers: every call ends at its deadline, and the cache comes back by itself. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Secret } from '../../../src/config/secret.ts';
import type { CacheAddress } from '../../../src/config/sections/engines.ts';
import { EngineAway, type EngineState, script } from '../../../src/state/engines/engine.ts';
import { ValkeyCache } from '../../../src/state/engines/valkey.ts';
import {
  cacheCommand,
  HAS_CACHE,
  HAS_SENTINEL,
  startCache,
  startCluster,
  startSentinel,
} from '../../support/engines/cache-servers.ts';
import { type FaultProxy, startFaultProxy } from '../../support/engines/fault-proxy.ts';
import type { Server } from '../../support/engines/processes.ts';
import { until } from '../../support/until.ts';

const LONG = 5000;
const SOURCES = join(import.meta.dir, '../../../src');
const bytes = (text: string) => new TextEncoder().encode(text);
const ADD = script("return redis.call('INCRBY', KEYS[1], ARGV[1])");

const single = (port: number): CacheAddress => ({
  form: 'single',
  nodes: [{ host: '127.0.0.1', port }],
  db: 0,
  tls: false,
});

const opened: ValkeyCache[] = [];
function open(address: CacheAddress) {
  const changes: EngineState['status'][] = [];
  const cache = new ValkeyCache(address, ({ status }) => changes.push(status));
  opened.push(cache);
  return { cache, changes };
}
afterAll(() => Promise.all(opened.map((one) => one.close())));

const add = (cache: ValkeyCache, key: string, by: number, deadline = LONG) =>
  cache.run(ADD, [key], [by], deadline);

const failureOf = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => undefined,
    (thrown) => thrown,
  );

describe.skipIf(!HAS_CACHE)('one server', () => {
  let server: Server;
  let proxy: FaultProxy;
  beforeAll(async () => {
    server = await startCache();
    proxy = await startFaultProxy(server.port);
  });
  afterAll(async () => {
    proxy.close();
    await server.stop();
  });

  test('scripts, values, and values that stay', async () => {
    const { cache, changes } = open(single(server.port));
    expect(cache.state.status).toBe('connecting');
    expect(await add(cache, '{hopgate}:n', 3)).toBe(3);
    expect(await add(cache, '{hopgate}:n', 4)).toBe(7);
    const value = Uint8Array.from([0, 255, 13, 10]);
    await cache.put([{ key: '{hopgate}:a', value, ttlMs: 60_000 }], LONG);
    await cache.put(
      [
        { key: '{hopgate}:a', value: bytes('later'), ttlMs: 60_000, onlyIfAbsent: true },
        { key: '{hopgate}:b', value: bytes('b'), ttlMs: 60_000, onlyIfAbsent: true },
      ],
      LONG,
    );
    const found = await cache.getMany(['{hopgate}:a', '{hopgate}:none', '{hopgate}:b'], LONG);
    expect(found.map((one) => one && [...one])).toEqual([[...value], undefined, [98]]);
    expect(changes).toEqual(['up']);
    expect(cache.state.trips).toBe(5);
  });

  test('a script that the server has forgotten is sent again', async () => {
    const { cache } = open(single(server.port));
    await add(cache, '{hopgate}:forgotten', 1);
    cacheCommand(server.port, 'script', 'flush');
    expect(await add(cache, '{hopgate}:forgotten', 1)).toBe(2);
  });

  test('an error of a script is the caller’s, and the cache stays up', async () => {
    const { cache } = open(single(server.port));
    const wrong = cache.run(script('return redis.call("NOSUCH")'), ['{hopgate}:x'], [], LONG);
    expect(await wrong.catch((thrown: Error) => thrown.name)).toBe('ReplyError');
    expect(cache.state.status).toBe('up');
  });

  test('a frozen server ends calls at their deadline, is not asked until it answers, and comes back', async () => {
    const { cache, changes } = open(single(server.port));
    await add(cache, '{hopgate}:frozen', 1);
    server.freeze();
    try {
      const late = await add(cache, '{hopgate}:frozen', 1, 100).catch((thrown) => thrown);
      expect(late).toBeInstanceOf(EngineAway);
      const { trips } = cache.state;
      for (let i = 0; i < 50; i++) {
        expect(
          await add(cache, '{hopgate}:frozen', 1, 100).catch((thrown) => thrown),
        ).toBeInstanceOf(EngineAway);
      }
      // These never went out.
      expect(cache.state.trips).toBe(trips);
    } finally {
      server.thaw();
    }
    await until(() => cache.state.status === 'up');
    expect(changes).toEqual(['up', 'down', 'up']);
    await add(cache, '{hopgate}:frozen', 1);
  });

  test('a server that is killed and comes back; who listens, listens again', async () => {
    const own = await startCache();
    const { cache } = open(single(own.port));
    const heard: (string | undefined)[] = [];
    cache.watch('{hopgate}:news', (message) => heard.push(message));
    await until(async () => {
      await cache.publish('{hopgate}:news', 'one', LONG);
      return heard.includes('one');
    });
    await own.kill();
    expect(await add(cache, '{hopgate}:n', 1, 500).catch((thrown) => thrown)).toBeInstanceOf(
      EngineAway,
    );
    heard.length = 0;
    await own.restart();
    await until(() => cache.state.status === 'up');
    await until(async () => {
      await cache.publish('{hopgate}:news', 'two', LONG).catch(() => {});
      return heard.includes('two');
    });
    // The gap is told before anything new.
    expect(heard[0]).toBeUndefined();
    await own.stop();
  });

  test('connections that are cut, and a network that swallows everything', async () => {
    const { cache } = open(single(proxy.port));
    await add(cache, '{hopgate}:cut', 1);
    proxy.cut();
    await until(() => add(cache, '{hopgate}:cut', 1, 500).then(Boolean, () => false));
    proxy.silent = true;
    expect(await add(cache, '{hopgate}:cut', 1, 100).catch((thrown) => thrown)).toBeInstanceOf(
      EngineAway,
    );
    proxy.silent = false;
    await until(() => cache.state.status === 'up');
    await add(cache, '{hopgate}:cut', 1);
  });

  test.each([
    ['OOM', 'maxmemory', '1', '0', 'more memory'],
    ['NOREPLICAS', 'min-replicas-to-write', '1', '0', 'replicas'],
  ])(
    'a server that answers pings and refuses writes (%s) is away until it takes them, and doctor says why',
    async (code, name, wrong, right, remedy) => {
      const { cache, changes } = open(single(server.port));
      await add(cache, '{hopgate}:writes', 1);
      cacheCommand(server.port, 'config', 'set', name, wrong);
      try {
        expect(await failureOf(add(cache, '{hopgate}:writes', 1))).toBeInstanceOf(EngineAway);
        // The next pings say the same.
        await Bun.sleep(1200);
        expect(changes).toEqual(['up', 'down']);
        expect(cache.state.message).toStartWith(code);
        expect(cache.state.message).not.toContain('script:');
        const found = await open(single(server.port)).cache.examine();
        const [fault] = found.filter(({ status }) => status === 'fail');
        expect(fault!.message).toContain(code);
        expect(fault!.hint).toContain(remedy);
      } finally {
        cacheCommand(server.port, 'config', 'set', name, right);
      }
      await until(() => cache.state.status === 'up');
      await add(cache, '{hopgate}:writes', 1);
      expect(changes).toEqual(['up', 'down', 'up']);
    },
  );

  test('a server that wants a password counts as away, whether there is none or a wrong one', async () => {
    const locked = await startCache(['--requirepass', 'another']);
    try {
      for (const more of [{}, { password: new Secret('wrong') }]) {
        const { cache } = open({ ...single(locked.port), ...more });
        expect(await failureOf(add(cache, '{hopgate}:a', 1))).toBeInstanceOf(EngineAway);
        expect(cache.state.status).toBe('down');
        expect(cache.state.message).toMatch(/NOAUTH|WRONGPASS/);
      }
    } finally {
      await locked.stop();
    }
  });

  const denied = (...rights: readonly string[]) =>
    cacheCommand(
      server.port,
      'acl',
      'setuser',
      'denied',
      'reset',
      'on',
      '>secret',
      '+@all',
      ...rights,
    );
  const asDenied = () => ({
    ...single(server.port),
    username: 'denied',
    password: new Secret('secret'),
  });
  test.each([
    ['scripts', ['~*', '&*', '-@scripting']],
    ['a command within scripts', ['~*', '&*', '-incrby', '-set']],
    ['the keys', ['~other:*', '&*']],
  ])(
    'a user that loses the right to %s makes the cache away, until it has it again',
    async (_, rights) => {
      denied('~*', '&*');
      const { cache, changes } = open(asDenied());
      await add(cache, '{hopgate}:rights', 1);
      denied(...rights);
      expect(await failureOf(add(cache, '{hopgate}:rights', 1))).toBeInstanceOf(EngineAway);
      expect(cache.state.message).toMatch(/permission|user executing/i);
      denied('~*', '&*');
      await until(() => cache.state.status === 'up');
      await add(cache, '{hopgate}:rights', 1);
      expect(changes).toEqual(['up', 'down', 'up']);
    },
  );

  test('a key that another program has written makes the cache away, and not each request an error', async () => {
    const { cache } = open(single(server.port));
    cacheCommand(server.port, 'rpush', '{hopgate}:foreign', 'x');
    expect(await failureOf(add(cache, '{hopgate}:foreign', 1))).toBeInstanceOf(EngineAway);
    expect(cache.state.message).toContain('WRONGTYPE');
  });

  test('a user without the right to channels sends no hints, and doctor says so', async () => {
    denied('~*', 'resetchannels');
    const { cache } = open(asDenied());
    await cache.publish('{hopgate}:x', '', LONG);
    expect(cache.state.status).toBe('up');
    const findings = await cache.examine();
    const told = findings.find(({ message }) => message.startsWith('hints cannot be sent'));
    expect(told).toMatchObject({ status: 'fail', hint: expect.stringContaining('&{hopgate}:*') });
  });

  test('the rights that doctor names are enough for every channel of the program', async () => {
    for (const file of new Bun.Glob('**/*.ts').scanSync(SOURCES)) {
      const text = await Bun.file(join(SOURCES, file)).text();
      for (const [, channel] of text.matchAll(/CHANNEL = '([^']*)'/g)) {
        expect(channel, file).toStartWith('{hopgate}:');
      }
    }
  });

  test('doctor’s findings, also where the user may do little', async () => {
    const { cache } = open(single(server.port));
    const full = await cache.examine();
    expect(full.find(({ status }) => status !== 'ok')).toMatchObject({
      status: 'warn',
      message: 'evicts by noeviction: a full cache refuses writes',
    });
    cacheCommand(server.port, 'config', 'set', 'maxmemory-policy', 'volatile-lru');
    const findings = await cache.examine();
    expect(findings.map(({ status }) => status)).toEqual(['ok', 'ok', 'ok', 'ok', 'ok', 'ok']);
    cacheCommand(server.port, 'config', 'set', 'maxmemory-policy', 'allkeys-lru');
    cacheCommand(
      server.port,
      'acl',
      'setuser',
      'little',
      'on',
      '>secret',
      '+@all',
      '-@scripting',
      '~*',
    );
    const little = open({
      ...single(server.port),
      username: 'little',
      password: new Secret('secret'),
    });
    const found = await little.cache.examine();
    cacheCommand(server.port, 'config', 'set', 'maxmemory-policy', 'noeviction');
    expect(found.map(({ status }) => status)).toEqual(['ok', 'fail', 'warn', 'ok', 'ok', 'ok']);
  });

  test('doctor’s finding of what is kept over a restart: nothing, snapshots, a log, or what fails', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'hopgate-cache-'));
    const said = async (port: number, address: Partial<CacheAddress> = {}) => {
      const { cache } = open({ ...single(port), ...address });
      const findings = await cache.examine();
      return findings[3];
    };
    expect((await said(server.port))?.message).toStartWith('keeps nothing over a restart');
    cacheCommand(server.port, 'acl', 'setuser', 'few', 'on', '>secret', '+@all', '-config', '~*');
    const few = { username: 'few', password: new Secret('secret') };
    expect((await said(server.port, few))?.message).toContain('has no append-only file');
    const snapshots = await startCache([
      ...['--save', '3600 1', '--dir', folder],
      ...['--stop-writes-on-bgsave-error', 'no'],
    ]);
    expect((await said(snapshots.port))?.message).toEndWith('up to its last snapshot');
    rmSync(folder, { recursive: true });
    cacheCommand(snapshots.port, 'bgsave');
    await until(() => cacheCommand(snapshots.port, 'info').includes('bgsave_status:err'));
    expect(await said(snapshots.port)).toMatchObject({
      status: 'warn',
      message: 'its last snapshot failed',
    });
    const log = await startCache(['--appendonly', 'yes']);
    expect(await said(log.port)).toEqual({
      status: 'ok',
      message: 'keeps what it holds over a restart',
    });
    await Promise.all([snapshots.stop(), log.stop()]);
  });
});

describe.skipIf(!HAS_SENTINEL)('Sentinel', () => {
  test.each([
    ['without a password', undefined],
    ['with a password of its own', 'pw-of-sentinels'],
  ])('%s: after a failover, calls go to the new primary', async (_, password) => {
    const group = await startSentinel(password);
    const { cache } = open({
      form: 'sentinel',
      nodes: [{ host: '127.0.0.1', port: group.sentinel.port }],
      master: 'main',
      ...(password !== undefined && { sentinelPassword: new Secret(password) }),
      db: 0,
      tls: false,
    });
    await add(cache, '{hopgate}:n', 1);
    const before = group.primary();
    await group.servers.find(({ port }) => port === before)!.kill();
    await until(() => group.primary() !== before);
    await until(() => add(cache, '{hopgate}:n', 1, 1000).then(Boolean, () => false));
    expect(cache.state.status).toBe('up');
    await cache.close();
    await group.stop();
  });
});

describe.skipIf(!HAS_CACHE)('a cluster', () => {
  test('keys of one slot, whichever node has it', async () => {
    const cluster = await startCluster();
    const { cache } = open({
      form: 'cluster',
      nodes: cluster.servers.map(({ port }) => ({ host: '127.0.0.1', port })),
      db: 0,
      tls: false,
    });
    expect(await add(cache, '{hopgate}:n', 2)).toBe(2);
    await cache.put([{ key: '{other}:a', value: bytes('a'), ttlMs: 60_000 }], LONG);
    const found = await cache.getMany(['{other}:a', '{other}:b'], LONG);
    expect(found.map((one) => one && Buffer.from(one).toString())).toEqual(['a', undefined]);
    // The same servers, named as if each were alone.
    for (const { port } of cluster.servers) {
      const { cache: alone } = open(single(port));
      const failures = await Promise.all(
        ['{a}', '{b}', '{c}', '{d}', '{e}', '{f}'].map((key) => failureOf(add(alone, key, 1))),
      );
      expect(failures.some((one) => one instanceof EngineAway)).toBe(true);
      expect(alone.state.message).toMatch(/^MOVED/);
    }
    await cache.close();
    await cluster.stop();
  });
});

describe.skipIf(!HAS_CACHE)('a server that is not there', () => {
  test.each([
    ['single', 'ECONNREFUSED'],
    ['sentinel', 'All sentinels are unreachable'],
    // The client of a cluster says no more.
    ['cluster', 'no answer'],
  ] as const)('%s: what is told names the reason', async (form, told) => {
    const server = await startCache();
    await server.stop();
    const address = {
      ...single(server.port),
      form,
      ...(form === 'sentinel' && { master: 'main' }),
    };
    const { cache } = open(address);
    const thrown = await cache.getMany(['{hopgate}:a'], 1000).catch((error: unknown) => error);
    expect(thrown).toBeInstanceOf(EngineAway);
    expect(cache.state.message).toContain(told);
  });
});
