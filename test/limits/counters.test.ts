/** Rates and slots of several replicas on a real cache: exact together, without a trip where there is plenty. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { Secret } from '../../src/config/secret.ts';
import { cacheCounter } from '../../src/limits/cache-counter.ts';
import { LEASE_MS } from '../../src/limits/counters.ts';
import type { Admission, RateLimit, SlotsLimit, Ticket } from '../../src/limits/limits.ts';
import { ProcessLimits } from '../../src/limits/process-limits.ts';
import { ValkeyCache } from '../../src/state/engines/valkey.ts';
import { HAS_CACHE, startCache } from '../support/engines/cache-servers.ts';
import type { Server } from '../support/engines/processes.ts';
import { until } from '../support/until.ts';

/** An answer of the cache that comes later is none: only where it is frozen is one to be late. */
const PATIENCE_MS = 10_000;

describe.skipIf(!HAS_CACHE)('shared rates', () => {
  let server: Server;
  let limits = 0;
  const opened: { close(): void | Promise<void> }[] = [];
  beforeAll(async () => {
    server = await startCache();
  });
  afterAll(async () => {
    for (const one of opened) await one.close();
    await server.stop();
  });

  function replica(
    onError: 'local' | 'open' | 'closed' = 'local',
    leaseMs?: number,
    port = server.port,
    deadlineMs = PATIENCE_MS,
  ) {
    const address = {
      form: 'single',
      nodes: [{ host: '127.0.0.1', port }],
      db: 0,
      tls: false,
    } as const;
    const cache = new ValkeyCache({ ...address, password: new Secret('') }, () => {});
    const own = { cache, replica: crypto.randomUUID(), leaseMs: leaseMs ?? LEASE_MS };
    const counter = { ...cacheCounter(own), deadlineMs };
    const rates = new ProcessLimits({ counter: { counter, onError, leaseMs } });
    opened.push(rates, cache);
    return { rates, cache };
  }
  const rate = (amount: number, unit: 'requests' | 'tokens' = 'requests'): RateLimit => ({
    kind: 'rate',
    id: `${unit}:${++limits}`,
    unit,
    amount,
    periodMs: 3_600_000,
  });
  const slots = (amount: number): SlotsLimit => ({
    kind: 'slots',
    id: `streams:${++limits}`,
    unit: 'exchanges',
    amount,
  });
  const ticketOf = (admission: Admission): Ticket => {
    if (!admission.admitted) throw new Error('refused');
    return admission;
  };

  test('three replicas together admit exactly the amount, and say when more comes', async () => {
    const replicas = [replica(), replica(), replica()];
    const limit = rate(10);
    const results = await Promise.all(
      Array.from({ length: 60 }, (_, i) => replicas[i % 3]!.rates.admit([{ limit, amount: 1 }])),
    );
    expect(results.filter(({ admitted }) => admitted).length).toBe(10);
    const refused = results.find((one) => !one.admitted)!;
    if (refused.admitted) throw new Error();
    expect(refused.limit).toBe(limit);
    expect(refused.retryAfterMs).toBeGreaterThan(0);
    expect(refused.retryAfterMs!).toBeLessThanOrEqual(360_000);
    expect(refused.usage.remaining).toBe(0);
  });

  test('many requests at once are not refused for what each of them took ahead', async () => {
    for (let round = 0; round < 10; round++) {
      const replicas = [replica(), replica()];
      const limit = rate(600);
      // They know by now that more will come.
      for (const { rates } of replicas) {
        for (let i = 0; i < 50; i++) await rates.admit([{ limit, amount: 1 }]);
      }
      const results = await Promise.all(
        Array.from({ length: 1000 }, (_, i) =>
          replicas[i % 2]!.rates.admit([{ limit, amount: 1 }]),
        ),
      );
      const admitted = 100 + results.filter((one) => one.admitted).length;
      expect(admitted).toBeLessThanOrEqual(602);
      // A tenth at most lies at a replica that had no use for it.
      expect(admitted).toBeGreaterThanOrEqual(540);
    }
  });

  test('what was granted to a request is not given back by an answer that comes beside it', async () => {
    const replicas = [replica(), replica(), replica()];
    for (let round = 0; round < 60; round++) {
      const limit = rate(10);
      const results = await Promise.all(
        Array.from({ length: 60 }, (_, i) => replicas[i % 3]!.rates.admit([{ limit, amount: 1 }])),
      );
      expect([round, results.filter(({ admitted }) => admitted).length]).toEqual([round, 10]);
    }
  });

  test('with several limits, all or nothing is taken', async () => {
    const { rates } = replica();
    const [wide, narrow] = [rate(100), rate(1)];
    const both = [
      { limit: wide, amount: 1 },
      { limit: narrow, amount: 1 },
    ];
    expect((await rates.admit(both)).admitted).toBe(true);
    const refused = await replica().rates.admit(both);
    expect(refused.admitted).toBe(false);
    // Of each limit, also of the one that has plenty.
    const left = refused.usages();
    expect(left.map(({ limit }) => limit)).toEqual([wide, narrow]);
    expect(left[1]!.remaining).toBe(0);
    expect(left[0]!.remaining).toBeGreaterThan(0);
    const [usage] = await rates.usage([wide]);
    expect(usage!.used).toBe(1);
  });

  test('where there is plenty, requests ask nothing: trips follow time, not requests', async () => {
    const { rates, cache } = replica();
    const limit = rate(1_000_000);
    // It learns how much is used.
    for (let i = 0; i < 200; i++) ticketOf(await rates.admit([{ limit, amount: 1 }])).settle([1]);
    await until(() => !(rates.admit([{ limit, amount: 1 }]) instanceof Promise));
    const { trips } = cache.state;
    let waited = 0;
    for (let i = 0; i < 5000; i++) {
      const admission = rates.admit([{ limit, amount: 1 }]);
      if (admission instanceof Promise) waited++;
      ticketOf(await admission).settle([1]);
      if (i % 100 === 0) await Bun.sleep(0);
    }
    expect(waited).toBeLessThan(100);
    expect(cache.state.trips - trips).toBeLessThan(250);
  });

  test('slots are exact, and a slot that is free goes to whoever asks next, on any replica', async () => {
    const [a, b] = [replica(), replica()];
    const limit = slots(3);
    const ask = (one: typeof a) => one.rates.admit([{ limit, amount: 1 }]);
    const held = [await ask(a), await ask(b), await ask(a)];
    expect(held.map(({ admitted }) => admitted)).toEqual([true, true, true]);
    expect((await ask(b)).admitted).toBe(false);
    ticketOf(held[0]!).settle([1]);
    const next = await until(async () => {
      const admission = await ask(b);
      return admission.admitted && admission;
    });
    expect((await ask(a)).admitted).toBe(false);
    for (const one of [held[1]!, held[2]!, next]) ticketOf(one).settle([1]);
    await until(async () => (await a.rates.usage([limit]))[0]!.used === 0);
  });

  test('the slots of a replica that dies are free after their time', async () => {
    const limit = slots(1);
    const dying = replica('local', 600);
    expect((await dying.rates.admit([{ limit, amount: 1 }])).admitted).toBe(true);
    // Its connection goes, and its heartbeat with it.
    await dying.cache.close();
    const other = replica('local', 600);
    expect((await other.rates.admit([{ limit, amount: 1 }])).admitted).toBe(false);
    await until(async () => (await other.rates.admit([{ limit, amount: 1 }])).admitted);
  });

  test('tokens: less comes back, more is a debt, on every replica', async () => {
    const [a, b] = [replica(), replica()];
    const limit = rate(1000, 'tokens');
    ticketOf(await a.rates.admit([{ limit, amount: 800 }])).settle([100]);
    const second = await until(async () => {
      const admission = await b.rates.admit([{ limit, amount: 800 }]);
      return admission.admitted && admission;
    });
    second.settle([1500]);
    await until(async () => {
      const [usage] = await a.rates.usage([limit]);
      return usage!.used >= 1000;
    });
    expect((await a.rates.admit([{ limit, amount: 1 }])).admitted).toBe(false);
  });

  test('more than the amount can never be admitted, and asks nothing', () => {
    const { rates, cache } = replica();
    const admission = rates.admit([{ limit: rate(5), amount: 6 }]);
    expect(admission).toMatchObject({ admitted: false, retryAfterMs: undefined });
    expect(cache.state.trips).toBe(0);
  });

  test('while the cache is frozen: the share of this replica, no limit, or nothing; then as before', async () => {
    const own = await startCache();
    const of = (onError: 'local' | 'open' | 'closed') => replica(onError, undefined, own.port, 100);
    const [local, open, closed] = [of('local'), of('open'), of('closed')];
    const limit = rate(9);
    // Each has been heard of.
    for (const one of [local, open, closed, local]) await one.rates.admit([{ limit, amount: 1 }]);
    own.freeze();
    const ask = (one: typeof local, count: number) =>
      Promise.allSettled(
        Array.from({ length: count }, () => one.rates.admit([{ limit, amount: 1 }])),
      );
    const admitted = (results: readonly PromiseSettledResult<Admission>[]) =>
      results.filter((one) => one.status === 'fulfilled' && one.value.admitted).length;
    expect(admitted(await ask(local, 20))).toBe(3);
    expect(admitted(await ask(open, 20))).toBe(20);
    const refused = await ask(closed, 3);
    expect(refused.map((one) => one.status === 'rejected' && one.reason.code)).toEqual(
      Array.from({ length: 3 }, () => 'limits_unavailable'),
    );
    own.thaw();
    await until(() => local.cache.state.status === 'up');
    await until(async () => !(await local.rates.admit([{ limit, amount: 1 }])).admitted);
    for (const one of [local, open, closed]) {
      await one.rates.close();
      await one.cache.close();
    }
    await own.stop();
  });
});
