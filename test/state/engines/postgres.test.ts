/** The database on a real Postgres: every call ends at its deadline, whole transactions, and PgBouncer in between. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { Secret } from '../../../src/config/secret.ts';
import { EngineAway, type EngineState } from '../../../src/state/engines/engine.ts';
import { PostgresDatabase } from '../../../src/state/engines/postgres.ts';
import {
  type DatabaseServer,
  HAS_BOUNCER,
  HAS_POSTGRES,
  startBouncer,
  startPostgres,
} from '../../support/engines/database-servers.ts';
import { type FaultProxy, startFaultProxy } from '../../support/engines/fault-proxy.ts';
import { until } from '../../support/until.ts';

const LONG = 10_000;
/** After this a connection counts as idle. */
const IDLE_MS = 600;
const failure = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => undefined,
    (thrown) => thrown,
  );

describe.skipIf(!HAS_POSTGRES)('Postgres', () => {
  let server: DatabaseServer;
  let proxy: FaultProxy;
  const opened: PostgresDatabase[] = [];
  const open = (url = server.url) => {
    const changes: EngineState['status'][] = [];
    const database = new PostgresDatabase({ url: new Secret(url) }, ({ status }) =>
      changes.push(status),
    );
    opened.push(database);
    return { database, changes };
  };
  const number = async (database: PostgresDatabase, deadline = LONG) =>
    (await database.query<{ n: number }>('SELECT 7::bigint AS n', [], deadline))[0]!.n;

  beforeAll(async () => {
    server = await startPostgres();
    proxy = await startFaultProxy(server.port);
  });
  afterAll(async () => {
    await Promise.all(opened.map((one) => one.close()));
    proxy.close();
    await server.stop();
  });

  test('values of all kinds come back as they went', async () => {
    const { database } = open();
    const body = Uint8Array.from([0, 1, 255]);
    const [row] = await database.query<Record<string, unknown>>(
      'SELECT $1::bigint AS big, $2::text AS text, $3::boolean AS flag, $4::bytea AS body, $5::text[] AS list, $6::text AS nothing',
      [Number.MAX_SAFE_INTEGER, 'é', true, body, ['a', 'b'], null],
      LONG,
    );
    expect(row).toEqual({
      big: Number.MAX_SAFE_INTEGER,
      text: 'é',
      flag: true,
      body: Buffer.from(body),
      list: ['a', 'b'],
      nothing: null,
    });
  });

  test('a transaction is whole or nothing, and others’ queries stay out of it', async () => {
    const { database } = open();
    await database.query('CREATE TABLE things (n int)', [], LONG);
    const stop = new Error('no');
    const undone = database.transaction(async (inside) => {
      await inside.query('INSERT INTO things VALUES (1)', []);
      const seen = await database.query('SELECT * FROM things', [], LONG);
      expect(seen).toEqual([]);
      throw stop;
    }, LONG);
    expect(await failure(undone)).toBe(stop);
    await database.transaction((inside) => inside.query('INSERT INTO things VALUES (2)', []), LONG);
    expect(await database.query<object>('SELECT n FROM things', [], LONG)).toEqual([{ n: 2 }]);
    expect(database.state.status).toBe('up');
  });

  test('an end that is sent with the last statements: one that fails undoes all, and the connection goes on', async () => {
    const { database } = open();
    await database.query('CREATE TABLE ended (n int PRIMARY KEY)', [], LONG);
    const put = (...numbers: number[]) =>
      database.transaction(async (inside) => {
        const sent = numbers.map((n) => inside.query('INSERT INTO ended VALUES ($1)', [n]));
        await Promise.all([...sent, inside.commit()]);
      }, LONG);
    await put(1, 2);
    expect(await failure(put(3, 3))).toMatchObject({ code: '23505' });
    const found = await database.query<{ n: number }>('SELECT n FROM ended', [], LONG);
    expect(found.map(({ n }) => n)).toEqual([1, 2]);
    expect(database.state.status).toBe('up');
  });

  test('an error of a query is the caller’s', async () => {
    const { database } = open();
    expect(await failure(database.query('SELEC', [], LONG))).toMatchObject({ code: '42601' });
    expect(database.state.status).toBe('up');
    expect(await number(database)).toBe(7);
  });

  test('a frozen server ends calls at their deadline, is not asked meanwhile, and comes back', async () => {
    const { database, changes } = open();
    await number(database);
    server.freeze();
    try {
      expect(await failure(number(database, 200))).toBeInstanceOf(EngineAway);
      const { trips } = database.state;
      for (let i = 0; i < 20; i++)
        expect(await failure(number(database, 200))).toBeInstanceOf(EngineAway);
      expect(database.state.trips).toBe(trips);
    } finally {
      server.thaw();
    }
    await until(() => database.state.status === 'up');
    expect(changes).toEqual(['up', 'down', 'up']);
    // An answer that was late is never taken for another query's.
    const rows = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        database.query<{ n: number }>('SELECT $1::int AS n', [i], LONG),
      ),
    );
    expect(rows.map(([row]) => row!.n)).toEqual(Array.from({ length: 20 }, (_, i) => i));
  });

  test.each(HAS_BOUNCER ? ['Postgres', 'PgBouncer'] : ['Postgres'])(
    'a query that %s ends at its time is the caller’s, and the connection is as before',
    async (name) => {
      const bouncer = name === 'PgBouncer' ? await startBouncer(server) : undefined;
      const { database } = open(bouncer?.url);
      const slow = () => failure(database.query('SELECT pg_sleep($1)', [60], LONG, 50));
      const limit = async (stopMs?: number) =>
        (
          await database.query<{ n: string }>(
            "SELECT current_setting('statement_timeout') AS n",
            [],
            LONG,
            stopMs,
          )
        )[0]!.n;
      const others = Array.from({ length: 20 }, (_unused, i) =>
        database.query<{ n: number }>('SELECT $1::int AS n', [i], LONG, LONG),
      );
      expect(await slow()).toMatchObject({ code: '57014' });
      expect((await Promise.all(others)).map(([row]) => row!.n)).toEqual(
        Array.from({ length: 20 }, (_unused, i) => i),
      );
      expect(database.state.status).toBe('up');
      const { trips } = database.state;
      expect(await limit(4000.5)).toBe('4001ms');
      expect(database.state.trips).toBe(trips + 1);
      for (let i = 0; i < 20; i++) expect(await limit()).toBe('0');
      const [{ open: left }] = (await database.query<{ open: number }>(
        "SELECT count(*) AS open FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'",
        [],
        LONG,
      )) as [{ open: number }];
      expect(left).toBe(0);
      await database.close();
      await bouncer?.stop();
    },
  );

  test('backends that are ended, a server that is killed and comes back', async () => {
    const { database } = open();
    await number(database);
    const admin = open().database;
    await admin.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'hopgate' AND pid <> pg_backend_pid()",
      [],
      LONG,
    );
    await until(() => number(database, 1000).then(Boolean, () => false));
    await server.kill();
    expect(await failure(number(database, 500))).toBeInstanceOf(EngineAway);
    await server.restart();
    await until(() => database.state.status === 'up');
    expect(await number(database)).toBe(7);
  });

  test('a network that swallows everything, and connections that are cut', async () => {
    const { database } = open(`postgres://hopgate@127.0.0.1:${proxy.port}/postgres`);
    await number(database);
    for (const stopMs of [undefined, 200]) {
      proxy.silent = true;
      const asked = database.query('SELECT 7 AS n', [], 200, stopMs);
      expect(await failure(asked)).toBeInstanceOf(EngineAway);
      proxy.silent = false;
      proxy.cut();
      await until(() => database.state.status === 'up');
      expect(await number(database)).toBe(7);
    }
  });

  test.each([undefined, 200])(
    'a connection that was closed while it was idle: the statement goes on another one (%p)',
    async (stopMs) => {
      const { database, changes } = open(`postgres://hopgate@127.0.0.1:${proxy.port}/postgres`);
      const ask = () => database.query<{ n: number }>('SELECT 7 AS n', [], LONG, stopMs);
      const all = () => Promise.all(Array.from({ length: 8 }, ask));
      await all();
      await Bun.sleep(IDLE_MS);
      // The resets are there, and nothing has read them yet.
      proxy.cut();
      expect((await all()).map(([row]) => row!.n)).toEqual(Array(8).fill(7));
      await Bun.sleep(IDLE_MS);
      proxy.cut();
      const sum = await database.transaction(
        ({ query }) => query<{ n: number }>('SELECT 1 + 1 AS n', []),
        LONG,
      );
      expect(sum[0]!.n).toBe(2);
      expect(changes).toEqual(['up']);
    },
  );

  test('the server ended the idle connections: the next statement goes on a new one', async () => {
    const { database, changes } = open(`${server.url}?application_name=idle`);
    await number(database);
    const admin = open().database;
    // Its answer comes when they are gone.
    await admin.query(
      "SELECT pg_terminate_backend(pid, 15000) FROM pg_stat_activity WHERE application_name = 'idle'",
      [],
      LONG,
    );
    expect(await number(database)).toBe(7);
    expect(changes).toEqual(['up']);
  });

  test('a statement that was sent is never repeated, although its answer was lost', async () => {
    const { database } = open(`postgres://hopgate@127.0.0.1:${proxy.port}/postgres`);
    const admin = open().database;
    await admin.query('CREATE TABLE once (n int)', [], LONG);
    await number(database);
    proxy.loseAnswers = true;
    const put = failure(database.query('INSERT INTO once VALUES (1)', [], LONG));
    const rows = () => admin.query('SELECT n FROM once', [], LONG);
    await until(async () => (await rows()).length > 0);
    proxy.loseAnswers = false;
    proxy.cut();
    expect(await put).toBeInstanceOf(EngineAway);
    await until(() => database.state.status === 'up');
    expect(await rows()).toHaveLength(1);
  });

  test('a server that only reads is away until it writes again', async () => {
    const { database } = open();
    await database.query('CREATE TABLE written (n int)', [], LONG);
    const readOnly = failure(
      database.transaction(async (inside) => {
        await inside.query('SET TRANSACTION READ ONLY', []);
        await inside.query('INSERT INTO written VALUES (1)', []);
      }, LONG),
    );
    expect(await readOnly).toBeInstanceOf(EngineAway);
    await until(() => database.state.status === 'up');
  });

  test('while new connections only read it is away and told once; those of before are not used when it writes again', async () => {
    const { database, changes } = open();
    const admin = open().database;
    await database.query('CREATE TABLE noted (n int)', [], LONG);
    const note = () => failure(database.query('INSERT INTO noted VALUES (1)', [], LONG));
    const setting = (value: string) =>
      admin.transaction(async ({ query }) => {
        await query('SET TRANSACTION READ WRITE', []);
        await query(`ALTER ROLE hopgate SET default_transaction_read_only = ${value}`, []);
      }, LONG);
    await setting('on');
    try {
      await admin.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'hopgate' AND pid <> pg_backend_pid()",
        [],
        LONG,
      );
      // The broken connections first, then those that only read.
      await until(async () => {
        await note();
        return database.state.message?.includes('only reads') === true;
      });
      const { trips } = database.state;
      for (let i = 0; i < 20; i++) expect(await note()).toBeInstanceOf(EngineAway);
      expect(database.state).toMatchObject({ status: 'down', trips });
    } finally {
      await setting('off');
    }
    await until(() => database.state.status === 'up');
    for (let i = 0; i < 20; i++) expect(await note()).toBeUndefined();
    expect(changes.at(-1)).toBe('up');
    expect(changes.length).toBeLessThanOrEqual(5);
  });

  test('a database that this user cannot open counts as away, and not as an error of each call', async () => {
    const { database, changes } = open(server.url.replace(/\/[^/]*$/, '/no_such_database'));
    expect(await failure(number(database))).toBeInstanceOf(EngineAway);
    expect(changes).toEqual(['down']);
    expect(database.state.message).toContain('no_such_database');
    const { trips } = database.state;
    await failure(number(database));
    expect(database.state.trips).toBe(trips);
  });

  test('what is told of a frozen server is how long it was waited for, not the words of the client', async () => {
    const { database } = open();
    await number(database);
    server.freeze();
    try {
      await failure(number(database, 200));
      expect(database.state.message).toBe('no answer within 200 ms');
    } finally {
      server.thaw();
    }
    await until(() => database.state.status === 'up');
  });

  test('doctor’s findings, also for a user that may make nothing', async () => {
    const { database } = open();
    const statuses = async (one: PostgresDatabase) =>
      (await one.examine()).map(({ status }) => status);
    expect(await statuses(database)).toEqual(['ok', 'ok', 'ok', 'ok']);
    await database.query('CREATE ROLE guest LOGIN', [], LONG);
    const guest = open(`postgres://guest@127.0.0.1:${server.port}/postgres`).database;
    expect(await statuses(guest)).toEqual(['ok', 'fail', 'ok', 'ok']);
  });

  test.skipIf(!HAS_BOUNCER)(
    'through PgBouncer, which gives each transaction another connection',
    async () => {
      const bouncer = await startBouncer(server);
      const { database } = open(bouncer.url);
      const sums = await Promise.all(
        Array.from({ length: 20 }, (_, i) =>
          database.transaction(async (inside) => {
            const [a] = await inside.query<{ n: number }>('SELECT $1::int AS n', [i]);
            const [b] = await inside.query<{ n: number }>('SELECT $1::int + 1 AS n', [a!.n]);
            return b!.n;
          }, LONG),
        ),
      );
      expect(sums).toEqual(Array.from({ length: 20 }, (_, i) => i + 1));
      await database.close();
      await bouncer.stop();
    },
  );
});
