/** The memory of several replicas on a real Postgres: stored once, erased for good, sealed, and none the worse for faults. */

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import { DEFAULT_LIMITS } from '../../../../src/features/memory/event.ts';
import { type Embedder, embedder } from '../../../../src/features/memory/store/embedder.ts';
import { MemoryStore } from '../../../../src/features/memory/store/memory-store.ts';
import { databaseMemory } from '../../../../src/features/memory/store/own-memory.ts';
import { MEMORY_SCHEMA } from '../../../../src/features/memory/store/schema.ts';
import { Vectors } from '../../../../src/features/memory/store/vectors.ts';
import type { PostgresDatabase } from '../../../../src/state/engines/postgres.ts';
import { openPostgres } from '../../../../src/state/sql/postgres.ts';
import { textSeal } from '../../../../src/state/text-seal.ts';
import {
  type DatabaseServer,
  HAS_BOUNCER,
  HAS_POSTGRES,
  startBouncer,
  startPostgres,
} from '../../../support/engines/database-servers.ts';
import { type FaultProxy, startFaultProxy } from '../../../support/engines/fault-proxy.ts';
import { until } from '../../../support/until.ts';
import { alone, asked, databaseAt, inList, SECRET, watched } from '../support.ts';

const LONG = 20_000;

describe.skipIf(!HAS_POSTGRES)('the memory of several replicas', () => {
  let server: DatabaseServer;
  let reader: PostgresDatabase;
  let spaces = 0;
  const opened: { close(): Promise<void> }[] = [];
  const proxies: FaultProxy[] = [];
  beforeAll(async () => {
    server = await startPostgres();
    reader = databaseAt(server.url);
  });
  afterEach(async () => {
    for (const one of opened.splice(0)) await one.close();
    for (const one of proxies.splice(0)) one.close();
  });
  afterAll(async () => {
    await reader.close();
    await server.stop();
  });

  interface ReplicaOptions {
    readonly port?: number;
    readonly seals?: boolean;
    readonly vectors?: Embedder;
    readonly limits?: Partial<typeof DEFAULT_LIMITS>;
    readonly dedupeMs?: number;
  }
  function replica({
    port,
    seals = false,
    vectors,
    limits,
    dedupeMs = 86_400_000,
  }: ReplicaOptions = {}) {
    const database = databaseAt(
      port === undefined ? server.url : `postgres://hopgate@127.0.0.1:${port}/postgres`,
    );
    const watch = watched();
    const memory = databaseMemory({
      database,
      seal: textSeal(seals ? [SECRET] : []),
      limits: { ...DEFAULT_LIMITS, ...limits },
      dedupeMs,
      embedder: vectors,
      observer: watch,
    });
    opened.push(memory, database);
    return { ...asked(memory, watch), database };
  }
  const newSpace = () => `space ${++spaces}`;
  const proxyOf = async () => {
    const proxy = await startFaultProxy(server.port);
    proxies.push(proxy);
    return proxy;
  };
  /** Everything in the tables, as text and with bytes as they are. */
  async function dump(): Promise<string> {
    const tables = await reader.query<{ name: string }>(
      "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'hopgate'",
      [],
      LONG,
    );
    expect(tables.length).toBeGreaterThan(5);
    const parts: string[] = [];
    for (const { name } of tables) {
      const rows = await reader.query<object>(`SELECT * FROM hopgate.${name}`, [], LONG);
      for (const row of rows) {
        for (const value of Object.values(row)) {
          parts.push(
            value instanceof Uint8Array ? Buffer.from(value).toString() : JSON.stringify(value),
          );
        }
      }
    }
    return parts.join('\n');
  }
  const count = async (sql: string, ...values: readonly (string | number)[]) => {
    const [row] = await reader.query<{ n: number }>(
      `SELECT count(*) AS n FROM ${sql}`,
      values,
      LONG,
    );
    return row!.n;
  };

  test('what one captures, another recalls, in one trip', async () => {
    const [one, other] = [replica(), replica()];
    const space = newSpace();
    await one.memory.capture(space, [{ text: 'Maya is allergic to peanuts', source: 'Tom' }]);
    await one.book.settled();
    expect(await other.recalled(space, 'an allergy?')).toEqual(['Maya is allergic to peanuts']);
    const { trips } = other.database.state;
    for (let i = 0; i < 10; i++) await other.recalled(space, `what is Maya allergic to ${i} 火锅`);
    expect(other.database.state.trips - trips).toBe(10);
    // A capture waits for no engine.
    const before = one.database.state.trips;
    await one.memory.capture(space, [{ text: 'more' }]);
    expect(one.database.state.trips).toBe(before);
  });

  test('the same words that several capture at once are stored once, within the window', async () => {
    const replicas = [
      replica({ dedupeMs: 1000 }),
      replica({ dedupeMs: 1000 }),
      replica({ dedupeMs: 1000 }),
    ];
    const space = newSpace();
    const begin = Date.now();
    for (let round = 0; round < 10; round++) {
      await Promise.all(
        replicas.map(async ({ memory, book }, at) => {
          const time = begin + round * 1001 - at;
          await memory.capture(space, [{ text: `I like  cats`, source: 'Ann', time }]);
          await book.settled();
        }),
      );
    }
    const stored = replicas.reduce((sum, { watch }) => sum + (watch.outcomes.stored ?? 0), 0);
    const duplicates = replicas.reduce(
      (sum, { watch }) => sum + (watch.outcomes.duplicate ?? 0),
      0,
    );
    expect(stored + duplicates).toBe(30);
    expect((await replicas[0]!.texts(space)).length).toBe(stored);
    // Between two rounds are 1001 ms, less what the replicas differ by.
    expect(stored).toBeGreaterThanOrEqual(5);
    expect(stored).toBeLessThanOrEqual(10);
    const words = await reader.query<{ events: number }>(
      `SELECT t.events FROM hopgate.memory_terms t JOIN hopgate.memory_spaces s ON s.id = t.space
        WHERE s.name = $1 AND t.term = 'cat'`,
      [space],
      LONG,
    );
    expect(words).toEqual([{ events: stored }]);
  });

  test('the limit of a space holds over all of them', async () => {
    const replicas = Array.from({ length: 4 }, () => replica({ limits: { events: 50 } }));
    const space = newSpace();
    await Promise.all(
      replicas.map(async ({ memory, book }, at) => {
        for (let i = 0; i < 30; i++) {
          await memory.capture(space, [{ text: `event ${i} of ${at}` }]);
          if (i % 5 === 0) await book.settled();
        }
        await book.settled();
      }),
    );
    expect((await replicas[0]!.texts(space)).length).toBe(50);
    const full = replicas.reduce((sum, { watch }) => sum + (watch.outcomes.full ?? 0), 0);
    expect(full).toBe(70);
    await expect(replicas[0]!.book.add(space, [{ text: 'x' }], alone)).rejects.toMatchObject({
      code: 'memory_full',
    });
  });

  test('many writers of the same spaces, in any order, do not stop each other', async () => {
    const replicas = Array.from({ length: 4 }, () => replica());
    const names = Array.from({ length: 6 }, newSpace);
    await Promise.all(
      replicas.map(async ({ memory, book }, at) => {
        for (let i = 0; i < 15; i++) {
          for (const space of at % 2 === 0 ? names : names.toReversed()) {
            await memory.capture(space, [{ text: `word${i} from ${at}` }]);
          }
          await book.settled();
          const { events } = await book.list(names[i % 6]!, { limit: 1, order: 'asc' });
          if (events[0] !== undefined)
            await book.change(names[i % 6]!, events[0].id, { text: `changed ${i} ${at}` });
        }
      }),
    );
    for (const { watch } of replicas)
      expect([watch.problems, watch.outcomes]).toEqual([[], { stored: 90 }]);
    const [sums] = await reader.query<{
      counted: number;
      held: number;
      total: number;
      bytes: number;
    }>(
      `SELECT (SELECT sum(events) FROM hopgate.memory_terms)::bigint AS counted,
        (SELECT sum(cardinality(terms)) FROM hopgate.memory_events)::bigint AS held,
        (SELECT bytes FROM hopgate.memory_total) AS total,
        (SELECT sum(bytes) FROM hopgate.memory_spaces)::bigint AS bytes`,
      [],
      LONG,
    );
    expect(sums!.counted).toBe(sums!.held);
    expect(sums!.total).toBe(sums!.bytes);
  });

  test('erased on one: what others queue, write and finish at the time does not come back', async () => {
    const [one, ...others] = [replica(), replica(), replica()];
    const space = newSpace();
    let running = true;
    let turns = 0;
    const writing = others.map(async ({ memory, book }, at) => {
      const began = performance.timeOrigin + performance.now();
      for (let i = 0; running; i++, turns++) {
        await memory.capture(space, [{ text: `okapi ${at} ${i}` }], began);
        if (i % 7 === 0) await book.settled();
        await Bun.sleep(1);
      }
      await book.settled();
    });
    await until(async () => (await one!.texts(space)).length > 20);
    await one!.memory.erase(space);
    const after = turns;
    await until(() => turns > after + 50);
    running = false;
    await Promise.all(writing);
    for (const { watch } of others) expect(watch.outcomes.erased).toBeGreaterThan(0);
    expect(await one!.texts(space)).toEqual([]);
    expect(await count('hopgate.memory_spaces WHERE name = $1', space)).toBe(0);
    expect(await dump()).not.toContain('okapi');
    // A turn that begins later is stored, by each of them.
    await Bun.sleep(500);
    for (const [at, { memory, book }] of others.entries()) {
      await memory.capture(space, [{ text: `new ${at}` }]);
      await book.settled();
    }
    expect((await one!.texts(space)).toSorted()).toEqual(['new 0', 'new 1']);
  });

  test('a write on its way to the server when its space is erased stores nothing', async () => {
    const proxy = await proxyOf();
    const [frozen, one] = [replica({ port: proxy.port }), replica()];
    const space = newSpace();
    await frozen.memory.capture(space, [{ text: 'first' }]);
    await frozen.book.settled();
    await frozen.memory.capture(space, [{ text: 'quagga on its way' }]);
    proxy.delayMs = 400;
    const writing = frozen.book.settled();
    await Bun.sleep(150);
    expect(await one.memory.erase(space)).toBe(1);
    proxy.delayMs = 0;
    await writing;
    await until(() => frozen.watch.outcomes.erased === 1);
    expect(await one.texts(space)).toEqual([]);
  });

  test('an erasure that a replica did not finish is finished by the next one', async () => {
    const one = replica();
    const space = newSpace();
    await one.book.addInSteps(
      space,
      Array.from({ length: 1200 }, (_, at) => ({ text: `pangolin ${at}` })),
      inList,
    );
    const bytes = async () =>
      (
        await reader.query<{ bytes: number }>('SELECT bytes FROM hopgate.memory_total', [], LONG)
      )[0]!.bytes;
    const before = await bytes();
    await reader.query(
      'UPDATE hopgate.memory_spaces SET name = NULL WHERE name = $1',
      [space],
      LONG,
    );
    expect(await one.recalled(space, 'pangolin')).toEqual([]);
    const next = replica();
    await next.recalled(space, 'pangolin');
    await until(async () => !(await dump()).includes('pangolin'));
    await until(async () => (await count('hopgate.memory_spaces WHERE name IS NULL')) === 0);
    expect(before - (await bytes())).toBe(
      Array.from({ length: 1200 }, (_, at) => `pangolin ${at}`.length).reduce((a, b) => a + b),
    );
  });

  test('sealed: neither texts nor words, sources and tags can be read in the database', async () => {
    const [plain, sealed] = [replica(), replica({ seals: true })];
    const secret = {
      text: '阿哲对花生过敏 Zanzibar',
      source: 'Mallory',
      tags: ['hidden', '秘密'],
      time: 5,
    };
    const traces = ['花生', '过敏', '阿', '敏', 'anzibar', 'allory', 'hidden', '秘密'];
    const space = newSpace();
    await sealed.book.add(space, [secret], alone);
    await sealed.memory.capture(space, [{ ...secret, text: '花生酱 Zanzibar' }]);
    await sealed.book.settled();
    const found = await sealed.recalled(space, '花生');
    expect(found.toSorted()).toEqual(['花生酱 Zanzibar', '阿哲对花生过敏 Zanzibar'].toSorted());
    const { events } = await sealed.book.list(space, { limit: 9, order: 'asc', tag: '秘密' });
    expect(events.map(({ tags }) => tags)).toEqual([secret.tags, secret.tags]);
    const stored = await dump();
    for (const trace of traces) expect([trace, stored.includes(trace)]).toEqual([trace, false]);
    // Without a secret the search does find them, so it looks at the right places.
    await plain.book.add(newSpace(), [secret], alone);
    const readable = await dump();
    for (const trace of ['花生', '过敏', 'anzibar', 'allory']) {
      expect([trace, readable.includes(trace)]).toEqual([trace, true]);
    }
    // Who has another secret gets nothing, and no error.
    expect(await plain.texts(space)).toEqual([]);
    expect(await plain.recalled(space, '花生')).toEqual([]);
  });

  test('vectors: no text is sent by two replicas, and what a dead one had leased is made by another', async () => {
    const sent: string[] = [];
    const vectorOf = (text: string) => [text.includes('pills') ? 1 : -0.1, 0.3, text.length / 100];
    const made = (): Embedder =>
      embedder({
        name: 'p/m',
        model: 'm',
        timeoutMs: LONG,
        post: async ({ input }) => {
          const texts = input as readonly string[];
          sent.push(...texts);
          await Bun.sleep(20);
          return { data: texts.map((text) => ({ embedding: vectorOf(text) })) };
        },
        onFailure: () => {},
      });
    const replicas = [
      replica({ vectors: made(), seals: true }),
      replica({ vectors: made(), seals: true }),
    ];
    const space = newSpace();
    await Promise.all(
      replicas.map(({ memory }, at) =>
        memory.capture(
          space,
          Array.from({ length: 200 }, (_, i) => ({
            text: i === 7 ? `pills ${at}` : `vector ${i} of ${at}`,
          })),
        ),
      ),
    );
    for (const { book } of replicas) await book.settled();
    const vectors = () =>
      count(
        'hopgate.memory_vectors v JOIN hopgate.memory_spaces s ON s.id = v.space WHERE s.name = $1',
        space,
      );
    await until(async () => (await vectors()) === 400);
    const own = sent.filter((text) => /^(vector|pills)/.test(text));
    expect([own.length, new Set(own).size]).toEqual([400, 400]);
    await until(async () => (await count('hopgate.memory_claims')) === 0);

    const [one, other] = replicas;
    await one!.recalled(space, 'medicine');
    sent.length = 0;
    const queries = ['pills?', 'pills!', 'pills…'];
    const trips: number[] = [];
    for (const query of queries) {
      const before = one!.database.state.trips;
      expect((await one!.recalled(space, query, 2)).toSorted()).toEqual(['pills 0', 'pills 1']);
      trips.push(one!.database.state.trips - before);
    }
    // One for the words beside one for new vectors, then the nearest ones.
    // What makes vectors may look for work meanwhile, which is another trip: the least counts.
    expect(Math.min(...trips)).toBe(3);
    expect(sent).toEqual(queries);

    // One whose replica is gone: it is made once the lease is over, and not before.
    await reader.query(
      'DELETE FROM hopgate.memory_vectors WHERE seq = (SELECT max(seq) FROM hopgate.memory_vectors)',
      [],
      LONG,
    );
    const claim = (until: string) =>
      reader.query(
        `INSERT INTO hopgate.memory_claims SELECT e.seq, ${until} FROM hopgate.memory_events e
          JOIN hopgate.memory_spaces s ON s.id = e.space AND s.name = $1
          WHERE NOT EXISTS (SELECT 1 FROM hopgate.memory_vectors v WHERE v.seq = e.seq)
          ON CONFLICT (seq) DO UPDATE SET until = excluded.until`,
        [space],
        LONG,
      );
    const store = new MemoryStore({
      db: openPostgres(reader, MEMORY_SCHEMA),
      seal: textSeal([SECRET]),
      limits: DEFAULT_LIMITS,
      dedupeMs: 0,
    });
    const next = async (): Promise<number> => {
      const { events, again } = await new Vectors(store).next('p/m', 0, 32);
      if (events.length === 0) expect(again).toBeDefined();
      return events.length;
    };
    for (const { memory } of replicas) await memory.close();
    await claim("clock_timestamp() + interval '1 minute'");
    expect(await next()).toBe(0);
    await claim("clock_timestamp() - interval '1 second'");
    const late = replica({ vectors: made(), seals: true });
    await late.recalled(space, 'x');
    await until(async () => (await vectors()) === 400);

    // They go with their event and with their space.
    const { events } = await late.book.list(space, { limit: 1, order: 'asc' });
    await late.book.remove(space, events[0]!.id);
    expect(await vectors()).toBe(399);
    await late.memory.erase(space);
    expect(await vectors()).toBe(0);
    expect(await other!.memory.recall(space, { query: 'pills' }).catch(() => [])).toEqual([]);
  });

  test('a frozen database: recalls fail in time, captures wait, and all is stored once it is back', async () => {
    const one = replica();
    const space = newSpace();
    await one.book.add(space, [{ text: 'before' }], alone);
    server.freeze();
    try {
      await expect(one.memory.recall(space, { query: 'before' })).rejects.toMatchObject({
        status: 503,
      });
      for (let i = 0; i < 20; i++) await one.memory.capture(space, [{ text: `while ${i}` }]);
      await expect(one.book.add(space, [{ text: 'x' }], alone)).rejects.toMatchObject({
        status: 503,
      });
      await expect(one.memory.erase(newSpace())).rejects.toMatchObject({ status: 503 });
      await expect(one.memory.recall(space, { query: 'before' })).rejects.toMatchObject({
        status: 503,
      });
      // The engine itself tells that it is away.
      expect(one.watch.problems).toEqual([]);
      // The queue is bounded: what has no room is dropped and counted.
      await one.memory.capture(
        space,
        Array.from({ length: 5100 }, (_, at) => ({ text: `many ${at}` })),
      );
      expect(one.watch.outcomes).toEqual({ dropped: 120 });
    } finally {
      server.thaw();
    }
    await until(
      () => one.watch.outcomes.stored === 5000,
      () => JSON.stringify(one.watch),
    );
    expect(await one.recalled(space, 'while 7')).toContain('while 7');
    expect(one.watch.problems).toEqual([]);
  }, 60_000);

  test('a database that is frozen before its first use holds up no recall', async () => {
    server.freeze();
    try {
      const late = replica();
      await expect(late.memory.recall('s', { query: 'x' })).rejects.toMatchObject({ status: 503 });
    } finally {
      server.thaw();
    }
  });

  test('lost answers and a killed server: each event is stored once', async () => {
    const proxy = await proxyOf();
    const one = replica({ port: proxy.port, dedupeMs: 0 });
    const space = newSpace();
    await one.book.add(space, [{ text: 'begin' }], alone);
    const faults = (async () => {
      for (let round = 0; round < 3; round++) {
        proxy.loseAnswers = true;
        await Bun.sleep(80);
        proxy.cut();
        proxy.loseAnswers = false;
        await Bun.sleep(120);
      }
      await server.restart();
    })();
    for (let i = 0; i < 150; i++) {
      await one.memory.capture(space, [{ text: `heron ${i}` }]);
      await Bun.sleep(4);
    }
    await faults;
    await until(
      () => (one.watch.outcomes.stored ?? 0) === 150,
      () => JSON.stringify(one.watch.outcomes),
    );
    // All may be stored before the server is killed: then it has to come back.
    const texts = await until(() => one.texts(space).catch(() => undefined));
    const stored = texts.filter((text) => text.startsWith('heron'));
    expect(stored.toSorted()).toEqual(
      Array.from({ length: 150 }, (_, i) => `heron ${i}`).toSorted(),
    );
    expect(one.watch.outcomes).toEqual({ stored: 150 });
  }, 60_000);

  test.skipIf(!HAS_BOUNCER)('through PgBouncer in transaction mode', async () => {
    const bouncer = await startBouncer(server);
    try {
      const replicas = Array.from({ length: 3 }, () =>
        replica({ port: bouncer.port, seals: true }),
      );
      const space = newSpace();
      await Promise.all(
        replicas.map(async ({ memory, book, recalled }, at) => {
          for (let i = 0; i < 10; i++) {
            await memory.capture(space, [{ text: `ibis ${at} ${i}` }]);
            await book.settled();
            expect(await recalled(space, `ibis ${i}`, 100)).toContain(`ibis ${at} ${i}`);
          }
        }),
      );
      expect(await replicas[0]!.memory.erase(space)).toBe(30);
      expect(await replicas[1]!.texts(space)).toEqual([]);
      for (const { memory } of replicas) await memory.close();
    } finally {
      await bouncer.stop();
    }
  });
});
