/** Stored responses of replicas in bad times: trips, frozen and emptied engines, a full queue, secrets, limits. */

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import { existsSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { GatewayError } from '../../../src/conversation/errors.ts';
import type { ResponseStore } from '../../../src/features/response-store/index.ts';
import type { PostgresDatabase } from '../../../src/state/engines/postgres.ts';
import { nameHash } from '../../../src/state/erasures.ts';
import { cacheCommand, HAS_CACHE, startCache } from '../../support/engines/cache-servers.ts';
import {
  type DatabaseServer,
  HAS_POSTGRES,
  startPostgres,
} from '../../support/engines/database-servers.ts';
import { startFaultProxy } from '../../support/engines/fault-proxy.ts';
import type { Server } from '../../support/engines/processes.ts';
import { OLD_SECRET, oldSpool } from '../../support/old-responses.ts';
import {
  databaseOn,
  OLD_SPOOL,
  type Replica,
  type ReplicaOptions,
  replica,
  WAITING,
} from '../../support/replica-responses.ts';
import { conversation, itemText, say, storedRow } from '../../support/stored-rows.ts';
import { until } from '../../support/until.ts';

const LONG = 10_000;

describe.skipIf(!HAS_CACHE || !HAS_POSTGRES)('responses that replicas share', () => {
  let cache: Server;
  let database: DatabaseServer;
  let reader: PostgresDatabase;
  const opened: Replica[] = [];
  beforeAll(async () => {
    [cache, database] = await Promise.all([startCache(), startPostgres()]);
    reader = databaseOn(database.port);
  });
  afterEach(async () => {
    cache.thaw();
    database.thaw();
    await Promise.all(opened.splice(0).map((one) => one.close()));
  });
  afterAll(async () => {
    await reader.close();
    await Promise.all([cache.stop(), database.stop()]);
  });

  async function start(more: Partial<ReplicaOptions> = {}): Promise<Replica> {
    const one = replica({ cache: cache.port, database: database.port, ...more });
    opened.push(one);
    // Connects, and makes the tables.
    await one.store.fetch({ responses: ['resp_none'] }, '');
    return one;
  }
  const newId = () => `resp_${crypto.randomUUID()}`;
  const trips = ({ cache: kv, database: sql }: Replica) => ({
    cache: kv?.state.trips ?? 0,
    database: sql.state.trips,
  });
  /** What a replica asks the engines for meanwhile. */
  async function tripsOf(one: Replica, work: () => Promise<unknown>) {
    const before = trips(one);
    await work();
    const after = trips(one);
    return { cache: after.cache - before.cache, database: after.database - before.database };
  }
  const written = (id: string) =>
    until(async () => {
      const rows = await reader.query('SELECT 1 FROM hopgate.responses WHERE id = $1', [id], LONG);
      return rows.length === 1;
    });
  const put = async ({ store }: Replica, ...rows: readonly ReturnType<typeof storedRow>[]) => {
    for (const row of rows) {
      store.put(row);
      await store.sent();
    }
  };
  const failure = async (work: Promise<unknown>): Promise<GatewayError> => {
    try {
      await work;
    } catch (thrown) {
      if (thrown instanceof GatewayError) return thrown;
      throw thrown;
    }
    throw new Error('no error');
  };
  const UNAVAILABLE = { status: 503, code: 'stored_responses_unavailable', retryAfter: 5 };

  test('a request without ids takes no trip, one with ids one, and two where the cache has lost them', async () => {
    const [one, other] = [await start(), await start()];
    const ids = Array.from({ length: 30 }, newId);
    await put(one, ...ids.map((id, i) => storedRow(id, ids[i - 1])));
    for (const id of ids) await written(id);
    expect(await tripsOf(other, async () => other.store.fetch({}, ''))).toEqual({
      cache: 0,
      database: 0,
    });
    const named = { responses: [ids.at(-1)!], chains: true, items: ids.map((id) => `msg_${id}`) };
    const read = async () => {
      const reads = await other.store.fetch(named, '');
      const chain = await reads.chain(ids.at(-1)!, '');
      expect('missing' in chain ? chain : chain.links).toBe(ids.length);
      expect(reads.items(named.items, '').size).toBe(ids.length);
    };
    const { database } = trips(other);
    expect(await tripsOf(other, read)).toEqual({ cache: 1, database: 0 });
    // That it was read is written a moment later.
    await until(() => trips(other).database > database);
    cacheCommand(cache.port, 'flushall');
    expect(await tripsOf(other, read)).toEqual({ cache: 1, database: 1 });
  });

  test('where the cache has lost the older links, the rest of the chain comes in one further trip', async () => {
    const [one, other] = [await start(), await start()];
    const [a, b, c] = [newId(), newId(), newId()];
    await put(one, storedRow(a), storedRow(b, a));
    await written(b);
    await written(a);
    cacheCommand(cache.port, 'flushall');
    await put(one, storedRow(c, b));
    const read = async () => expect(await conversation(other.store, c)).toHaveLength(6);
    expect(await tripsOf(other, read)).toEqual({ cache: 1, database: 1 });
  });

  test('a response is with the cache when its answer may end, before the database has it', async () => {
    const [one, other] = [await start(), await start()];
    const a = newId();
    database.freeze();
    await put(one, storedRow(a));
    expect(one.late).toBe(0);
    expect(await conversation(other.store, a)).toEqual([`in ${a}`, `to ${a}`]);
    expect(await itemText(other.store, `msg_${a}`)).toBe(`to ${a}`);
    database.thaw();
    await written(a);
  });

  test('what a killed replica never wrote is written by the one that goes on with it', async () => {
    const proxy = await startFaultProxy(database.port);
    const [dying, other] = [await start({ database: proxy.port }), await start()];
    const [a, b, c] = [newId(), newId(), newId()];
    proxy.silent = true;
    await put(dying, storedRow(a), storedRow(b, a));
    await put(other, storedRow(c, b));
    for (const id of [c, b, a]) await written(id);
    cacheCommand(cache.port, 'flushall');
    expect(await conversation(other.store, c)).toHaveLength(6);
    proxy.close();
  });

  test('a frozen cache makes an answer wait for a moment and is counted; the database has it', async () => {
    const [one, other] = [await start(), await start()];
    const a = newId();
    cache.freeze();
    await put(one, storedRow(a));
    expect(one.late).toBe(1);
    await written(a);
    expect(await conversation(other.store, a)).toHaveLength(2);
    // Known to be away: nobody waits for it any more.
    await until(() => one.cache?.state.status === 'down');
    const b = newId();
    await put(one, storedRow(b, a));
    await written(b);
    expect(await conversation(other.store, b)).toHaveLength(4);
  });

  test('while the database is away, what the cache does not know is unavailable and never unknown', async () => {
    const [one, other] = [await start(), await start()];
    const [a, b] = [newId(), newId()];
    await put(one, storedRow(a));
    await written(a);
    database.freeze();
    await put(one, storedRow(b, a));
    expect(await conversation(other.store, b)).toHaveLength(4);
    cacheCommand(cache.port, 'flushall');
    expect(await failure(conversation(other.store, a))).toMatchObject(UNAVAILABLE);
    expect(await failure(itemText(other.store, `msg_${a}`))).toMatchObject(UNAVAILABLE);
    expect(await failure(other.store.delete(a, ''))).toMatchObject(UNAVAILABLE);
    expect(await failure(other.store.eraseSpace('anyone'))).toMatchObject(UNAVAILABLE);
    // Whoever may know it is asked where nothing here must.
    const lenient = await other.store.fetch({ responses: [a] }, '', true);
    expect(lenient.known(a, '')).toBeUndefined();
    // What this replica has still to write, it knows; what that continues, nobody knows now.
    expect((await one.store.fetch({ responses: [b] }, '')).get(b, '')?.id).toBe(b);
    expect(await failure(conversation(one.store, b))).toMatchObject(UNAVAILABLE);
    database.thaw();
    await written(b);
    await until(() => other.database.state.status === 'up');
    expect(await conversation(other.store, b)).toHaveLength(4);
  });

  test.each([
    ['a conversation', (store: ResponseStore, id: string) => conversation(store, id)],
    ['an item', (store: ResponseStore, id: string) => itemText(store, `msg_${id}`)],
    [
      'a response',
      async (store: ResponseStore, id: string) =>
        (await store.fetch({ responses: [id] }, '')).get(id, '')?.response,
    ],
  ] as const)(
    'while the database restarts, a request that needs %s waits for it',
    async (_, read) => {
      const own = await startPostgres();
      try {
        const [one, other] = [
          await start({ database: own.port, cache: undefined }),
          await start({ database: own.port, cache: undefined }),
        ];
        const a = newId();
        await put(one, storedRow(a));
        const stored = await read(one.store, a);
        await until(() =>
          read(other.store, a).then(isDeepStrictEqual.bind(null, stored), () => false),
        );
        await own.kill();
        // Another request has found it away.
        await other.database.query('SELECT 1', [], LONG).catch(() => {});
        expect(other.database.state.status).toBe('down');
        const [found] = await Promise.all([read(other.store, a), own.restart()]);
        expect(found).toEqual(stored);
      } finally {
        await own.stop();
      }
    },
  );

  test('when the database is back, what others have still to write is unavailable and never unknown', async () => {
    const line = await startFaultProxy(database.port);
    const one = await start({ cache: undefined, database: line.port });
    const other = await start({ cache: undefined });
    const [a, b] = [newId(), newId()];
    const owner = 'ci';
    await put(other, storedRow(a, undefined, { owner }));
    await written(a);
    database.freeze();
    line.silent = true;
    await put(one, storedRow(b, a, { owner }));
    expect(await failure(conversation(other.store, a, owner))).toMatchObject(UNAVAILABLE);
    database.thaw();
    await until(() => other.database.state.status === 'up');
    // The other replica is slower to see it.
    expect(await failure(conversation(other.store, b, owner))).toMatchObject(UNAVAILABLE);
    expect(await failure(itemText(other.store, `msg_${b}`, owner))).toMatchObject(UNAVAILABLE);
    line.silent = false;
    line.cut();
    await written(b);
    expect(await conversation(other.store, b, owner)).toHaveLength(4);
    line.close();
  });

  test('what the database missed survives the end of the process, and is written once', async () => {
    const one = replica({ cache: cache.port, database: database.port });
    await one.store.fetch({ responses: ['resp_none'] }, '');
    const ids = Array.from({ length: 100 }, newId);
    database.freeze();
    await put(one, ...ids.map((id, i) => storedRow(id, ids[i - 1])));
    await until(() => existsSync(join(one.folder, 'state', WAITING)));
    await put(one, storedRow(ids[0]!, undefined, { input: [say('said again')] }));
    await one.store.close();
    database.thaw();
    cacheCommand(cache.port, 'flushall');
    const next = await start({ folder: one.folder });
    for (const id of [ids[0]!, ids.at(-1)!]) await written(id);
    const other = await start();
    const texts = await conversation(other.store, ids.at(-1)!);
    expect(texts).toHaveLength(200);
    expect(texts[0]).toBe('said again');
    expect([one.dropped, next.dropped, next.problems]).toEqual([0, 0, []]);
    await Promise.all([one.database.close(), one.cache?.close()]);
  });

  test('of two changes, the cache that hears of the first one late does not keep it', async () => {
    const line = await startFaultProxy(cache.port);
    const [slow, other] = [await start({ cache: line.port }), await start()];
    const a = newId();
    await put(other, storedRow(a, undefined, { model: '0' }));
    await written(a);
    const model = async ({ store }: Replica) =>
      (await store.fetch({ responses: [a] }, '')).get(a, '')?.model;
    expect(await model(slow)).toBe('0');
    const next = ({ store }: Replica) =>
      store.change(a, '', (row) => ({ ...row, model: `${Number(row.model) + 1}` }));
    line.delayMs = 90;
    const first = next(slow);
    await until(async () => {
      const [row] = await reader.query<{ model: string }>(
        'SELECT model FROM hopgate.responses WHERE id = $1',
        [a],
        1000,
      );
      return row?.model === '1';
    });
    expect(await next(other)).toBe(true);
    expect(await first).toBe(true);
    // Answers of the line come late, too.
    await Bun.sleep(200);
    expect(await model(other)).toBe('2');
    line.close();
  });

  test('a queue without room drops the oldest, and counts them', async () => {
    const one = await start({ limits: { rows: 20, memoryRows: 10 } });
    const ids = Array.from({ length: 64 }, newId);
    database.freeze();
    await put(one, ...ids.map((id) => storedRow(id)));
    await until(() => existsSync(join(one.folder, 'state', WAITING)));
    await until(() => one.dropped > 0);
    database.thaw();
    await written(ids.at(-1)!);
    expect(one.problems.join()).toContain('dropped');
  });

  test('a deletion and an erasure hold for what another replica has still to write', async () => {
    const proxy = await startFaultProxy(database.port);
    const [one, other] = [await start({ database: proxy.port }), await start()];
    const space = crypto.randomUUID();
    const [a, b, c] = [newId(), newId(), newId()];
    proxy.silent = true;
    await put(one, storedRow(a), storedRow(b, undefined, { space: nameHash(space) }), storedRow(c));
    expect(await other.store.delete(a, '')).toBe(true);
    await other.store.eraseSpace(space);
    const areGone = async () => {
      for (const { store } of [one, other]) {
        expect(await conversation(store, a)).toBe(`missing ${a}`);
        expect(await conversation(store, b)).toBe(`missing ${b}`);
      }
    };
    await areGone();
    proxy.silent = false;
    proxy.cut();
    await written(c);
    cacheCommand(cache.port, 'flushall');
    await areGone();
    const left = 'SELECT id FROM hopgate.responses WHERE id = ANY ($1)';
    expect(await reader.query(left, [[a, b, c]], LONG)).toEqual([{ id: c }]);
    proxy.close();
  });

  test('a deletion that the cache missed is told when the cache is back', async () => {
    const [one, other] = [await start(), await start()];
    const a = newId();
    await put(one, storedRow(a));
    await written(a);
    cache.freeze();
    expect(await one.store.delete(a, '')).toBe(true);
    expect(await conversation(one.store, a)).toBe(`missing ${a}`);
    cache.thaw();
    await until(async () => (await conversation(other.store, a)) === `missing ${a}`);
    await until(async () => (await conversation(one.store, a)) === `missing ${a}`);
  });

  test('no text of a conversation stands in an engine or in the file of what waits, and one secret can follow another', async () => {
    const [first, second] = ['first-secret-'.repeat(3), 'second-secret-'.repeat(3)];
    const one = await start({ secret: first });
    const a = newId();
    const text = 'pneumonoultramicroscopic';
    await put(one, storedRow(a, undefined, { input: [say(text)] }));
    await written(a);
    const dump = await reader.query<{ text: string }>(
      "SELECT r::text || encode(items, 'escape') || encode(response, 'escape') AS text FROM hopgate.responses r WHERE id = $1",
      [a],
      LONG,
    );
    const keys = cacheCommand(cache.port, 'keys', '*').split('\n');
    const values = keys.map((key) => cacheCommand(cache.port, 'get', key));
    const stored = [dump[0]!.text, ...values].join('\n');
    for (const part of [text, `to ${a}`, Buffer.from(text).toString('base64').slice(2, -4)]) {
      expect(stored).not.toContain(part);
    }
    // Nobody else can open it, and it is told once.
    const stranger = await start({ secret: second });
    expect(await conversation(stranger.store, a)).toBe(`missing ${a}`);
    expect(stranger.problems).toHaveLength(1);
    expect(await conversation(one.store, a)).toEqual([text, `to ${a}`]);
  });

  test('one replica at a time prunes: idle conversations as a whole, and the last one keeps its end', async () => {
    await reader.query('DELETE FROM hopgate.responses', [], LONG);
    const limits = { rows: 7 };
    const [one, other] = [await start({ limits }), await start({ limits })];
    const conversations = [0, 1, 2].map(() => [newId(), newId(), newId()]);
    for (const [a, b, c] of conversations as [string, string, string][]) {
      await put(one, storedRow(a), storedRow(b, a), storedRow(c, b));
      await written(c);
    }
    // The first one is continued, so that the second is the idlest.
    const [oldest, idle, newest] = conversations.map((ids) => ids[2]!) as [string, string, string];
    await Bun.sleep(20);
    await conversation(other.store, oldest);
    await other.store.flush();
    await Promise.all([one.store.prune(0), other.store.prune(60_000)]);
    expect(await conversation(one.store, oldest)).toHaveLength(6);
    expect(await conversation(one.store, newest)).toHaveLength(6);
    expect(await conversation(one.store, idle)).toBe(`missing ${idle}`);
    // By itself too large: it loses its beginning.
    let last = newest;
    const ids = [last];
    for (let i = 0; i < 8; i++) {
      const id = newId();
      await put(one, storedRow(id, last));
      await written(id);
      ids.push(id);
      last = id;
    }
    await other.store.prune(0);
    const [{ count }] = (await reader.query<{ count: number }>(
      'SELECT count(*) AS count FROM hopgate.responses',
      [],
      LONG,
    )) as [{ count: number }];
    expect(count).toBe(7);
    expect((await one.store.fetch({ responses: [last] }, '')).known(last, '')).toBeDefined();
    expect(await conversation(one.store, last)).toBe(`missing ${ids[1]}`);
    // It was somebody's turn within the minute.
    const end = newId();
    await put(one, storedRow(end, last));
    await written(end);
    await one.store.prune(60_000);
    await reader.query(
      "UPDATE hopgate.response_threads SET used = now() - interval '31 days'",
      [],
      LONG,
    );
    await one.store.prune(0);
    expect(await reader.query('SELECT 1 FROM hopgate.responses', [], LONG)).toHaveLength(0);
  });

  test('a response that the database refuses keeps the others from nothing', async () => {
    const one = await start();
    const [a, b] = [newId(), newId()];
    await put(
      one,
      storedRow(a, undefined, { owner: 'NUL \u0000' }),
      storedRow(b),
      storedRow('x'.repeat(600)),
    );
    await written(b);
    expect(one.dropped).toBe(2);
  });

  test('what waited in the file of a version before is written, in its conversation', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'hopgate-replica-'));
    const path = join(folder, 'state', OLD_SPOOL);
    oldSpool(path);
    const one = await start({ folder, secret: OLD_SECRET });
    await written('resp_w2');
    expect(await conversation(one.store, 'resp_w2')).toEqual([
      'in resp_w1',
      'to resp_w1',
      'in resp_w2',
      'to resp_w2',
    ]);
    expect(await itemText(one.store, 'msg_resp_w1')).toBe('to resp_w1');
    expect(existsSync(path)).toBe(false);
    expect([one.dropped, one.problems]).toEqual([0, []]);
  });

  test.each([WAITING, OLD_SPOOL])(
    'a damaged %s keeps nothing new from the database',
    async (name) => {
      const folder = mkdtempSync(join(tmpdir(), 'hopgate-replica-'));
      mkdirSync(join(folder, 'state'));
      writeFileSync(join(folder, 'state', name), 'this is no database at all. '.repeat(200));
      const one = await start({ folder });
      const a = newId();
      await put(one, storedRow(a));
      await written(a);
      expect(await conversation(one.store, a)).toHaveLength(2);
      expect(await one.store.delete(a, '')).toBe(true);
      expect(one.problems).toHaveLength(1);
    },
  );
});
