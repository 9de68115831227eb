/** Spend between files and a real Postgres: every row once, and every report equal to the sum of both sides. */

import { Database } from 'bun:sqlite';
import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { spendMove } from '../../src/money/move.ts';
import { openSpend } from '../../src/money/open-spend.ts';
import { FileReader, sharedSpendReader } from '../../src/money/reader.ts';
import { readRowsQuery, spendCsv } from '../../src/money/rows.ts';
import type { SpendRow } from '../../src/money/schema.ts';
import { type SpendReader, spendSchema } from '../../src/money/schema.ts';
import { fileStore, SpendStore } from '../../src/money/spend-store.ts';
import { prune } from '../../src/money/spend-upkeep.ts';
import { readUsageQuery, usageBy } from '../../src/money/usage.ts';
import type { Sql } from '../../src/state/engines/engine.ts';
import type { MoveDirection } from '../../src/state/move/paged-move.ts';
import { openPostgres } from '../../src/state/sql/postgres.ts';
import { HAS_POSTGRES, newDatabase } from '../support/engines/database-servers.ts';
import { cutAt, dumpOf, filesIn, moveSetup } from '../support/moves.ts';
import { putRows, spendRow } from '../support/spend-rows.ts';

setDefaultTimeout(120_000);

const DAY = 86_400_000;
const NOW = Date.now();

let made = 0;
const rowOf = (more: Partial<SpendRow> = {}): SpendRow => {
  const n = ++made;
  return spendRow({
    request: `req_${n}`,
    time: NOW - (n % 45) * 3 * 3_600_000 - n,
    key: `key${n % 3}`,
    labels: n % 2 === 0 ? '{"team":"web"}' : '{"stage":"b\\"","team":"ops"}',
    session: n % 4 === 0 ? undefined : `s${n % 7}`,
    model: `m${n % 2}`,
    target: `up/m${n % 2}`,
    status: n % 9 === 0 ? undefined : 200,
    ended: n % 9 === 0 ? 'error' : 'done',
    input: n % 100,
    output: n % 17,
    cache_read: n % 5,
    estimated: n % 6 === 0 ? 1 : 0,
    cost: n % 11 === 0 ? undefined : 1000 + n,
    price: n % 11 === 0 ? undefined : '{"input":3}',
    ...more,
  });
};
const rowsOf = (count: number, more: Partial<SpendRow> = {}) =>
  Array.from({ length: count }, () => rowOf(more)).toSorted((a, b) => a.time - b.time);

/**
 * Every group and every step, each of which is read in its own way. A step of days costs a question for each of them: the
 * oldest rows are of 200 days ago.
 */
const REPORTS: readonly (readonly [by: string, step?: string])[] = [
  ['key', 'day'],
  ['label.team', 'day'],
  ['target', 'month'],
  ['model', 'month'],
  ['session'],
  ['key'],
];

describe.skipIf(!HAS_POSTGRES)('moving spend', () => {
  const setup = moveSetup();
  const { emptyDatabase } = setup;

  function machine() {
    const folder = setup.newFolder();
    return { folder, path: join(folder, 'spend.db') };
  }
  const moveOf = (database: Sql, path: string, to: MoveDirection, keepDays = 0) =>
    spendMove({ database, path, to, keepDays, replica: 'machine' });
  const move = (database: Sql, path: string, to: MoveDirection, keepDays = 0) =>
    moveOf(database, path, to, keepDays).copy(() => {});

  /** As a gateway without engines writes. */
  async function spendIn(
    path: string,
    rows: readonly SpendRow[],
    work?: (store: SpendStore) => Promise<unknown>,
  ) {
    const store = fileStore(path);
    await putRows(store, rows);
    await work?.(store);
    store.close();
  }
  /** Deletes what is older. */
  const dropBefore = (time: number) => async (store: SpendStore) => {
    const days = (Date.now() - time) / DAY;
    while (await prune(store, { rows: days, totals: 0 }, 0, 1000));
  };
  /** As a replica writes, on the same folder. */
  async function spendShared(database: Sql, path: string, rows: readonly SpendRow[]) {
    const journal = openSpend({
      ...{ path, database, replica: 'machine', keep: () => ({ rows: 0, totals: 0 }) },
      ...{ onProblem: () => {}, onRecovered: () => {}, onRefused: () => {}, onLost: () => {} },
    });
    for (const row of rows) journal.end(journal.begin({ reservedRow: () => row }), row);
    await journal.close();
  }

  async function reportsOf(reader: SpendReader) {
    const all: Record<string, unknown> = {};
    for (const [by, step] of REPORTS) {
      const values: Record<string, string | undefined> = { by, step, from: '210d', limit: '1000' };
      const query = readUsageQuery((name) => values[name], NOW + DAY);
      const groups = await usageBy(reader, query);
      all[`${by} ${step}`] = groups
        .filter(({ sums }) => Object.values(sums).some((value) => value !== 0))
        .map((group) => JSON.stringify(group))
        .sort();
    }
    return all;
  }
  async function inFile<T>(path: string, work: (reader: SpendReader) => Promise<T>): Promise<T> {
    const reader = new FileReader(path);
    try {
      return await work(reader);
    } finally {
      reader.close();
    }
  }
  const inDatabase = (database: Sql) => reportsOf(sharedSpendReader(database));
  async function requestsIn(reader: SpendReader, from = '400d'): Promise<readonly string[]> {
    const values: Record<string, string> = { from };
    const query = readRowsQuery((name) => values[name], NOW + DAY);
    let csv = '';
    for await (const piece of spendCsv(reader, query)) csv += piece;
    return csv.match(/req_\d+/g)?.sort() ?? [];
  }
  const names = (...lists: readonly (readonly SpendRow[])[]) =>
    lists
      .flat()
      .map(({ request }) => request)
      .sort();
  /** What a single gateway would report that had all these rows. */
  async function expected(...lists: readonly (readonly SpendRow[])[]) {
    const { path } = machine();
    await spendIn(path, lists.flat());
    return inFile(path, reportsOf);
  }

  test('rows come once with their totals, those between two moves too, and a look writes nothing', async () => {
    const database = await emptyDatabase();
    const { path, folder } = machine();
    const there = moveOf(database, path, 'engines');
    expect(await there.compare()).toEqual({ items: 0, missing: 0, conflicts: 0 });
    expect(await there.copy(() => {})).toBe(0);
    expect(existsSync(path)).toBe(false);

    const first = rowsOf(1100);
    await spendIn(path, first);
    const files = filesIn(folder);
    expect(await there.compare()).toMatchObject({ items: 1100, missing: 1100, conflicts: 0 });
    expect(filesIn(folder)).toEqual(files);
    expect(await dumpOf(database)).toBe('');

    const seen: number[] = [];
    expect(await there.copy((done) => seen.push(done))).toBe(1100);
    expect(seen).toEqual([500, 1000, 1100]);
    expect(await inDatabase(database)).toEqual(await expected(first));
    expect(await requestsIn(sharedSpendReader(database))).toEqual(names(first));
    const dump = await dumpOf(database);
    expect(await there.compare()).toMatchObject({ items: 1100, missing: 0 });
    expect(await there.copy(() => {})).toBe(0);
    expect(await dumpOf(database)).toBe(dump);

    const second = rowsOf(7);
    await spendIn(path, second);
    expect(await there.compare()).toMatchObject({ items: 1107, missing: 7 });
    expect(await there.copy(() => {})).toBe(7);
    expect(await inDatabase(database)).toEqual(await expected(first, second));
  });

  test('of a machine that had this database from the beginning, nothing is missing there, and nothing is copied', async () => {
    const database = await emptyDatabase();
    const { path } = machine();
    const rows = rowsOf(30);
    await spendShared(database, path, rows);
    const there = moveOf(database, path, 'engines');
    expect(await there.compare()).toMatchObject({ missing: 0 });
    expect(await there.copy(() => {})).toBe(0);
    expect(await inDatabase(database)).toEqual(await expected(rows));
    // The file has none of them.
    expect(existsSync(path)).toBe(false);
  });

  test('what the gateway sends by itself, before a move and after it, is not sent by the move once more', async () => {
    const database = await emptyDatabase();
    const { path } = machine();
    const [alone, before, between, after] = [rowsOf(50), rowsOf(40), rowsOf(3), rowsOf(60)];
    await spendIn(path, alone);
    await spendShared(database, path, before);
    await move(database, path, 'engines');
    expect(await inDatabase(database)).toEqual(await expected(alone, before));
    await spendShared(database, path, after);
    // A process of before ends late.
    await spendIn(path, between);
    const there = moveOf(database, path, 'engines');
    expect(await there.compare()).toMatchObject({ missing: 3 });
    expect(await there.copy(() => {})).toBe(3);
    expect(await there.compare()).toMatchObject({ missing: 0 });
    const all = await expected(alone, before, between, after);
    expect(await inDatabase(database)).toEqual(all);
    expect(await requestsIn(sharedSpendReader(database))).toEqual(
      names(alone, before, between, after),
    );
    expect(await inFile(path, reportsOf)).toEqual(await expected(alone, between));
  });

  test('totals of rows that were deleted after their time come along, once, and rows beyond it as totals', async () => {
    const database = await emptyDatabase();
    const { path } = machine();
    const gone = rowsOf(120, { time: NOW - 200 * DAY });
    const old = rowsOf(30, { time: NOW - 95 * DAY });
    const young = rowsOf(80);
    await spendIn(path, gone, dropBefore(NOW - 150 * DAY));
    await spendIn(path, [...old, ...young]);
    const there = moveOf(database, path, 'engines', 90);
    const { items, missing } = await there.compare();
    expect(items).toBeGreaterThan(80);
    expect(missing).toBe(items);
    expect(await there.copy(() => {})).toBe(items);
    const all = await expected(gone, old, young);
    expect(await inDatabase(database)).toEqual(all);
    expect(await requestsIn(sharedSpendReader(database))).toEqual(names(young));
    expect(await there.compare()).toMatchObject({ missing: 0 });
    // What is deleted after the move was moved.
    await spendIn(path, [], dropBefore(NOW - 3 * DAY));
    expect(await there.compare()).toMatchObject({ missing: 0 });
    expect(await there.copy(() => {})).toBe(0);
    expect(await inDatabase(database)).toEqual(all);
  });

  test('a copy that is cut, before or after its transaction, is finished by the next one', async () => {
    for (const when of ['before', 'after'] as const) {
      const database = await emptyDatabase();
      const { path } = machine();
      const gone = rowsOf(40, { time: NOW - 200 * DAY });
      const rows = rowsOf(1600);
      await spendIn(path, gone, dropBefore(NOW - 150 * DAY));
      await spendIn(path, rows);
      for (const at of [1, 2, 3, 3, 2]) {
        await expect(move(cutAt(database, at, when), path, 'engines')).rejects.toThrow('cut');
      }
      await move(database, path, 'engines');
      expect(await inDatabase(database)).toEqual(await expected(gone, rows));
      expect(await requestsIn(sharedSpendReader(database))).toEqual(names(rows));
    }
  });

  test('a file that was emptied uses its ids again, and its new rows come all the same', async () => {
    const database = await emptyDatabase();
    const { path } = machine();
    const [first, second] = [rowsOf(20), rowsOf(30)];
    await spendIn(path, first);
    await move(database, path, 'engines');
    await spendIn(path, [], dropBefore(NOW + DAY));
    await spendIn(path, second);
    expect(await move(database, path, 'engines')).toBe(30);
    expect(await inDatabase(database)).toEqual(await expected(first, second));
  });

  test('rows of a process that may come back wait for it', async () => {
    const database = await emptyDatabase();
    const { path } = machine();
    const reserved = rowOf({ cost: 5000, ended: 'lost' });
    const [before, after] = [rowsOf(3), rowsOf(4)];
    // It lives, but was not heard for long.
    await spendIn(path, before, async (store) => {
      await store.fold('frozen', 0, 1, [{ n: 1, value: { open: reserved } }]);
      await store.ended('frozen');
    });
    await spendIn(path, after);
    expect(await move(database, path, 'engines')).toBe(7);
    expect(await inDatabase(database)).toEqual(await expected(before, after));
    const true1 = { ...reserved, cost: 70, ended: 'done' as const };
    await spendIn(path, [], (store) =>
      store.fold('frozen', 1, 2, [{ n: 2, value: { row: true1, begun: [1, reserved.time] } }]),
    );
    await move(database, path, 'engines');
    expect(await inDatabase(database)).toEqual(await expected(before, after, [true1]));
    expect(await requestsIn(sharedSpendReader(database))).toEqual(names(before, after, [true1]));
  });

  test('all goes back: into a file of its own part, into a new one, and what was replaced there is replaced here', async () => {
    const database = await emptyDatabase();
    const [one, two, fresh] = [machine(), machine(), machine()];
    const [a, b, c, d] = [rowsOf(600), rowsOf(70), rowsOf(80), rowsOf(50)];
    await spendIn(one.path, a);
    await move(database, one.path, 'engines');
    await spendShared(database, one.path, b);
    await spendShared(database, two.path, c);
    const all = await expected(a, b, c);

    const back = moveOf(database, fresh.path, 'embedded');
    expect(await back.compare()).toMatchObject({ items: 750, missing: 750 });
    expect(existsSync(fresh.path)).toBe(false);
    expect(await back.copy(() => {})).toBe(750);
    expect(await back.compare()).toMatchObject({ items: 750, missing: 0 });
    expect(await back.copy(() => {})).toBe(0);
    expect(await inFile(fresh.path, reportsOf)).toEqual(all);
    expect(await inFile(fresh.path, requestsIn)).toEqual(names(a, b, c));
    // Nothing of it goes there again.
    expect(await moveOf(database, fresh.path, 'engines').compare()).toMatchObject({ missing: 0 });
    expect(await move(database, fresh.path, 'engines')).toBe(0);
    expect(await inDatabase(database)).toEqual(all);

    expect(await moveOf(database, one.path, 'embedded').compare()).toMatchObject({ missing: 150 });
    expect(await move(database, one.path, 'embedded')).toBe(150);
    expect(await inFile(one.path, reportsOf)).toEqual(all);
    expect(await inFile(one.path, requestsIn)).toEqual(names(a, b, c));
    // It goes on alone; the list of a short time has what is older in the file, and newer.
    await spendIn(one.path, d);
    const since = (await inFile(one.path, (reader) => requestsIn(reader, '48h'))).length;
    const young = [a, b, c, d].flat().filter(({ time }) => time >= NOW + DAY - 2 * DAY);
    expect(since).toBe(young.length);
    await move(database, one.path, 'engines');
    expect(await inDatabase(database)).toEqual(await expected(a, b, c, d));

    // A row that was made up for a lost machine, and its true one later.
    const store = new SpendStore(openPostgres(database, spendSchema()), { machine: 'x' });
    const put = (rev: number, cost: number) => {
      const row = spendRow({ request: 'req_0', time: NOW, cost });
      return store.put([{ row, at: NOW, writer: 'w', n: 1, rev, replica: 'x' }]);
    };
    await put(1, 900);
    expect(await move(database, fresh.path, 'embedded')).toBe(51);
    await put(3, 100);
    expect(await moveOf(database, fresh.path, 'embedded').compare()).toMatchObject({ missing: 1 });
    expect(await move(database, fresh.path, 'embedded')).toBe(1);
    expect(await inFile(fresh.path, reportsOf)).toEqual(await inDatabase(database));
  });

  test('what the database has only as totals comes back as totals, once, without the part of the file itself', async () => {
    const database = await emptyDatabase();
    const [one, two, fresh] = [machine(), machine(), machine()];
    const old = { time: NOW - 130 * DAY };
    const [own, gone, later, young] = [rowsOf(40, old), rowsOf(50, old), rowsOf(30), rowsOf(20)];
    await spendIn(one.path, own);
    await move(database, one.path, 'engines');
    await spendShared(database, two.path, later);
    await spendShared(database, two.path, gone);
    const all = await expected(own, gone, later);
    expect(await inDatabase(database)).toEqual(all);
    // The month goes.
    const store = new SpendStore(openPostgres(database, spendSchema()), { machine: 'x' });
    await prune(store, { rows: 60, totals: 0 }, 0, 1000);
    expect(await requestsIn(sharedSpendReader(database))).toEqual(names(later));
    expect(await inDatabase(database)).toEqual(all);

    const back = moveOf(database, fresh.path, 'embedded');
    const { items, missing } = await back.compare();
    expect(items).toBeGreaterThan(30);
    expect(missing).toBe(items);
    expect(await back.copy(() => {})).toBe(items);
    expect(await inFile(fresh.path, reportsOf)).toEqual(all);
    expect(await back.compare()).toMatchObject({ missing: 0 });
    expect(await back.copy(() => {})).toBe(0);
    await spendIn(fresh.path, young);
    await move(database, fresh.path, 'engines');
    expect(await inDatabase(database)).toEqual(await expected(own, gone, later, young));

    // In the hours in which the first machine counted alone, its part cannot be told: nothing is counted twice.
    await move(database, one.path, 'embedded');
    expect(await inFile(one.path, reportsOf)).toEqual(await expected(own, later, young));
  });

  test('another database gets what came from the first one, too', async () => {
    const [first, second] = [await emptyDatabase(), await emptyDatabase()];
    const [one, two] = [machine(), machine()];
    const [a, b, c] = [rowsOf(30), rowsOf(40, { time: NOW - 20 * DAY }), rowsOf(50)];
    await spendIn(one.path, a);
    await spendShared(first, two.path, b);
    await spendShared(first, one.path, c);
    await move(first, one.path, 'embedded');
    // The replica on the second one begins before the move: rows from before a week that the first one had stay.
    await spendShared(second, one.path, []);
    await move(second, one.path, 'engines');
    expect(await inDatabase(second)).toEqual(await expected(a, b, c));
  });

  test('random uses and moves over two machines end with the same reports everywhere', async () => {
    const step = fc.record({
      what: fc.constantFrom('alone', 'shared', 'there', 'back'),
      machine: fc.nat(1),
      rows: fc.integer({ min: 1, max: 12 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 9 }), async (steps) => {
        const { database } = await newDatabase(setup.server);
        const machines = [machine(), machine()];
        const all: SpendRow[] = [];
        for (const { what, machine: n, rows } of steps) {
          const { path } = machines[n]!;
          const news = rowsOf(rows);
          if (what === 'alone' || what === 'shared') {
            all.push(...news);
            if (what === 'alone') await spendIn(path, news);
            else await spendShared(database, path, news);
          } else await move(database, path, what === 'there' ? 'engines' : 'embedded');
        }
        for (const { path } of machines) await move(database, path, 'engines');
        for (const { path } of machines) await move(database, path, 'embedded');
        const reports = await expected(all);
        expect(await inDatabase(database)).toEqual(reports);
        for (const { path } of machines) {
          expect(await inFile(path, reportsOf)).toEqual(reports);
          expect(await inFile(path, requestsIn)).toEqual(names(all));
          for (const to of ['engines', 'embedded'] as const) {
            expect(await moveOf(database, path, to).compare()).toMatchObject({ missing: 0 });
          }
        }
        await database.close();
      }),
      { numRuns: 6 },
    );
  });

  test('a file that is broken or newer is told', async () => {
    const database = await emptyDatabase();
    const { path } = machine();
    writeFileSync(path, 'no database, but long enough to be looked at as one'.repeat(100));
    const there = moveOf(database, path, 'engines');
    await expect(there.compare()).rejects.toThrow(`${path} cannot be read`);
    rmSync(path);
    const newer = new Database(path);
    newer.run('PRAGMA user_version = 99');
    newer.close();
    await expect(there.compare()).rejects.toThrow('a newer version of hopgate made it');
    await expect(moveOf(database, path, 'embedded').copy(() => {})).rejects.toThrow(
      'newer version',
    );
  });
});
