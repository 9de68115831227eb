/** What versions before the journal have left, and columns that come after the tables were published. */

import { Database } from 'bun:sqlite';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FileReader, sharedSpendReader } from '../../src/money/reader.ts';
import {
  ADDED,
  type Column,
  type SpendReader,
  type SpendRow,
  spendSchema,
} from '../../src/money/schema.ts';
import { SpendStore } from '../../src/money/spend-store.ts';
import { lapse } from '../../src/money/spend-upkeep.ts';
import type { PostgresDatabase } from '../../src/state/engines/postgres.ts';
import { prepared } from '../../src/state/sql/migrations.ts';
import { openPostgres } from '../../src/state/sql/postgres.ts';
import { openSqlite } from '../../src/state/sql/sqlite.ts';
import {
  type DatabaseServer,
  HAS_POSTGRES,
  newDatabase,
  startPostgres,
} from '../support/engines/database-servers.ts';
import { openedSpend, putRows, spendRow } from '../support/spend-rows.ts';

const LONG = 20_000;
/** As the commit bc1548aa makes it: four rows, and two tries that ran. */
const EARLIER = join(import.meta.dir, 'earlier');
const WRITER = '4194305-written';
const AT = Date.UTC(2026, 10, 20, 12);

let dir: string;
let path: string;
let server: DatabaseServer | undefined;
beforeAll(async () => {
  if (HAS_POSTGRES) server = await startPostgres();
});
afterAll(() => server?.stop());
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'hopgate-earlier-'));
  path = join(dir, 'spend.db');
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

function earlierFiles(): void {
  const db = new Database(path, { create: true });
  db.run(readFileSync(join(EARLIER, 'spend.sql'), 'utf8'));
  db.close();
}

const ALL = [
  ...['req_1', 'req_2', 'req_3', 'req_4'].map((request) => ({
    request,
    cost: 1000,
    ended: 'done',
  })),
  { request: 'req_5', cost: 7000, ended: 'cut' },
  { request: 'req_6', cost: 7000, ended: 'cut' },
];

async function expectAll(reader: SpendReader): Promise<void> {
  const { rows, totals, sessionTotals } = reader.names;
  const found = await reader.all(`SELECT request, cost, ended FROM ${rows} ORDER BY request`);
  expect(found).toEqual(ALL);
  const sums = 'CAST(sum(tries) AS bigint) AS tries, CAST(sum(cost) AS bigint) AS cost';
  for (const span of [0, 1, 2]) {
    const [sum] = await reader.all(`SELECT ${sums} FROM ${totals} WHERE span = ${span}`);
    expect(sum).toEqual({ tries: 6, cost: 18_000 });
  }
  const [ofSession] = await reader.all(`SELECT ${sums} FROM ${sessionTotals}`);
  const [inSession] = await reader.all(
    `SELECT count(*) AS tries, CAST(sum(cost) AS bigint) AS cost FROM ${rows} WHERE session IS NOT NULL`,
  );
  expect(ofSession).toEqual(inSession);
}

test('files of the version before: rows stay, a killed process loses none, and what it reserved is booked once', async () => {
  earlierFiles();
  for (let start = 0; start < 2; start++) {
    const journal = openedSpend(path);
    journal.open();
    await journal.flush();
    await journal.close();
    const reader = new FileReader(path);
    await expectAll(reader);
    reader.close();
  }
});

test('a report of a file of the version before, which no gateway has opened yet, is read from a copy', async () => {
  earlierFiles();
  const before = readFileSync(path);
  const reader = new FileReader(path, { copies: true });
  const [sum] = await reader.all(
    'SELECT sum(tries) AS tries, sum(requests) AS requests FROM totals WHERE span = 0',
  );
  expect(sum).toEqual({ tries: 4, requests: 0 });
  reader.close();
  expect(readFileSync(path)).toEqual(before);
});

/** Options of a table are written in the order in which they were set. */
const sorted = (found: readonly (readonly unknown[])[]) =>
  found.map((rows) =>
    rows.map((row) => {
      const { options, ...more } = row as { readonly options?: readonly string[] | null };
      return { ...more, options: options?.toSorted() };
    }),
  );

describe.skipIf(!HAS_POSTGRES)('in Postgres', () => {
  let database: PostgresDatabase;
  /** As the commit bc1548aa made them, with the functions that it calls. */
  const earlierTables = () => {
    const sql = readFileSync(join(EARLIER, 'spend-postgres.sql'), 'utf8');
    return prepared(database, 'spend', [sql, '', '', ''])();
  };
  beforeEach(async () => {
    ({ database } = await newDatabase(server!));
  });
  afterEach(() => database.close());

  test('a database of the version before has the same tables, columns and indexes as a new one', async () => {
    const tables = () =>
      database.query(
        `SELECT c.relname AS name, c.reloptions AS options, a.attname AS column, a.atttypid::regtype::text AS type,
            a.attnotnull AS filled, a.attidentity AS identity, pg_get_expr(d.adbin, d.adrelid) AS usual
          FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
            LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
          WHERE c.relnamespace = 'hopgate'::regnamespace AND c.relkind IN ('r', 'p') ORDER BY 1, a.attnum`,
        [],
        LONG,
      );
    const indexes = () =>
      database.query(
        "SELECT indexdef FROM pg_indexes WHERE schemaname = 'hopgate' ORDER BY 1",
        [],
        LONG,
      );
    const { postgres } = spendSchema();
    await prepared(database, 'spend', postgres)();
    const anew = [await tables(), await indexes()];
    await database.query('DROP SCHEMA hopgate CASCADE', [], LONG);
    await earlierTables();
    await prepared(database, 'spend', postgres)();
    expect(sorted([await tables(), await indexes()])).toEqual(sorted(anew));
  });

  test('what a file of the version before had not sent is there once, beside what it had', async () => {
    earlierFiles();
    await earlierTables();
    // As that version sends: two rows, and two tries that run.
    const columns = { ...spendRow({ target: 'up/m' }), replica: 'one' };
    const batch = [1, 2].map((n) => {
      const session = n === 1 ? 's' : null;
      const time = AT + n * 1000;
      return {
        ...columns,
        request: `req_${n}`,
        session,
        time,
        at: time,
        writer: WRITER,
        n,
        rev: 3,
      };
    });
    const open = [5, 6].map((n) => ({ ...batch[0], at: AT + n * 1000, n, rev: 0 }));
    const put = 'SELECT hopgate.spend_put($1, $2, $3)';
    await database.query(put, ['machine', 'one', JSON.stringify([...batch, ...open])], LONG);
    for (let start = 0; start < 2; start++) {
      const journal = openedSpend(path, { database, replica: 'one' });
      journal.open();
      await journal.flush();
      await journal.close();
      await expectAll(sharedSpendReader(database));
    }
    const left = await database.query('SELECT 1 FROM hopgate.spend_open', [], LONG);
    expect(left).toEqual([]);
  });

  test('replicas of both versions count in the same totals, and each books what the other has lost', async () => {
    await earlierTables();
    const store = new SpendStore(openPostgres(database, spendSchema()), { machine: 'new' });
    const reserved = spendRow({ request: 'req_open', cost: 900, session: 's' });
    await store.fold('new-1', 0, 1, [{ n: 1, value: { open: reserved } }]);
    // The older one finds a machine that was not heard.
    const [lapsed] = await database.query('SELECT hopgate.spend_lapse(-1000, 500) AS n', [], LONG);
    expect(lapsed).toEqual({ n: 1 });
    const stored = () =>
      database.query('SELECT request, ended, cost FROM hopgate.spend_rows ORDER BY 1', [], LONG);
    expect(await stored()).toEqual([{ request: 'req_open', ended: 'lost', cost: 900 }]);
    const row = { ...reserved, cost: 40 };
    const end = { n: 2, value: { row, begun: [1, reserved.time] } };
    expect(await store.fold('new-1', 1, 2, [end])).toBe(true);
    expect(await stored()).toEqual([{ request: 'req_open', ended: 'done', cost: 40 }]);
    // And the other way round.
    const { time } = reserved;
    const columns = { ...reserved, request: 'req_older', replica: 'two' };
    const batch = [{ ...columns, at: time, writer: 'older-1', n: 1, rev: 0 }];
    const put = 'SELECT hopgate.spend_put($1, $2, $3)';
    await database.query(put, ['older', 'two', JSON.stringify(batch)], LONG);
    expect(await lapse(store, -1000, 500)).toBe(1);
    const ended = [{ ...batch[0], rev: 3, cost: 60 }];
    await database.query(put, ['older', 'two', JSON.stringify(ended)], LONG);
    expect(await stored()).toEqual([
      { request: 'req_older', ended: 'done', cost: 60 },
      { request: 'req_open', ended: 'done', cost: 40 },
    ]);
    const [sum] = await database.query(
      'SELECT sum(tries)::int AS tries, sum(cost)::int AS cost FROM hopgate.spend_totals WHERE span = 0',
      [],
      LONG,
    );
    expect(sum).toEqual({ tries: 2, cost: 100 });
  });
});

describe('a column that is added in its two places', () => {
  const added: readonly Column[] = [
    ...ADDED,
    { name: 'audio', type: 'bigint', isSummed: true },
    { name: 'region', type: 'text' },
  ];
  const rows = [1, 2, 3].map((audio) => {
    return { ...spendRow({ session: 's' }), audio, region: 'eu' } as SpendRow;
  });

  test.each([
    ['the file', false],
    ['Postgres', true],
  ])(
    'is in rows, totals and totals of sessions of %s, also of tables of before',
    async (_, shared) => {
      if (shared && !HAS_POSTGRES) return;
      const opened = shared ? await newDatabase(server!) : undefined;
      const open = (columns?: readonly Column[]) => {
        const schema = spendSchema(columns);
        const tables =
          opened === undefined
            ? openSqlite(schema, { path })
            : openPostgres(opened.database, schema);
        return new SpendStore(tables, { machine: 'one', ...(columns && { added: columns }) });
      };
      const before = open();
      await putRows(before, [spendRow({ session: 's' })]);
      before.close();
      const store = open(added);
      await putRows(store, rows);
      const { names, database } = store;
      const stored = await database.query<{ audio: number | null }>(
        `SELECT audio, region FROM ${names.rows} ORDER BY audio`,
      );
      expect(stored.filter(({ audio }) => audio !== null)).toEqual(
        [1, 2, 3].map((audio) => ({ audio, region: 'eu' })),
      );
      for (const table of [names.totals, names.sessionTotals]) {
        const found = await database.query(`SELECT DISTINCT tries, audio FROM ${table}`);
        expect(found).toEqual([{ tries: 4, audio: 6 }]);
      }
      store.close();
      await opened?.database.close();
    },
  );
});
