/** What budgets have counted between files and a real Postgres: each unit once, however often and whichever way it is moved. */

import { Database } from 'bun:sqlite';
import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { budgetsMove } from '../../src/limits/budgets-move.ts';
import { DatabaseBank } from '../../src/limits/database-bank.ts';
import type { Admission, WindowLimit } from '../../src/limits/limits.ts';
import { ProcessLimits } from '../../src/limits/process-limits.ts';
import { LIMITS_SCHEMA, limitsTables } from '../../src/limits/schema.ts';
import type { Sql } from '../../src/state/engines/engine.ts';
import type { MoveDirection } from '../../src/state/move/paged-move.ts';
import { openStateFile } from '../../src/state/versioned-store.ts';
import { HAS_POSTGRES } from '../support/engines/database-servers.ts';
import { LocalKeptLimits as KeptLimits } from '../support/local-limits.ts';
import { cutAt, dumpOf, filesIn, moveSetup } from '../support/moves.ts';

setDefaultTimeout(120_000);

const LONG = 10_000;
const FAR = Date.now() + 10 * 86_400_000;
const START = 1_790_000_000_000;

describe.skipIf(!HAS_POSTGRES)('moving budgets', () => {
  const { emptyDatabase, newFolder } = moveSetup();

  function machine() {
    const folder = newFolder();
    return { folder, path: join(folder, 'limits.db') };
  }
  const moveOf = (database: Sql, path: string, to: MoveDirection) =>
    budgetsMove({ database, path, to });
  const move = (database: Sql, path: string, to: MoveDirection) =>
    moveOf(database, path, to).copy(() => {});

  /** Counts in a file as a process does, so many units of each law. */
  function useAllIn(path: string, laws: readonly (readonly [string, number])[], keepUntil = FAR) {
    const db = openStateFile({ path, tables: LIMITS_SCHEMA.sqlite });
    const one = db.query(
      `INSERT INTO windows VALUES (?1, ${START}, ?2, ?3)
        ON CONFLICT DO UPDATE SET used = used + ?2`,
    );
    db.transaction(() => {
      for (const [law, units] of laws) one.run(law, units, keepUntil);
    })();
    db.close();
  }
  const useIn = (path: string, law: string, units: number, keepUntil = FAR) =>
    useAllIn(path, [[law, units]], keepUntil);
  const lawsOf = (count: number, units: (n: number) => number) =>
    Array.from({ length: count }, (_, n) => [`law:${n}`, units(n)] as const);
  function inFile(path: string): Record<string, number> {
    const db = new Database(path);
    const rows = db.query<{ law: string; used: number }, []>('SELECT law, used FROM windows').all();
    db.close();
    return Object.fromEntries(rows.map(({ law, used }) => [law, used]));
  }
  async function useThere(database: Sql, law: string, units: number): Promise<void> {
    await limitsTables(database)();
    await database.query(
      `INSERT INTO hopgate.windows AS w VALUES ($1, ${START}, $2, 0, ${FAR})
        ON CONFLICT (law, start) DO UPDATE SET spent = w.spent + $2`,
      [law, units],
      LONG,
    );
  }
  async function inDatabase(database: Sql): Promise<Record<string, number>> {
    const rows = await database.query<{ law: string; used: number }>(
      'SELECT law, spent + held AS used FROM hopgate.windows',
      [],
      LONG,
    );
    return Object.fromEntries(rows.map(({ law, used }) => [law, used]));
  }

  test('windows come once, later uses as the difference, and a look writes nothing', async () => {
    const database = await emptyDatabase();
    const { path, folder } = machine();
    const there = moveOf(database, path, 'engines');
    expect(await there.compare()).toEqual({ items: 0, missing: 0, conflicts: 0 });
    expect(await there.copy(() => {})).toBe(0);
    expect(existsSync(path)).toBe(false);

    useAllIn(
      path,
      lawsOf(1200, (n) => n + 1),
    );
    useIn(path, 'over', 7, Date.now() - 1);
    const files = filesIn(folder);
    expect(await there.compare()).toMatchObject({ items: 1200, missing: 1200, conflicts: 0 });
    expect(filesIn(folder)).toEqual(files);
    expect(await dumpOf(database)).toBe('');

    expect(await there.copy(() => {})).toBe(1200);
    const { over: _, ...counted } = inFile(path);
    expect(await inDatabase(database)).toEqual(counted);
    const dump = await dumpOf(database);
    expect(await there.compare()).toMatchObject({ items: 1200, missing: 0 });
    expect(await there.copy(() => {})).toBe(0);
    expect(await dumpOf(database)).toBe(dump);

    useIn(path, 'law:3', 100);
    useIn(path, 'law:5', -2);
    expect(await there.compare()).toMatchObject({ missing: 2 });
    expect(await there.copy(() => {})).toBe(2);
    expect(await inDatabase(database)).toMatchObject({ 'law:3': 104, 'law:5': 4, 'law:7': 8 });
  });

  test('a warning that was sent is not sent again on the other side', async () => {
    const database = await emptyDatabase();
    const { path } = machine();
    useIn(path, 'a', 1);
    const db = new Database(path);
    db.query(`INSERT INTO notices VALUES ('a', ${START}, 50, ${FAR})`).run();
    db.close();
    expect(await move(database, path, 'engines')).toBe(2);
    await database.query(
      `INSERT INTO hopgate.notices VALUES ('a', ${START}, 80, ${FAR})`,
      [],
      LONG,
    );
    expect(await move(database, path, 'engines')).toBe(0);
    const { path: other } = machine();
    expect(await moveOf(database, other, 'embedded').compare()).toMatchObject({ missing: 3 });
    expect(existsSync(other)).toBe(false);
    await move(database, other, 'embedded');
    const copy = new Database(other);
    expect(copy.query('SELECT mark FROM notices ORDER BY mark').values()).toEqual([[50], [80]]);
    copy.close();
  });

  test('whatever is used where, and moved whichever way, every side ends with all units once', async () => {
    const database = await emptyDatabase();
    let runs = 0;
    const step = fc.record({
      what: fc.constantFrom('file', 'database', 'there', 'back'),
      machine: fc.nat(1),
      law: fc.nat(1),
      units: fc.integer({ min: 1, max: 1000 }),
      // Drawn ahead, and given back later.
      ahead: fc.integer({ min: 0, max: 50 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 16 }), async (steps) => {
        const run = ++runs;
        const machines = [machine(), machine()];
        const lawOf = (n: number) => `run:${run}:${n}`;
        const used = new Map<string, number>();
        const count = (law: string, units: number) => used.set(law, (used.get(law) ?? 0) + units);
        for (const { what, machine: n, law, units, ahead } of steps) {
          const { path } = machines[n]!;
          if (what === 'file') {
            useIn(path, lawOf(law), units + ahead);
            if (ahead % 2 === 1) await move(database, path, 'engines');
            useIn(path, lawOf(law), -ahead);
            count(lawOf(law), units);
          } else if (what === 'database') {
            await useThere(database, lawOf(law), units);
            count(lawOf(law), units);
          } else {
            await move(database, path, what === 'there' ? 'engines' : 'embedded');
          }
        }
        for (const { path } of machines) await move(database, path, 'engines');
        for (const { path } of machines) await move(database, path, 'embedded');
        const own = (all: Record<string, number>) =>
          Object.fromEntries(Object.entries(all).filter(([law]) => law.startsWith(`run:${run}:`)));
        const expected = Object.fromEntries(used);
        expect(own(await inDatabase(database))).toEqual(expected);
        for (const { path } of machines) {
          expect(own(inFile(path))).toEqual(expected);
          expect(await moveOf(database, path, 'engines').compare()).toMatchObject({ missing: 0 });
          expect(await moveOf(database, path, 'embedded').compare()).toMatchObject({ missing: 0 });
        }
      }),
      { numRuns: 25 },
    );
  });

  test('a copy that is cut, before or after its transaction, counts nothing twice', async () => {
    for (const when of ['before', 'after'] as const) {
      const database = await emptyDatabase();
      const { path } = machine();
      useAllIn(
        path,
        lawsOf(1300, () => 10),
      );
      for (const at of [1, 2, 3, 4]) {
        const cut = cutAt(database, at, when);
        await move(cut, path, 'engines').catch((error: Error) => expect(error.message).toBe('cut'));
        useIn(path, 'law:2', 1);
      }
      await move(database, path, 'engines');
      expect(await inDatabase(database)).toEqual(inFile(path));
      expect(inFile(path)['law:2']).toBe(14);
    }
  });

  test('another database gets all, also what came from the first one', async () => {
    const [first, second] = [await emptyDatabase(), await emptyDatabase()];
    const { path } = machine();
    useIn(path, 'a', 100);
    await move(first, path, 'engines');
    await useThere(first, 'a', 50);
    await move(first, path, 'embedded');
    expect(inFile(path)).toEqual({ a: 150 });
    await move(second, path, 'engines');
    expect(await inDatabase(second)).toEqual({ a: 150 });
    await move(second, path, 'embedded');
    expect(inFile(path)).toEqual({ a: 150 });
    // A file that begins anew is another origin: what it counts is new.
    rmSync(path);
    useIn(path, 'a', 5);
    await move(first, path, 'engines');
    expect(await inDatabase(first)).toEqual({ a: 155 });
  });

  test('under load, in both forms at once, what was drawn ahead is taken back and the sums are exact', async () => {
    const database = await emptyDatabase();
    const { path } = machine();
    const limit: WindowLimit = {
      ...{ kind: 'window', id: 'budget', unit: 'nano_usd', amount: 1_000_000 },
      ...{ per: 'month', timeZone: 'UTC' },
    };
    const kept = new KeptLimits({ path, onProblem: () => {}, onReached: () => {} });
    const shared = new ProcessLimits({ bank: new DatabaseBank({ database }), process: 'one' });
    const settle = (admission: Admission, units: number) => {
      if (!admission.admitted) throw new Error('refused');
      admission.settle([units]);
    };
    let used = 0;
    for (let i = 0; i < 200; i++) {
      settle(await kept.admit([{ limit, amount: 100 }]), 90);
      settle(await shared.admit([{ limit, amount: 70 }]), 60);
      used += 150;
      if (i % 50 === 49) await move(database, path, 'engines');
      if (i % 50 === 20) await move(database, path, 'embedded');
      if (i % 10 === 0) await Bun.sleep(1);
    }
    // Never less than was used: what is reserved and drawn ahead is among it.
    expect((await inDatabase(database)).budget).toBeGreaterThanOrEqual(used);
    kept.close();
    await shared.close();
    await move(database, path, 'engines');
    await move(database, path, 'embedded');
    expect(await inDatabase(database)).toEqual({ budget: used });
    expect(inFile(path)).toEqual({ budget: used });
    // The next process has what is left.
    const next = new KeptLimits({ path, onProblem: () => {}, onReached: () => {} });
    expect(next.admit([{ limit, amount: 1_000_000 - used + 1 }])).toMatchObject({
      admitted: false,
    });
    settle(next.admit([{ limit, amount: 1_000_000 - used }]), 0);
    next.close();
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
