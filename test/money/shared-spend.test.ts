/** Spend of several replicas in one Postgres: no row lost and none counted twice, whatever breaks between two steps. */

import { afterAll, afterEach, beforeAll, describe, expect, setSystemTime, test } from 'bun:test';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { Secret } from '../../src/config/secret.ts';
import type { JsonObject } from '../../src/lib/json/json.ts';
import type { RunningPlace, SpendJournal } from '../../src/money/journal.ts';
import { databaseFolder, openSpend, type SpendOptions } from '../../src/money/open-spend.ts';
import { sharedSpendReader } from '../../src/money/reader.ts';
import { readRowsQuery, spendCsv, spendPage } from '../../src/money/rows.ts';
import type { SpendRow } from '../../src/money/schema.ts';
import { ADDED, spendSchema } from '../../src/money/schema.ts';
import { SpendStore } from '../../src/money/spend-store.ts';
import { lapse, prune } from '../../src/money/spend-upkeep.ts';
import { readUsageQuery, usageBy } from '../../src/money/usage.ts';
import type { Sql, SqlReader } from '../../src/state/engines/engine.ts';
import { EngineAway } from '../../src/state/engines/engine.ts';
import { PostgresDatabase } from '../../src/state/engines/postgres.ts';
import { openPostgres } from '../../src/state/sql/postgres.ts';
import {
  type DatabaseServer,
  HAS_POSTGRES,
  startPostgres,
} from '../support/engines/database-servers.ts';
import { startFaultProxy } from '../support/engines/fault-proxy.ts';
import { spendRow } from '../support/spend-rows.ts';
import { until } from '../support/until.ts';

const LONG = 20_000;
const DAY = 86_400_000;
const NOW = Date.UTC(2027, 0, 15, 12);

let made = 0;
const rowOf = (more: Partial<SpendRow> = {}) => spendRow({ request: `req_${++made}`, ...more });

describe.skipIf(!HAS_POSTGRES)('shared spend', () => {
  let server: DatabaseServer;
  let database: PostgresDatabase;
  let dir: string;
  const closing: (() => unknown)[] = [];
  beforeAll(async () => {
    dir = mkdtempSync(join(tmpdir(), 'hopgate-shared-spend-'));
    server = await startPostgres();
    database = connect();
    // The tables.
    const first = replica('first');
    await first.read(() => {});
  });
  afterEach(async () => {
    for (const close of closing.splice(0).toReversed()) await close();
    await database.query(
      `TRUNCATE hopgate.spend_rows, hopgate.spend_open, hopgate.spend_totals, hopgate.spend_session_totals,
        hopgate.spend_spools, hopgate.spend_kept, hopgate.spend_marks`,
      [],
      LONG,
    );
  });
  afterAll(async () => {
    await database.close();
    await server.stop();
    rmSync(dir, { recursive: true, force: true });
  });

  const connect = (port = server.port) =>
    new PostgresDatabase(
      { url: new Secret(`postgres://hopgate@127.0.0.1:${port}/postgres`) },
      () => {},
    );

  /** One on a file of its own; the same name again is its next process. */
  function replica(name: string, more: Partial<SpendOptions> = {}): SpendJournal {
    const journal = openSpend({
      path: join(dir, `${name}.db`),
      keep: () => ({ rows: 0, totals: 0 }),
      momentMs: 1,
      onProblem: () => {},
      onRecovered: () => {},
      onRefused: () => {},
      onLost: () => {},
      database,
      replica: name,
      lapseEveryMs: 20,
      lookEveryMs: 20,
      ...more,
    });
    closing.push(() => journal.close());
    return journal;
  }
  const storeOf = (machine: string) =>
    new SpendStore(openPostgres(database, spendSchema()), { machine, replica: machine });
  const begin = (journal: SpendJournal, row: SpendRow): RunningPlace =>
    journal.begin({ reservedRow: () => row });
  const spend = (journal: SpendJournal, row: SpendRow) => journal.end(begin(journal, row), row);

  async function stored() {
    const [rows] = await database.query<Record<string, number>>(
      `SELECT count(*) AS tries, count(DISTINCT request) AS requests, coalesce(sum(cost), 0)::bigint AS cost,
        count(*) FILTER (WHERE ended = 'lost') AS lost FROM hopgate.spend_rows`,
      [],
      LONG,
    );
    return rows!;
  }
  const MONTH_OF_TIME =
    "(extract(epoch FROM date_trunc('month', to_timestamp(time / 1000) AT TIME ZONE 'UTC')) * 1000)::bigint";
  /** Totals of each span and of sessions are the sums of the rows. */
  async function expectNoDrift(): Promise<void> {
    const found = await database.query(
      `SELECT * FROM (
        SELECT 'rows ' || s.span AS what, s.start, key, model, coalesce(sum(cost), 0) AS cost, count(*) AS tries FROM hopgate.spend_rows r,
          LATERAL (VALUES (0, time - time % 3600000), (1, time - time % 86400000), (2, ${MONTH_OF_TIME})) s (span, start)
          GROUP BY 1, 2, 3, 4) a
       FULL JOIN (SELECT 'rows ' || span AS what, start, key, model, sum(cost) AS cost, sum(tries) AS tries
          FROM hopgate.spend_totals GROUP BY 1, 2, 3, 4 HAVING sum(tries) <> 0) b
         ON (a.what, a.start, a.key, a.model) = (b.what, b.start, b.key, b.model)
       WHERE a.cost IS DISTINCT FROM b.cost OR a.tries IS DISTINCT FROM b.tries`,
      [],
      LONG,
    );
    expect(found).toEqual([]);
    const sessions = await database.query(
      `SELECT * FROM (SELECT session, key, coalesce(sum(cost), 0) AS cost, count(*) AS tries FROM hopgate.spend_rows
          WHERE session IS NOT NULL GROUP BY 1, 2) a
        FULL JOIN (SELECT session, key, sum(cost) AS cost, sum(tries) AS tries FROM hopgate.spend_session_totals
          GROUP BY 1, 2 HAVING sum(tries) <> 0) b ON (a.session, a.key) = (b.session, b.key)
        WHERE a.cost IS DISTINCT FROM b.cost OR a.tries IS DISTINCT FROM b.tries`,
      [],
      LONG,
    );
    expect(sessions).toEqual([]);
  }

  test('a kill, a lost answer, a refusal to connect or a late repetition at any step loses no row and counts none twice', async () => {
    const POINTS = ['read', 'fold', 'folded', 'gone', 'statement', 'committed'] as const;
    const fault = fc.record({
      point: fc.constantFrom(...POINTS),
      /** How often the point is passed before. */
      after: fc.nat({ max: 3 }),
      kill: fc.boolean(),
    });
    const row = fc.record({
      time: fc.integer({ min: NOW - 40 * DAY, max: NOW }),
      key: fc.constantFrom('a', 'b\u0000c', 'd\ud800'),
      model: fc.constantFrom('m', 'n'),
      session: fc.constantFrom(undefined, 's', 't'),
      cost: fc.option(fc.integer({ min: 0, max: 10 ** 12 }), { nil: undefined }),
    });
    const step = fc.record({
      rows: fc.array(row, { maxLength: 30 }),
      /** Of these, so many run when the fault comes. */
      running: fc.nat({ max: 4 }),
      fault: fc.option(fault, { nil: undefined }),
    });
    let files = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 5 }), async (steps) => {
        const name = `property-${files++}`;
        const before = await stored();
        let expected = 0;
        let cost = 0;
        let armed: { point: string; left: number } | undefined;
        const pass = (point: string) => {
          if (armed?.point !== point) return;
          if (armed.left-- === 0) {
            armed = { point, left: 0 };
            throw new Error(`fault: ${point}`);
          }
        };
        const faulty = new Proxy<Sql>(database, {
          get: (own, property) => {
            if (property === 'transaction') {
              return async (work: (inside: SqlReader) => Promise<unknown>, deadline: number) => {
                const result = await own.transaction(async (inside) => {
                  const query: SqlReader['query'] = (sql, values) => {
                    pass('statement');
                    return inside.query(sql, values);
                  };
                  return work({ query });
                }, deadline);
                // The answer to the commit is lost.
                pass('committed');
                return result;
              };
            }
            const value = Reflect.get(own, property) as unknown;
            return typeof value === 'function' ? value.bind(own) : value;
          },
        });
        let generation = 0;
        const dead = new Set<number>();
        const start = () => {
          const own = generation;
          return openReplica(name, faulty, (point) => {
            if (dead.has(own)) throw new EngineAway('database', 'killed');
            pass(point);
          });
        };
        let shared = start();
        for (const { rows, running, fault } of steps) {
          armed = fault && { point: fault.point, left: fault.after };
          const places: RunningPlace[] = [];
          for (const [at, some] of rows.entries()) {
            const one = rowOf(some);
            expected++;
            cost += one.cost ?? 0;
            if (at < running) {
              // As reserved it costs the same: so a kill changes no sum.
              places.push(begin(shared, one));
            } else spend(shared, one);
          }
          await until(() => places.every(({ n }) => n > 0));
          await shared.flush();
          if (fault?.kill === true) {
            // Nothing more of it reaches the database: what it has written stays in the file, as it is.
            armed = undefined;
            dead.add(generation);
            await shared.close();
            generation++;
            shared = start();
            shared.open();
          } else {
            armed = undefined;
            for (const place of places) shared.end(place, place.running.reservedRow());
          }
        }
        armed = undefined;
        await shared.read(() => {});
        // Batches that come again, behind all others.
        const marks = await database.query<{ writer: string; n: number }>(
          'SELECT writer, n FROM hopgate.spend_marks',
          [],
          LONG,
        );
        const again = [{ n: 1, value: { row: rowOf() } }];
        for (const { writer, n } of marks) {
          expect(await storeOf(name).fold(writer, 0, n, again)).toBe(false);
        }
        const after = await stored();
        expect(after.tries! - before.tries!).toBe(expected);
        expect(after.requests! - before.requests!).toBe(expected);
        expect(after.cost! - before.cost!).toBe(cost);
        await expectNoDrift();
        await shared.close();
      }),
      { numRuns: 12, endOnFailure: true },
    );
  }, 240_000);

  function openReplica(name: string, own: Sql, at: (point: string) => void): SpendJournal {
    return replica(name, { database: own, at, momentMs: 2, lookEveryMs: 5 });
  }

  test('a try of a machine that is gone is booked as lost once; if the machine wakes, its true row takes the place', async () => {
    const lost: number[] = [];
    const gone = replica('gone');
    const reserved = rowOf({ cost: 900, session: 's', estimated: 1, ended: 'cut' });
    const place = begin(gone, reserved);
    await until(async () => {
      await gone.read(() => {});
      return (await openRows()) === 1;
    });
    // Heard last a moment ago, by the clock of the database.
    const watcher = replica('watcher', { lostAfterMs: 300, onLost: (tries) => lost.push(tries) });
    watcher.open();
    await database.query(
      "UPDATE hopgate.spend_spools SET seen = seen - interval '1 hour' WHERE replica = 'gone'",
      [],
      LONG,
    );
    await until(async () => (await stored()).lost === 1);
    // The database has it before the watcher has the answer.
    await until(() => lost.length > 0);
    expect(lost).toEqual([1]);
    expect(await stored()).toMatchObject({ tries: 1, cost: 900 });
    expect(await openRows()).toBe(0);
    await expectNoDrift();
    gone.end(place, { ...reserved, ended: 'done', cost: 250, time: NOW + 3 * 3_600_000 });
    await gone.read(() => {});
    expect(await stored()).toMatchObject({ tries: 1, cost: 250, lost: 0 });
    await expectNoDrift();
  });
  const openRows = async () => {
    const [row] = await database.query<{ n: number }>(
      'SELECT count(*) AS n FROM hopgate.spend_open',
      [],
      LONG,
    );
    return row!.n;
  };

  test('while the database was away it heard nobody: what runs on living machines is not lost when it is back', async () => {
    const proxy = await startFaultProxy(server.port);
    const through = connect(proxy.port);
    closing.push(
      () => proxy.close(),
      () => through.close(),
    );
    const lost: number[] = [];
    // It hears itself.
    const one = replica('alive', { lapseEveryMs: 1e9 });
    const two = replica('watching', {
      database: through,
      lostAfterMs: 400,
      onLost: (tries) => lost.push(tries),
    });
    two.open();
    begin(one, rowOf());
    await until(async () => {
      await one.read(() => {});
      return (await openRows()) === 1;
    });
    proxy.silent = true;
    proxy.cut();
    await until(() => through.state.status === 'down');
    await database.query(
      "UPDATE hopgate.spend_spools SET seen = seen - interval '1 hour'",
      [],
      LONG,
    );
    proxy.silent = false;
    await until(() => through.state.status === 'up');
    // Everybody is heard before the time is over.
    await database.query('UPDATE hopgate.spend_spools SET seen = clock_timestamp()', [], LONG);
    await Bun.sleep(100);
    expect(lost).toEqual([]);
    expect(await openRows()).toBe(1);
  });

  test('rows of a time without the database are sent when it is back, also by the next process', async () => {
    const proxy = await startFaultProxy(server.port);
    const through = connect(proxy.port);
    closing.push(
      () => proxy.close(),
      () => through.close(),
    );
    proxy.silent = true;
    const first = replica('outage', { database: through });
    first.open();
    for (let i = 0; i < 1000; i++) spend(first, rowOf({ key: `k${i % 7}` }));
    await until(() => through.state.status === 'down');
    const asked = first.read(async (reader) => reader.all('SELECT 1 AS one'));
    await expect(asked).rejects.toMatchObject({ status: 503, code: 'database_away' });
    await first.close();
    expect((await stored()).tries).toBe(0);
    proxy.cut();
    proxy.silent = false;
    const next = replica('outage');
    next.open();
    await until(async () => (await stored()).tries === 1000);
    await expectNoDrift();
  });

  test('a row that the database cannot take is told, stays in the file, and holds up no other', async () => {
    const refused: string[] = [];
    const one = replica('refused', { onRefused: (message) => refused.push(message) });
    for (let i = 0; i < 300; i++) {
      spend(one, rowOf(i === 77 ? { status: 2 ** 40 } : {}));
    }
    await until(async () => {
      await one.read(() => {});
      return (await stored()).tries === 299;
    });
    expect(refused).toHaveLength(1);
    expect(refused[0]).toContain('out of range');
    const file = join(databaseFolder(join(dir, 'refused.db')), 'refused');
    expect(readFileSync(file, 'utf8').split('\n')).toHaveLength(2);
    await one.flush();
    expect(one.waiting).toBe(0);
    await expectNoDrift();
  });

  test('two processes of a machine send from one file, and each row is there once', async () => {
    const one = replica('workers');
    const two = replica('workers');
    one.open();
    two.open();
    for (let i = 0; i < 600; i++) spend(i % 2 === 0 ? one : two, rowOf());
    await until(async () => (await stored()).tries === 600);
    expect(await stored()).toMatchObject({ tries: 600, requests: 600, cost: 600_000 });
    await expectNoDrift();
  });

  test('a machine whose clock is wrong by a year has its rows where its clock was, once', async () => {
    const one = replica('skewed');
    spend(one, rowOf({ time: NOW - 365 * DAY }));
    spend(one, rowOf({ time: NOW + 365 * DAY }));
    spend(one, rowOf());
    await one.read(() => {});
    expect(await stored()).toMatchObject({ tries: 3, cost: 3000 });
    await expectNoDrift();
  });

  test('pages and CSV have each row once, newest first, with its machine, also rows that came late', async () => {
    const one = replica('pages-one');
    const two = replica('pages-two');
    const times = Array.from({ length: 60 }, (_, i) => NOW - ((i * 7919) % 60) * DAY);
    for (const [i, time] of times.entries()) {
      const shared = i % 2 === 0 ? one : two;
      spend(shared, rowOf({ time, request: `r${i}`, session: i % 3 === 0 ? 's' : undefined }));
      if (i % 10 === 0) await shared.read(() => {});
    }
    await one.read(() => {});
    await two.read(() => {});
    const pagesOf = async (parameters: Readonly<Record<string, string>>) => {
      const found: JsonObject[] = [];
      for (let before: string | undefined; ; ) {
        const all: Record<string, string | undefined> = { ...parameters, before };
        const query = readRowsQuery((name) => all[name], NOW);
        const page = await two.read((reader) => spendPage(reader, query));
        found.push(...(page.data as JsonObject[]));
        if (page.next === null) return found;
        before = String(page.next);
      }
    };
    const newest = times
      .map((time, i) => [time, `r${i}`] as const)
      .toSorted((a, b) => b[0] - a[0])
      .map(([, request]) => request);
    const all = await pagesOf({ limit: '7' });
    expect(all.map(({ request }) => request)).toEqual(newest);
    expect(new Set(all.map((row) => row.replica))).toEqual(new Set(['pages-one', 'pages-two']));
    const some = await pagesOf({ session: 's', from: '20d', limit: '2' });
    const expected = newest.filter((request) => {
      const i = Number(request.slice(1));
      return i % 3 === 0 && times[i]! >= NOW - 20 * DAY;
    });
    expect(some.map(({ request }) => request)).toEqual(expected);
    let csv = '';
    const query = readRowsQuery(() => undefined, NOW);
    await two.read(async (reader) => {
      for await (const piece of spendCsv(reader, query)) csv += piece;
    });
    const lines = csv.trimEnd().split('\r\n');
    expect(lines[0]).toContain(',trace_id,replica,cost_usd,');
    const behind = lines[0]!.split(',key_name,')[1]!.split(',');
    const added = ADDED.map(({ name }): string => name);
    expect(behind.filter((name) => added.includes(name))).toEqual(added);
    expect(lines).toHaveLength(61);
  });

  test('totals over hours, days and months are one trip, and whole', async () => {
    const one = replica('trips');
    const from = Date.UTC(2026, 8, 20, 5);
    for (let time = from; time < NOW; time += 5 * 3_600_000) spend(one, rowOf({ time }));
    await one.read(() => {});
    const tries = Math.ceil((NOW - from) / (5 * 3_600_000));
    const reader = sharedSpendReader(database);
    await reader.all('SELECT 1');
    for (const step of [undefined, 'month', 'day']) {
      const all: Record<string, string | undefined> = { from: new Date(from).toISOString(), step };
      const query = readUsageQuery((name) => all[name], NOW);
      const { trips } = database.state;
      const groups = await usageBy(reader, query);
      expect(database.state.trips).toBe(trips + 1);
      const found = groups.reduce((sum, { sums }) => sum + sums.tries, 0);
      expect([step, found]).toEqual([step, tries]);
    }
  });

  test('a cursor of a file is refused, and none of a page is lost by it', async () => {
    const one = replica('cursor');
    const query = readRowsQuery((name) => (name === 'before' ? '12' : undefined), NOW);
    await expect(one.read((reader) => spendPage(reader, query))).rejects.toThrow(
      "'before' must be",
    );
  });

  test('old months of rows go as a whole, totals by a time of their own, and a late repetition counts nothing', async () => {
    const one = replica('old');
    const late = rowOf({ time: Date.now() - 200 * DAY });
    spend(one, late);
    spend(one, rowOf({ time: Date.now() }));
    await one.read(() => {});
    const months = async () =>
      (await database.query('SELECT 1 FROM hopgate.spend_months', [], LONG)).length;
    const before = await months();
    const pruneOld = (rows: number, totals: number, settledMs: number) =>
      prune(storeOf('old'), { rows, totals }, settledMs, 500);
    await pruneOld(90, 0, DAY);
    expect(await months()).toBe(before);
    for (let i = 0; i < before; i++) await pruneOld(90, 0, 0);
    expect(await stored()).toMatchObject({ tries: 1 });
    const totals = async () => {
      const [row] = await database.query<{ tries: number }>(
        'SELECT coalesce(sum(tries), 0)::int AS tries FROM hopgate.spend_totals WHERE span = 0',
        [],
        LONG,
      );
      return row!.tries;
    };
    expect(await totals()).toBe(2);
    await pruneOld(0, 100, 0);
    expect(await totals()).toBe(1);
  });

  test('a replica whose clock is years ahead deletes no rows of the others', async () => {
    const one = replica('ahead');
    spend(one, rowOf({ time: Date.now() }));
    await one.read(() => {});
    const before = (await stored()).tries;
    setSystemTime(Date.now() + 1000 * DAY);
    try {
      while (await prune(storeOf('ahead'), { rows: 90, totals: 100 }, -DAY, 500));
    } finally {
      setSystemTime();
    }
    expect((await stored()).tries).toBe(before);
  });

  test('a try that was booked as lost, whose month is gone, and that ends after all counts once', async () => {
    const gone = replica('gone-with-its-month');
    const time = Date.now() - 200 * DAY;
    const reserved = rowOf({ time, cost: 900, session: 's', estimated: 1, ended: 'cut' });
    const places = [begin(gone, reserved), begin(gone, rowOf({ ...reserved, request: 'other' }))];
    await until(async () => {
      await gone.read(() => {});
      return (await openRows()) === 2;
    });
    const lapseAll = () => lapse(storeOf('watcher'), -1000, 500);
    await lapseAll();
    expect(await stored()).toMatchObject({ tries: 2, cost: 1800, lost: 2 });
    const pruneAll = () => prune(storeOf('watcher'), { rows: 90, totals: 0 }, 0, 500);
    const sums = async () => {
      const found = await database.query<Record<string, number>>(
        `SELECT 'span ' || span AS what, sum(tries)::int AS tries, sum(cost)::bigint AS cost, sum(estimated)::int AS estimated
          FROM hopgate.spend_totals GROUP BY 1
          UNION SELECT 'session', sum(tries)::int, sum(cost)::bigint, sum(estimated)::int FROM hopgate.spend_session_totals
          ORDER BY 1`,
        [],
        LONG,
      );
      return found.map(({ tries, cost, estimated }) => [tries, cost, estimated]);
    };
    const everywhere = (...values: number[]) => [values, values, values, values];
    for (let i = 0; i < 10; i++) await pruneAll();
    expect(await stored()).toMatchObject({ tries: 0 });
    expect(await sums()).toEqual(everywhere(2, 1800, 2));

    gone.end(places[0]!, { ...reserved, ended: 'done', cost: 250, estimated: 0 });
    await gone.read(() => {});
    expect(await stored()).toMatchObject({ tries: 1, cost: 250 });
    expect(await sums()).toEqual(everywhere(2, 1150, 1));
    // The month is dropped again, and the other one ends then.
    for (let i = 0; i < 10; i++) await pruneAll();
    gone.end(places[1]!, { ...reserved, ended: 'done', cost: 50, estimated: 0 });
    await gone.read(() => {});
    expect(await sums()).toEqual(everywhere(2, 300, 0));
    const [kept] = await database.query('SELECT count(*) AS n FROM hopgate.spend_kept', [], LONG);
    expect(kept).toEqual({ n: 0 });
  });

  test('the file keeps what the database has not, however old it is', async () => {
    const away = new Proxy<Sql>(database, {
      get: (own, property) =>
        property === 'query' || property === 'transaction'
          ? async () => {
              throw new EngineAway('database', 'away');
            }
          : Reflect.get(own, property),
    });
    const one = replica('kept', { database: away, keep: () => ({ rows: 1, totals: 0 }) });
    spend(one, rowOf({ time: Date.now() - 30 * DAY }));
    await one.flush();
    expect(one.waiting).toBe(1);
    await one.close();
    const next = replica('kept', { keep: () => ({ rows: 1, totals: 0 }) });
    await next.read(() => {});
    expect(await stored()).toMatchObject({ tries: 1 });
  });
});
