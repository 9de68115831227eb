/** What rests at upstreams, over several replicas on a real cache: one learns it, all keep to it, and all go on. */

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import { restEvents } from '../../../src/app/operations/shared-health.ts';
import { environmentFrom } from '../../../src/config/environment.ts';
import { parseConfig } from '../../../src/config/load.ts';
import { Abort } from '../../../src/lib/loop/abort.ts';
import type { ValkeyCache } from '../../../src/state/engines/valkey.ts';
import { AWAKE, RESTING } from '../../../src/upstream/health/rest.ts';
import { SharedHealth } from '../../../src/upstream/health/shared-health.ts';
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

describe.skipIf(!HAS_CACHE)('shared rests', () => {
  let server: Server;
  const opened: { health: SharedHealth; cache: ValkeyCache }[] = [];
  beforeAll(async () => {
    server = await startCache();
  });
  afterEach(async () => {
    server.thaw();
    for (const { health, cache } of opened.splice(0)) {
      await health.close();
      await cache.close();
    }
    cacheCommand(server.port, 'flushall');
  });
  afterAll(() => server.stop());

  function replica(pollMs = 50) {
    const cache = cacheAt(server.port);
    const reported: string[] = [];
    const health = new SharedHealth({
      cache,
      replica: crypto.randomUUID(),
      upstreams: () => pool,
      pollMs,
    });
    const report = (_: string, __: unknown, begins: boolean) =>
      void reported.push(begins ? 'rests' : 'back');
    const pool = new UpstreamPool(
      { builtIn: {}, proxied: () => false, ...restEvents(report, health) },
      providers(),
    );
    health.open();
    opened.push({ health, cache });
    const upstream = () => pool.named('up')!;
    const place = (key: number, model = 'm') => {
      const { keys } = upstream();
      keys.placeFor(model, session(0));
      return [...keys.models].find(({ name }) => name === model)!.places[key]!;
    };
    return {
      cache,
      health,
      upstream,
      reported,
      /** A request with this key; a session that leads to it is looked for. */
      lend(key: number, model = 'm') {
        const { keys } = upstream();
        for (let hash = 1; ; hash += 0x9e3779b9) {
          const loan = keys.lend(model, session(hash >>> 0));
          if (loan.place === place(key, model)) return loan;
          loan.settle('neither', keys.now);
        }
      },
      standing: (key: number, model = 'm') => place(key, model).standing(upstream().keys.now),
      now: () => upstream().keys.now,
    };
  }

  test('the 429 of one replica keeps all others from that key and model, and only from them', async () => {
    // Long polls: the hint is enough.
    const [a, b] = [replica(600_000), replica(600_000)];
    await until(() => a.health.replicas === 2 || b.health.replicas === 2);
    a.lend(0).settle({ ...RATE_LIMIT, askedMs: 60_000 }, a.now());
    await until(() => b.standing(0) === RESTING);
    expect(b.standing(1)).toBe(AWAKE);
    expect(b.standing(0, 'other')).toBe(AWAKE);
    // Told by the one that saw it.
    expect([a.reported, b.reported]).toEqual([['rests'], []]);
    // One that starts later reads it.
    const c = replica();
    await until(() => c.standing(0) === RESTING);
    const stored = cacheCommand(server.port, 'hgetall', '{hopgate}:rests');
    expect(stored).toContain('rate_limit');
    expect(stored).not.toContain('key-of');
  });

  test('a refused key rests for every model, a vendor without capacity for every key', async () => {
    const [a, b] = [replica(), replica()];
    a.lend(1).settle(REFUSED, a.now());
    a.lend(0, 'full').settle(OVERLOADED, a.now());
    await until(() => b.standing(1, 'any') === RESTING && b.standing(0, 'full') === RESTING);
    expect(b.standing(0, 'any')).toBe(AWAKE);
  });

  test('an answer ends the rest everywhere, also for the replica that began it', async () => {
    const [a, b] = [replica(), replica()];
    const loan = a.lend(0);
    loan.settle({ ...RATE_LIMIT, askedMs: 300 }, a.now());
    await until(() => b.standing(0) === RESTING);
    await until(() => b.standing(0) !== RESTING);
    b.lend(0).settle('answered', b.now());
    expect(b.standing(0)).toBe(AWAKE);
    await until(() => a.standing(0) === AWAKE);
    // The news of the end does not end what begins after it.
    a.lend(0).settle({ ...RATE_LIMIT, askedMs: 60_000 }, a.now());
    await until(() => b.standing(0) === RESTING);
    await Bun.sleep(200);
    expect([a.standing(0), b.standing(0)]).toEqual([RESTING, RESTING]);
  });

  test('failures elsewhere are believed, but not by a replica that has just had an answer', async () => {
    const [a, b, c] = [replica(), replica(), replica()];
    c.lend(0).settle('answered', c.now());
    for (let i = 0; i < 5; i++) a.lend(0).settle(FAILED, a.now());
    expect(a.standing(0)).toBe(RESTING);
    await until(() => b.standing(0) === RESTING);
    expect(c.standing(0)).toBe(AWAKE);
  });

  test('a cache that is frozen, emptied or restarted changes nothing that is known, and news arrive later', async () => {
    const [a, b] = [replica(), replica()];
    a.lend(0).settle({ ...RATE_LIMIT, askedMs: 60_000 }, a.now());
    await until(() => b.standing(0) === RESTING);
    cacheCommand(server.port, 'flushall');
    await Bun.sleep(150);
    expect([a.standing(0), b.standing(0)]).toEqual([RESTING, RESTING]);
    server.freeze();
    a.lend(1).settle({ ...RATE_LIMIT, askedMs: 60_000 }, a.now());
    await until(() => a.cache.state.status === 'down');
    server.thaw();
    await until(() => b.standing(1) === RESTING);
    await server.restart();
    a.lend(0, 'after').settle({ ...RATE_LIMIT, askedMs: 60_000 }, a.now());
    await until(() => b.standing(0, 'after') === RESTING);
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
    for (const { health, cache } of opened.splice(1)) {
      await health.close();
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
    a.lend(0).settle({ ...RATE_LIMIT, askedMs: 60_000 }, a.now());
    const b = replica();
    await until(() => b.standing(0) === RESTING);
    expect(cacheCommand(server.port, 'hget', '{hopgate}:rests', 'x')).toBe(later);
  });
});
