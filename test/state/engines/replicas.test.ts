/** The table of replicas: who is live, who went, and whose configuration differs from the others'. */

import {
  afterAll,
  afterEach,
  beforeAll,
  describe,
  expect,
  setDefaultTimeout,
  test,
} from 'bun:test';
import { configFingerprint } from '../../../src/config/config.ts';
import { Secret } from '../../../src/config/secret.ts';
import { PostgresDatabase } from '../../../src/state/engines/postgres.ts';
import { liveReplicas, type ReplicaFacts, Replicas } from '../../../src/state/engines/replicas.ts';
import { configWith } from '../../support/access.ts';
import {
  type DatabaseServer,
  HAS_POSTGRES,
  newDatabase,
  startPostgres,
} from '../../support/engines/database-servers.ts';

setDefaultTimeout(60_000);

describe.skipIf(!HAS_POSTGRES)('replicas', () => {
  let server: DatabaseServer;
  const cleanups: (() => Promise<void>)[] = [];
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterEach(async () => {
    for (const one of cleanups.splice(0).reverse()) await one();
  });
  afterAll(() => server.stop());

  async function emptyDatabase() {
    const { url, database } = await newDatabase(server);
    cleanups.push(() => database.close());
    return { url, database };
  }

  let started = 0;
  function replica(url: string, more: Partial<ReplicaFacts> = {}) {
    const database = new PostgresDatabase({ url: new Secret(url) }, () => {});
    const facts = { id: `r${++started}`, host: 'h', version: '1', config: 'a', started, ...more };
    const own = { ...facts };
    const told: string[][] = [];
    const replicas = new Replicas({
      database,
      own: () => own,
      onDiffers: (others) => told.push(others.map(({ id }) => id)),
      heartbeatMs: 3_600_000,
      liveMs: 1500,
    });
    cleanups.push(
      () => database.close(),
      () => replicas.close(),
    );
    return { database, replicas, told, own };
  }
  const ids = ({ replicas }: ReturnType<typeof replica>) => replicas.all.map(({ id }) => id);

  test('each knows the others after its heartbeat; one that closes or falls silent is gone', async () => {
    const { url, database } = await emptyDatabase();
    expect(await liveReplicas(database)).toEqual([]);
    const [a, b, c] = [replica(url), replica(url), replica(url)];
    for (const one of [a, b, c]) {
      one.replicas.open();
      await one.replicas.heartbeat();
    }
    await a.replicas.heartbeat();
    expect(ids(a)).toEqual([a.own.id, b.own.id, c.own.id]);
    expect(ids(c)).toEqual([c.own.id, a.own.id, b.own.id]);
    expect((await liveReplicas(database)).map(({ id }) => id)).toEqual(ids(a));
    await b.replicas.close();
    await a.replicas.heartbeat();
    expect(ids(a)).toEqual([a.own.id, c.own.id]);
    // The other says nothing for longer than it counts.
    await Bun.sleep(1600);
    await a.replicas.heartbeat();
    expect(ids(a)).toEqual([a.own.id]);
    await c.replicas.heartbeat();
    expect(ids(c)).toEqual([c.own.id, a.own.id]);
  });

  test('only the one that differs is told, once until it does not; other versions say nothing', async () => {
    const { url } = await emptyDatabase();
    const [a, b] = [replica(url), replica(url)];
    const odd = replica(url, { config: 'b' });
    const newer = replica(url, { config: 'c', version: '2' });
    const all = [a, b, odd, newer];
    const beat = async () => {
      for (const one of all) await one.replicas.heartbeat();
    };
    await beat();
    await beat();
    await beat();
    expect(all.map(({ told }) => told)).toEqual([[], [], [[a.own.id, b.own.id]], []]);
    odd.own.config = 'a';
    await beat();
    odd.own.config = 'b';
    await beat();
    expect(odd.told).toHaveLength(2);
    expect([a.told, b.told]).toEqual([[], []]);
  });

  test('of two that differ, the one that started later is told', async () => {
    const { url } = await emptyDatabase();
    const [older, newer] = [replica(url), replica(url, { config: 'b' })];
    for (let n = 0; n < 2; n++) {
      await older.replicas.heartbeat();
      await newer.replicas.heartbeat();
    }
    expect([older.told, newer.told]).toEqual([[], [[older.own.id]]]);
  });

  test('while the database is away the others are those of before, and closing waits for nothing long', async () => {
    const own = await startPostgres();
    const one = replica(own.url);
    const other = replica(own.url);
    one.replicas.open();
    await one.replicas.heartbeat();
    await other.replicas.heartbeat();
    await one.replicas.heartbeat();
    await own.kill();
    await one.replicas.heartbeat();
    expect(ids(one)).toEqual([one.own.id, other.own.id]);
    await one.replicas.close();
    await own.stop();
  });
});

describe('the fingerprint of a configuration', () => {
  const base = {
    auth: { keys: [{ name: 'a', key: 'a-key-of-tests' }] },
    budgets: [{ name: 'b', keys: {}, usd: 3, per: 'day' }],
  };
  const of = (more: object) => configFingerprint(configWith({ ...base, ...more }));

  test('is the same for another machine and another order of members', () => {
    expect(of({})).toMatch(/^[0-9a-f]{12}$/);
    const elsewhere = { listen: '127.0.0.1:7000', workers: 3, samples: { dir: '/srv/samples' } };
    expect(of(elsewhere)).toBe(of({}));
    const turned = { budgets: [{ per: 'day', usd: 3, keys: {}, name: 'b' }] };
    expect(of(turned)).toBe(of({}));
  });

  test('shows another limit, and says nothing of a secret', () => {
    expect(of({ budgets: [{ name: 'b', keys: {}, usd: 4, per: 'day' }] })).not.toBe(of({}));
    expect(of({ auth: { keys: [{ name: 'a', key: 'another-key-of-tests' }] } })).toBe(of({}));
  });
});
