/** Cooldowns over several replicas on a real cache: one learns it, all keep to it, and all go on. */

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import { environmentFrom } from '../../../src/config/environment.ts';
import { parseConfig } from '../../../src/config/load.ts';
import { Abort } from '../../../src/lib/loop/abort.ts';
import type { ValkeyCache } from '../../../src/state/engines/valkey.ts';
import { ValkeyHints } from '../../../src/state/key-value/hints.ts';
import { AVAILABLE, COOLING } from '../../../src/upstream/health/cooldown.ts';
import { CooldownHints } from '../../../src/upstream/health/hints.ts';
import { UpstreamPool } from '../../../src/upstream/pool.ts';
import { cacheAt } from '../../support/engines/cache-replicas.ts';
import { cacheCommand, HAS_CACHE, startCache } from '../../support/engines/cache-servers.ts';
import type { Server } from '../../support/engines/processes.ts';
import { until } from '../../support/until.ts';
import { OVERLOADED, RATE_LIMIT, REFUSED, session } from './places.ts';

const FAILED = 'failed';
const UP = {
  protocol: 'openai-chat',
  base_url: 'http://up.test/v1',
  keys: ['key-of-one', 'key-of-two'],
  concurrency: 7,
};

function providers() {
  const text = JSON.stringify({ providers: { up: UP } });
  const loaded = parseConfig(text, 'test.yaml', environmentFrom({}, '/nowhere'));
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  return loaded.config.providers;
}

describe.skipIf(!HAS_CACHE)('cooldowns of all replicas', () => {
  let server: Server;
  const opened: { hints: ValkeyHints; cache: ValkeyCache }[] = [];
  beforeAll(async () => {
    server = await startCache();
  });
  afterEach(async () => {
    server.thaw();
    for (const { hints, cache } of opened.splice(0)) {
      await hints.close();
      await cache.close();
    }
    cacheCommand(server.port, 'flushall');
  });
  afterAll(() => server.stop());

  function replica(pollMs = 50) {
    const cache = cacheAt(server.port);
    const reported: string[] = [];
    const hints = new ValkeyHints({ cache, replica: crypto.randomUUID(), pollMs });
    const cooldowns = new CooldownHints(hints, () => pool);
    const pool = new UpstreamPool(
      {
        builtIn: {},
        proxied: () => false,
        onCooldown(upstream, change) {
          reported.push(change.kind);
          cooldowns.tell(upstream, change);
        },
        replicas: () => hints.replicas,
      },
      providers(),
    );
    cooldowns.open();
    opened.push({ hints, cache });
    const upstream = () => pool.named('up')!;
    const place = (key: number, model = 'm') => {
      const { keys } = upstream();
      keys.placeFor(model, session(0));
      return [...keys.models].find(({ name }) => name === model)!.places[key]!;
    };
    return {
      cache,
      hints,
      upstream,
      reported,
      /** A request with this key; a session that leads to it is looked for. */
      lease(key: number, model = 'm') {
        const { keys } = upstream();
        for (let hash = 1; ; hash += 0x9e3779b9) {
          const lease = keys.lease(model, session(hash >>> 0));
          if (lease.place === place(key, model)) return lease;
          lease.settle('neither', keys.now);
        }
      },
      availability: (key: number, model = 'm') =>
        place(key, model).availability(upstream().keys.now),
      now: () => upstream().keys.now,
    };
  }

  test('the 429 of one replica keeps all others from that key and model, and only from them', async () => {
    // Long polls: the hint is enough.
    const [a, b] = [replica(600_000), replica(600_000)];
    await until(() => a.hints.replicas === 2 || b.hints.replicas === 2);
    a.lease(0).settle({ ...RATE_LIMIT, askedMs: 60_000 }, a.now());
    await until(() => b.availability(0) === COOLING);
    expect(b.availability(1)).toBe(AVAILABLE);
    expect(b.availability(0, 'other')).toBe(AVAILABLE);
    // Told by the one that saw it.
    expect([a.reported, b.reported]).toEqual([['began'], []]);
    // One that starts later reads it.
    const c = replica();
    await until(() => c.availability(0) === COOLING);
    const stored = cacheCommand(server.port, 'hgetall', '{hopgate}:rests');
    expect(stored).toContain('rate_limit');
    expect(stored).not.toContain('key-of');
  });

  test('a refused key rests for every model, a vendor without capacity for every key', async () => {
    const [a, b] = [replica(), replica()];
    a.lease(1).settle(REFUSED, a.now());
    a.lease(0, 'full').settle(OVERLOADED, a.now());
    await until(
      () => b.availability(1, 'any') === COOLING && b.availability(0, 'full') === COOLING,
    );
    expect(b.availability(0, 'any')).toBe(AVAILABLE);
  });

  test('an answer ends the rest everywhere, also for the replica that began it', async () => {
    const [a, b] = [replica(), replica()];
    await until(() => a.hints.replicas === 2 && b.hints.replicas === 2);
    const lease = a.lease(0);
    lease.settle({ ...RATE_LIMIT, askedMs: 1500 }, a.now());
    await until(() => b.availability(0) === COOLING);
    await until(() => b.availability(0) !== COOLING);
    b.lease(0).settle('answered', b.now());
    expect(b.availability(0)).toBe(AVAILABLE);
    await until(() => a.availability(0) === AVAILABLE);
    // The news of the end does not end what begins after it.
    a.lease(0).settle({ ...RATE_LIMIT, askedMs: 60_000 }, a.now());
    await until(() => b.availability(0) === COOLING);
    await Bun.sleep(200);
    expect([a.availability(0), b.availability(0)]).toEqual([COOLING, COOLING]);
  });

  test('failures elsewhere are believed, but not by a replica that has just had an answer', async () => {
    const [a, b, c] = [replica(), replica(), replica()];
    c.lease(0).settle('answered', c.now());
    for (let i = 0; i < 5; i++) a.lease(0).settle(FAILED, a.now());
    expect(a.availability(0)).toBe(COOLING);
    await until(() => b.availability(0) === COOLING);
    expect(c.availability(0)).toBe(AVAILABLE);
  });

  test('a cache that is frozen, emptied or restarted changes nothing that is known, and news arrive later', async () => {
    const [a, b] = [replica(), replica()];
    a.lease(0).settle({ ...RATE_LIMIT, askedMs: 60_000 }, a.now());
    await until(() => b.availability(0) === COOLING);
    cacheCommand(server.port, 'flushall');
    await Bun.sleep(150);
    expect([a.availability(0), b.availability(0)]).toEqual([COOLING, COOLING]);
    server.freeze();
    a.lease(1).settle({ ...RATE_LIMIT, askedMs: 60_000 }, a.now());
    await until(() => a.cache.state.status === 'down');
    server.thaw();
    await until(() => b.availability(1) === COOLING);
    await server.restart();
    a.lease(0, 'after').settle({ ...RATE_LIMIT, askedMs: 60_000 }, a.now());
    await until(() => b.availability(0, 'after') === COOLING);
  });

  test("a provider's concurrency is divided among the replicas that are there, one at least for each", async () => {
    const free = ({ upstream }: ReturnType<typeof replica>) => {
      const calls = [];
      while (!upstream().full) calls.push(upstream().acquire(new Abort()));
      for (const call of calls) {
        if (call instanceof Promise) throw new Error('it was not full');
        call.release();
      }
      return calls.length;
    };
    const a = replica();
    expect(free(a)).toBe(7);
    const b = replica();
    const c = replica();
    await until(() => [a, b, c].every((one) => free(one) === 2));
    for (let i = 0; i < 6; i++) replica();
    await until(() => free(a) === 1);
    for (const { hints, cache } of opened.splice(1)) {
      await hints.close();
      await cache.close();
    }
    await until(() => free(a) === 7);
  });

  test('news that are not understood are left alone', async () => {
    const a = replica();
    await until(() => a.cache.state.status === 'up');
    const later = `${Date.now() + 60_000} {"provider":"up","kind":"of a later version"}`;
    cacheCommand(server.port, 'hset', '{hopgate}:rests', 'x', later);
    cacheCommand(server.port, 'hset', '{hopgate}:rests', 'y', `${Date.now() + 60_000} no json`);
    a.lease(0).settle({ ...RATE_LIMIT, askedMs: 60_000 }, a.now());
    const b = replica();
    await until(() => b.availability(0) === COOLING);
    expect(cacheCommand(server.port, 'hget', '{hopgate}:rests', 'x')).toBe(later);
  });
});
