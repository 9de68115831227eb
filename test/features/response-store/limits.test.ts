/** What is beyond the limits goes by conversation, and by what each owner has: in a file and in a real Postgres. */

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import {
  RESPONSES,
  type ResponseLimits,
  ResponseStore,
} from '../../../src/features/response-store/index.ts';
import { columnForms } from '../../../src/features/response-store/schema.ts';
import { openPostgres } from '../../../src/state/sql/postgres.ts';
import type { SqlDatabase } from '../../../src/state/sql/sql.ts';
import { openSqlite } from '../../../src/state/sql/sqlite.ts';
import {
  type DatabaseServer,
  HAS_POSTGRES,
  newDatabase,
  startPostgres,
} from '../../support/engines/database-servers.ts';
import { conversation, say, storedRow } from '../../support/stored-rows.ts';

let server: DatabaseServer | undefined;
const cleanups: (() => unknown)[] = [];
beforeAll(async () => {
  if (HAS_POSTGRES) server = await startPostgres();
});
afterEach(async () => {
  for (const one of cleanups.splice(0).reverse()) await one();
});
afterAll(() => server?.stop());

function inFile(): () => SqlDatabase {
  const folder = mkdtempSync(join(tmpdir(), 'hopgate-responses-'));
  cleanups.push(() => rmSync(folder, { recursive: true, force: true }));
  return () => openSqlite(RESPONSES, { path: join(folder, 'responses.db'), shrinks: true });
}

async function inPostgres(): Promise<() => SqlDatabase> {
  const { database } = await newDatabase(server!);
  cleanups.push(() => database.close());
  return () => openPostgres(database, RESPONSES);
}

describe.each([
  ['SQLite', true, inFile],
  ['Postgres', HAS_POSTGRES, inPostgres],
] as const)('%s', (_name, isThere, driver) => {
  /** An empty store, and its tables. */
  async function opened(limits: Partial<ResponseLimits>) {
    const open = await driver();
    const store = new ResponseStore({ database: open, limits, flushMs: 1e6 });
    const tables = open();
    cleanups.push(() => tables.close());
    cleanups.push(() => store.close());
    const has = async (id: string, owner = '') =>
      (await store.fetch({ responses: [id] }, owner)).known(id, owner) !== undefined;
    const totals = async () => {
      const [row] = await tables.query<{ rows: number; bytes: number; threads: number }>(
        `SELECT count(*) AS rows, CAST(coalesce(sum(bytes), 0) AS bigint) AS bytes, count(DISTINCT thread) AS threads
           FROM hopgate.responses`,
      );
      return row!;
    };
    /** As if so much time had gone by. */
    const wait = async (ms: number) => {
      const forms = columnForms(tables);
      await tables.query(
        `UPDATE hopgate.response_threads SET used = ${forms.time(`${forms.ms('used')} - ${ms}`)}`,
      );
    };
    const tidy = async () => {
      await store.flush();
      await store.prune(0);
    };
    return { store, tables, has, totals, wait, tidy };
  }

  test.skipIf(!isThere)(
    'idle conversations go as a whole, so no chain within the limits is cut',
    async () => {
      const { store, totals, tidy } = await opened({ rows: 25 });
      let run = 0;
      await fc.assert(
        fc.asyncProperty(fc.array(fc.nat(7), { minLength: 30, maxLength: 60 }), async (steps) => {
          run++;
          const threads = new Map<number, string[]>();
          for (const [i, thread] of steps.entries()) {
            const id = `resp_${run}_${i}`;
            const ids = threads.get(thread) ?? [];
            const previous = ids.at(-1);
            // A client starts a new conversation after the error, and so does this test.
            const alive =
              previous !== undefined && Array.isArray(await conversation(store, previous));
            const next = alive ? [...ids, id] : [id];
            store.put(storedRow(id, alive ? previous : undefined));
            await tidy();
            threads.set(thread, next);
            // A conversation larger than the limit loses its beginning.
            if (next.length <= 25) {
              expect(await conversation(store, id)).toHaveLength(next.length * 2);
            }
          }
          let whole = 0;
          for (const list of threads.values()) {
            const texts = await conversation(store, list.at(-1)!);
            // The whole chain, or a clear answer that names the missing link.
            if (typeof texts === 'string') expect(list).toContain(texts.slice('missing '.length));
            else {
              expect(texts).toHaveLength(list.length * 2);
              whole += list.length;
            }
          }
          expect(whole).toBeLessThanOrEqual(25);
          expect((await totals()).rows).toBeLessThanOrEqual(25);
        }),
        { numRuns: 4 },
      );
    },
  );

  test.skipIf(!isThere)('bytes are limited, and the latest conversation survives', async () => {
    const { store, has, totals, tidy } = await opened({ bytes: 200_000 });
    const big = say('x'.repeat(10_000));
    for (let i = 0; i < 100; i++) store.put(storedRow(`resp_${i}`, undefined, { input: [big] }));
    await tidy();
    expect([await has('resp_99'), await has('resp_0')]).toEqual([true, false]);
    const { rows, bytes } = await totals();
    expect(bytes).toBeLessThanOrEqual(200_000);
    expect(rows).toBeGreaterThan(10);
  });

  test.skipIf(!isThere)('continuing a conversation keeps it; an idle one expires', async () => {
    const { store, has, wait, tidy } = await opened({ age: 60_000 });
    store.put(storedRow('resp_used'));
    store.put(storedRow('resp_idle'));
    await tidy();
    await wait(59_000);
    expect(await conversation(store, 'resp_used')).toHaveLength(2);
    await store.flush();
    await wait(30_000);
    await tidy();
    expect([await has('resp_used'), await has('resp_idle')]).toEqual([true, false]);
  });

  test.skipIf(!isThere)('a response that is replaced many times is counted once', async () => {
    const { store, totals, tidy } = await opened({});
    for (let i = 0; i < 5; i++) {
      store.put(storedRow('resp_same', undefined, { model: `m${i}` }));
      await tidy();
    }
    const reads = await store.fetch({ responses: ['resp_same'] }, '');
    expect(reads.get('resp_same', '')?.model).toBe('m4');
    expect(await totals()).toMatchObject({ rows: 1, threads: 1 });
  });

  test.skipIf(!isThere)('what is gone leaves no item, no conversation and no text', async () => {
    const { store, tables, wait, tidy } = await opened({ rows: 3 });
    for (let i = 0; i < 9; i++) store.put(storedRow(`resp_${i}`));
    await store.flush();
    await wait(120_000);
    await tidy();
    await store.delete('resp_8', '');
    await tidy();
    for (const table of ['responses', 'response_items', 'response_threads']) {
      expect(await tables.query(`SELECT count(*) AS n FROM hopgate.${table}`)).toEqual([{ n: 2 }]);
    }
  });

  describe('one owner’s responses push out no other’s', () => {
    // How many conversations of how many responses, by owner in the order of writing; what is left of each.
    const CASES: readonly [string, number, [string, number, number][], Record<string, number>][] = [
      [
        'a busy one gives way',
        10,
        [
          ['ann', 2, 2],
          ['bob', 30, 1],
        ],
        { ann: 4, bob: 6 },
      ],
      [
        'a busy one that came first',
        10,
        [
          ['bob', 30, 1],
          ['ann', 4, 1],
        ],
        { ann: 4, bob: 6 },
      ],
      [
        'two busy ones share',
        10,
        [
          ['bob', 20, 1],
          ['ann', 1, 2],
          ['eve', 20, 1],
        ],
        { ann: 2, bob: 4, eve: 4 },
      ],
      [
        'one long conversation gives way',
        10,
        [
          ['ann', 5, 1],
          ['bob', 1, 20],
        ],
        { ann: 5, bob: 5 },
      ],
      [
        'there is room for all',
        10,
        [
          ['ann', 5, 1],
          ['bob', 5, 1],
        ],
        { ann: 5, bob: 5 },
      ],
      ['one alone has all of it', 10, [['bob', 20, 1]], { bob: 10 }],
      [
        'more owners than room',
        3,
        [
          ['a', 1, 1],
          ['b', 1, 1],
          ['c', 1, 1],
          ['d', 2, 1],
        ],
        { a: 0, b: 1, c: 1, d: 1 },
      ],
    ];
    for (const kind of ['rows', 'bytes'] as const) {
      for (const [name, room, owners, left] of CASES) {
        test.skipIf(!isThere)(`${kind}: ${name}`, async () => {
          const input = [say('x'.repeat(20_000))];
          const { store, tables, tidy } = await opened(
            kind === 'rows' ? { rows: room } : { bytes: room * 20_500 },
          );
          for (const [owner, conversations, length] of owners) {
            for (let at = 0; at < conversations; at++) {
              for (let link = 0; link < length; link++) {
                const previous = link === 0 ? undefined : `resp_${at}_${link - 1}`;
                store.put(storedRow(`resp_${at}_${link}`, previous, { owner, input }));
              }
            }
          }
          await tidy();
          const rows = await tables.query<{ owner: string; n: number }>(
            'SELECT owner, count(*) AS n FROM hopgate.responses GROUP BY owner',
          );
          const found = Object.fromEntries(rows.map(({ owner, n }) => [owner, n]));
          for (const [owner, count] of Object.entries(left)) {
            expect([owner, found[owner] ?? 0]).toEqual([owner, count]);
          }
        });
      }
    }
  });

  test.skipIf(!isThere)('one process at a time removes, and the next one in its turn', async () => {
    const { store, totals } = await opened({ rows: 1 });
    store.put(storedRow('resp_1'));
    store.put(storedRow('resp_2'));
    await store.flush();
    await store.prune(0);
    expect((await totals()).rows).toBe(1);
    store.put(storedRow('resp_3'));
    await store.flush();
    await store.prune(600_000);
    expect((await totals()).rows).toBe(2);
    await store.prune(0);
    expect((await totals()).rows).toBe(1);
  });
});

test('memory without a file has limits too', async () => {
  const store = new ResponseStore({ limits: { memoryRows: 10 } });
  for (let i = 0; i < 50; i++) store.put(storedRow(`resp_${i}`));
  await store.flush();
  const ids = [49, 40, 39].map((i) => `resp_${i}`);
  const reads = await store.fetch({ responses: ids }, '');
  expect(ids.map((id) => reads.known(id, '') !== undefined)).toEqual([true, true, false]);
  await store.close();
});

test('memory without a file has a limit of bytes, and the last one stays', async () => {
  const store = new ResponseStore({ limits: { memoryBytes: 50_000 } });
  const input = [say('x'.repeat(10_000))];
  for (let i = 0; i < 20; i++) store.put(storedRow(`resp_${i}`, undefined, { input }));
  await store.flush();
  const ids = Array.from({ length: 20 }, (_, i) => `resp_${i}`);
  const reads = await store.fetch({ responses: ids }, '');
  expect(ids.filter((id) => reads.known(id, '') !== undefined)).toEqual(ids.slice(-4));
  store.put(storedRow('resp_large', undefined, { input: [say('x'.repeat(60_000))] }));
  await store.flush();
  expect(
    (await store.fetch({ responses: ['resp_large'] }, '')).known('resp_large', ''),
  ).toBeDefined();
  await store.close();
});
