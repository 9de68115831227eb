/** Budgets of several replicas on a real Postgres: never more than the amount, and nothing counted twice or lost. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { Secret } from '../../src/config/secret.ts';
import { DatabaseBank } from '../../src/limits/database-bank.ts';
import { SYSTEM_CLOCK } from '../../src/limits/limit-state.ts';
import type { Admission, Clock, LimitUsage, Ticket, WindowLimit } from '../../src/limits/limits.ts';
import { ProcessLimits } from '../../src/limits/process-limits.ts';
import type { Sql, SqlTransaction } from '../../src/state/engines/engine.ts';
import { PostgresDatabase } from '../../src/state/engines/postgres.ts';
import {
  type DatabaseServer,
  HAS_POSTGRES,
  startPostgres,
} from '../support/engines/database-servers.ts';
import { startFaultProxy } from '../support/engines/fault-proxy.ts';
import { until } from '../support/until.ts';

const LONG = 10_000;
const DAY_MS = 86_400_000;

describe.skipIf(!HAS_POSTGRES)('shared windows', () => {
  let server: DatabaseServer;
  let reader: PostgresDatabase;
  let limits = 0;
  const opened: { close(): void | Promise<void> }[] = [];
  const reached: number[] = [];
  beforeAll(async () => {
    server = await startPostgres();
    reader = new PostgresDatabase({ url: new Secret(server.url) }, () => {});
  });
  afterAll(async () => {
    for (const one of opened) await one.close();
    await reader.close();
    await server.stop();
  });

  function replica({
    port = server.port,
    sessionMs,
    clock = SYSTEM_CLOCK,
  }: {
    port?: number;
    sessionMs?: number;
    clock?: Clock;
  } = {}) {
    const url = `postgres://hopgate@127.0.0.1:${port}/postgres`;
    const database = new PostgresDatabase({ url: new Secret(url) }, () => {});
    const windows = new ProcessLimits({
      bank: new DatabaseBank({ database, sessionMs, wall: () => clock.wall() }),
      process: crypto.randomUUID(),
      clock,
      onReached: ({ mark }) => reached.push(mark),
    });
    opened.push(windows, database);
    return { windows, database };
  }
  const budget = (amount: number, more: Partial<WindowLimit> = {}): WindowLimit => ({
    kind: 'window',
    id: `budget:${++limits}`,
    unit: 'nano_usd',
    amount,
    per: 'month',
    timeZone: 'UTC',
    ...more,
  });
  const ticketOf = (admission: Admission): Ticket => {
    if (!admission.admitted) throw new Error('refused');
    return admission;
  };
  const counted = async ({ id }: WindowLimit) => {
    const [row] = await reader.query<{ spent: number; held: number }>(
      'SELECT spent, held FROM hopgate.windows WHERE law = $1',
      [id],
      LONG,
    );
    return row ?? { spent: 0, held: 0 };
  };

  test('what another replica counted too much comes back to all', async () => {
    const [one, other] = [replica(), replica()];
    const limit = budget(100);
    const all = ticketOf(await one.windows.admit([{ limit, amount: 100 }]));
    all.settle([100]);
    await until(async () => (await counted(limit)).spent === 100);
    const [refused] = await other.windows.usage([limit]);
    expect(refused!.remaining).toBe(0);
    const owed = { limit, amount: 0, soft: true, countedAt: Date.now() };
    ticketOf(await other.windows.admit([owed])).settle([-60]);
    await until(async () => {
      const { spent, held } = await counted(limit);
      return spent === 40 && held === 0;
    });
    ticketOf(await one.windows.admit([{ limit, amount: 60 }])).settle([60]);
    expect((await one.windows.admit([{ limit, amount: 1 }])).admitted).toBe(false);
  });

  test('a period is the same for machines whose clocks differ by many periods', async () => {
    const skewed = (ms: number) =>
      replica({ clock: { wall: () => Date.now() + ms, monotonic: () => performance.now() } });
    const replicas = [skewed(0), skewed(-400 * DAY_MS), skewed(400 * DAY_MS)];
    const limit = budget(10);
    let admitted = 0;
    // Rows that are over are deleted with every hundredth draw.
    for (let round = 0; round < 120; round++) {
      for (const { windows } of replicas) {
        const admission = await windows.admit([{ limit, amount: 1 }]);
        if (!admission.admitted) continue;
        admission.settle([1]);
        admitted++;
      }
      await Promise.all(replicas.map(({ windows }) => windows.usage([limit])));
    }
    expect(admitted).toBe(10);
    const [{ resetAt }] = (await replicas[1]!.windows.usage([limit])) as [LimitUsage];
    expect(resetAt).toBeGreaterThan(Date.now());
    expect(resetAt).toBeLessThan(Date.now() + 32 * DAY_MS);
  });

  test('replicas together reserve no more than the amount, and the last unit can be used', async () => {
    const replicas = [replica(), replica(), replica()];
    const limit = budget(100);
    const results = await Promise.all(
      Array.from({ length: 90 }, (_, i) => replicas[i % 3]!.windows.admit([{ limit, amount: 7 }])),
    );
    const admitted = results.filter((one) => one.admitted).map(ticketOf);
    expect(admitted.length * 7).toBeLessThanOrEqual(100);
    for (const one of admitted) one.settle([7]);
    // What one replica has drawn and does not use goes back, so that another can have it.
    let spent = admitted.length * 7;
    await until(async () => {
      for (const { windows } of replicas) {
        const admission = await windows.admit([{ limit, amount: 1 }]);
        if (!admission.admitted) continue;
        admission.settle([1]);
        spent++;
      }
      return spent === 100;
    });
    await until(async () => (await counted(limit)).spent === 100);
    const refused = await replicas[0]!.windows.admit([{ limit, amount: 1 }]);
    expect(refused).toMatchObject({ admitted: false, refusedBy: [limit] });
  });

  test('what is enough for one more request is not split among replicas that all refuse', async () => {
    let now = 1_000_000;
    const clock = { wall: () => Date.now(), monotonic: () => now };
    const [one, other] = [replica({ clock }), replica({ clock })];
    const limit = budget(1000);
    // Each keeps a part of what its request did not need.
    ticketOf(await one.windows.admit([{ limit, amount: 600 }])).abandon();
    ticketOf(await other.windows.admit([{ limit, amount: 400 }])).abandon();
    await until(async () => (await counted(limit)).held < 600);
    const ask = ({ windows }: typeof one) => windows.admit([{ limit, amount: 1000 }]);
    let admitted = 0;
    // Both are asked all the time, for less than the ten seconds after which a lease is given back.
    for (let round = 0; round < 40 && admitted === 0; round++) {
      now += 150;
      const answers = await Promise.all([ask(one), ask(other)]);
      admitted = answers.filter((answer) => answer.admitted).length;
      await Bun.sleep(10);
    }
    expect(admitted).toBe(1);
  });

  test('where there is plenty, requests wait for nothing', async () => {
    const { windows, database } = replica();
    const limit = budget(1e12);
    ticketOf(await windows.admit([{ limit, amount: 1000 }])).settle([900]);
    const { trips } = database.state;
    let waited = 0;
    for (let i = 0; i < 5000; i++) {
      const admission = windows.admit([{ limit, amount: 1000 }]);
      if (admission instanceof Promise) waited++;
      ticketOf(await admission).settle([900]);
      if (i % 100 === 0) await Bun.sleep(0);
    }
    expect(waited).toBe(0);
    expect(database.state.trips - trips).toBeLessThan(100);
    await windows.close();
    expect(await counted(limit)).toEqual({ spent: 5001 * 900, held: 0 });
  });

  test('random costs, aborts, lost answers, cut connections, a killed server: all is counted once', async () => {
    const proxy = await startFaultProxy(server.port);
    const replicas = Array.from({ length: 4 }, (_, i) =>
      replica({ port: i < 2 ? proxy.port : server.port }),
    );
    const limit = budget(3_000_000);
    let used = 0;
    let admitted = 0;
    let over = false;
    let running = true;
    const looking = (async () => {
      while (running) {
        const row = await counted(limit).catch(() => undefined);
        // What a request really costs is at most what was reserved here.
        if (row !== undefined && row.spent + row.held > limit.amount) over = true;
        await Bun.sleep(5);
      }
    })();
    const work = replicas.map(async ({ windows }) => {
      for (let i = 0; i < 400; i++) {
        const amount = 1 + Math.floor(Math.random() * 5000);
        const admission = await Promise.resolve(windows.admit([{ limit, amount }])).catch(
          () => undefined,
        );
        if (admission?.admitted !== true) {
          await Bun.sleep(5);
          continue;
        }
        admitted++;
        if (i % 3 === 0) await Bun.sleep(Math.random() * 4);
        if (i % 7 === 0) admission.abandon();
        else {
          const cost = Math.floor(Math.random() * (amount + 1));
          used += cost;
          admission.settle([cost]);
        }
      }
    });
    const faults = (async () => {
      for (let round = 0; round < 4; round++) {
        await Bun.sleep(60);
        proxy.loseAnswers = true;
        await Bun.sleep(60);
        proxy.cut();
        proxy.loseAnswers = false;
      }
      await server.restart();
    })();
    await Promise.all([...work, faults]);
    await until(() => replicas.every(({ database }) => database.state.status === 'up'));
    expect(admitted).toBeGreaterThan(100);
    // Two passes: a draw whose answer was lost is repeated first.
    await until(async () => (await counted(limit).catch(() => ({ spent: -1 }))).spent === used);
    for (const { windows } of replicas) await windows.close();
    running = false;
    await looking;
    expect(over).toBe(false);
    expect(await counted(limit)).toEqual({ spent: used, held: 0 });
    proxy.close();
  });

  test('what a dead replica held counts as spent; if it wakes, what it really used', async () => {
    const proxy = await startFaultProxy(server.port);
    const dying = replica({ port: proxy.port, sessionMs: 1500 });
    const limit = budget(1000);
    const ticket = ticketOf(await dying.windows.admit([{ limit, amount: 400 }]));
    const before = await counted(limit);
    expect(before.held).toBeGreaterThanOrEqual(400);
    proxy.silent = true;
    const other = replica({ sessionMs: 1500 });
    await until(async () => {
      await other.windows.usage([limit]);
      const { spent, held } = await counted(limit);
      return spent === before.held && held === 0;
    });
    // It is never free while nothing is known of it.
    const most = await other.windows.admit([{ limit, amount: 1000 - before.held + 1 }]);
    expect(most.admitted).toBe(false);
    proxy.silent = false;
    proxy.cut();
    ticket.settle([150]);
    await until(() => dying.database.state.status === 'up');
    await until(async () => {
      const { spent } = await counted(limit);
      return spent === 150;
    });
    await dying.windows.close();
    await other.windows.close();
    expect(await counted(limit)).toEqual({ spent: 150, held: 0 });
    proxy.close();
  });

  test('while the bank is away, the lease lasts; then hard budgets refuse, and soft ones go on', async () => {
    const proxy = await startFaultProxy(server.port);
    const { windows, database } = replica({ port: proxy.port });
    const limit = budget(100_000);
    ticketOf(await windows.admit([{ limit, amount: 100 }])).settle([100]);
    await until(async () => (await counted(limit)).spent === 100);
    proxy.silent = true;
    let served = 0;
    const failed = await (async () => {
      for (;;) {
        try {
          ticketOf(await windows.admit([{ limit, amount: 100 }])).settle([100]);
          served++;
        } catch (thrown) {
          return thrown;
        }
      }
    })();
    expect(failed).toMatchObject({ code: 'limits_unavailable' });
    expect(served).toBeGreaterThan(0);
    ticketOf(await windows.admit([{ limit, amount: 500, soft: true }])).settle([500]);
    proxy.silent = false;
    await until(() => database.state.status === 'up');
    await until(async () => (await counted(limit)).spent === 100 + served * 100 + 500);
    proxy.close();
  });

  test('a replica that freezes inside a draw does not hold up the others', async () => {
    const { database } = replica();
    const limit = budget(1000);
    const frozen = Promise.withResolvers<never>();
    frozen.promise.catch(() => {});
    const freezing = {
      query: database.query.bind(database),
      // Its statements before the first write are answered, and then nothing more is sent.
      transaction: (work: (inside: SqlTransaction) => Promise<unknown>, deadlineMs: number) =>
        database.transaction(
          (inside) =>
            work({
              query: (sql, values) =>
                sql.includes('INSERT INTO hopgate.') ? frozen.promise : inside.query(sql, values),
              commit: () => frozen.promise,
            }),
          deadlineMs,
        ),
    } as unknown as Sql;
    // The tables are there.
    await (await replica().windows.admit([{ limit, amount: 1 }])).usages();
    const draw = new DatabaseBank({ database: freezing }).draw({
      ...{ session: 'frozen', number: 1, settled: [], closes: false },
      wanted: [{ law: limit.id, start: 0, keepUntil: 9e15, most: 10, need: 1, ahead: 0 }],
    });
    const failed = draw.catch((thrown: Error) => thrown);
    const other = replica();
    await until(async () => {
      const admission = await Promise.resolve(other.windows.admit([{ limit, amount: 5 }])).catch(
        () => undefined,
      );
      return admission?.admitted;
    });
    frozen.reject(new Error('thawed'));
    expect(await failed).toBeInstanceOf(Error);
  });

  test('a stall within a draw that outlasts the patience of the server neither fails it nor makes the database count as away', async () => {
    const { database, windows } = replica();
    const limit = budget(1000);
    ticketOf(await windows.admit([{ limit, amount: 1 }])).settle([1]);
    let stalls = 0;
    const stalling = {
      query: database.query.bind(database),
      transaction: (work: (inside: SqlTransaction) => Promise<unknown>, deadlineMs: number) =>
        database.transaction(
          (inside) =>
            work({
              query: async (sql, values) => {
                const rows = await inside.query(sql, values);
                // The last answer before its writes.
                if (sql.includes('LEFT JOIN hopgate.windows') && stalls++ === 0)
                  await Bun.sleep(600);
                return rows as never;
              },
              commit: inside.commit,
            }),
          deadlineMs,
        ),
    } as unknown as Sql;
    const { grants } = await new DatabaseBank({ database: stalling, deadlineMs: LONG }).draw({
      ...{ session: 'stalled', number: 1, settled: [], closes: false },
      wanted: [{ law: limit.id, start: 0, keepUntil: 9e15, most: 10, need: 1, ahead: 0 }],
    });
    expect(grants).toMatchObject([{ own: 1 }]);
    expect(stalls).toBe(2);
    expect(database.state.status).toBe('up');
  });

  test('each mark is told once over all replicas', async () => {
    reached.length = 0;
    const replicas = [replica(), replica()];
    const limit = budget(1000, { marks: [500] });
    for (let i = 0; i < 12; i++) {
      const admission = await replicas[i % 2]!.windows.admit([{ limit, amount: 100, soft: true }]);
      ticketOf(admission).settle([100]);
    }
    await until(async () => (await counted(limit)).spent === 1200);
    for (const { windows } of replicas) await windows.usage([limit]);
    await until(() => reached.includes(1000));
    await Bun.sleep(100);
    expect(reached.toSorted((a, b) => a - b)).toEqual([500, 1000]);
  });
});
