/** The journal: what a kill, a full disk, a locked or a damaged file leave of the money that was spent. */

import { Database } from 'bun:sqlite';
import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { OutputEstimate } from '../../src/money/estimate.ts';
import type { SpendJournal } from '../../src/money/journal.ts';
import { fileFolder, openSpend, type SpendOptions } from '../../src/money/open-spend.ts';
import type { SpendRow } from '../../src/money/schema.ts';
import { NO_TOKENS, spendSchema } from '../../src/money/schema.ts';
import { SpendStore } from '../../src/money/spend-store.ts';
import type { SqlDatabase } from '../../src/state/sql/sql.ts';
import { openSqlite } from '../../src/state/sql/sqlite.ts';
import { writesElsewhere } from '../support/other-writer.ts';
import { spendRow } from '../support/spend-rows.ts';
import { until } from '../support/until.ts';

let dir: string;
let path: string;
const open: SpendJournal[] = [];

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'hopgate-journal-'));
  path = join(dir, 'spend.db');
});

afterEach(async () => {
  for (const journal of open.splice(0)) await journal.close();
  rmSync(dir, { recursive: true, force: true });
});

const HOUR = 3_600_000;

const rowOf = spendRow;

function journalAt({ keepDays = 0, ...more }: Partial<SpendOptions> & { keepDays?: number } = {}) {
  const events: string[] = [];
  /** Of its keeper, which runs on this loop. */
  let tables: SqlDatabase | undefined;
  const journal = openSpend({
    path,
    tables: () => (tables = openSqlite(spendSchema(), { path, busyMs: 3 })),
    keep: () => ({ rows: keepDays, totals: 0 }),
    momentMs: 10,
    onProblem: (message) => events.push(`problem: ${message}`),
    onRecovered: (lost) => events.push(`recovered: ${lost}`),
    onRefused: (message) => events.push(`refused: ${message}`),
    onLost: () => {},
    ...more,
  });
  open.push(journal);
  const spend = (row: SpendRow) => journal.end(journal.begin({ reservedRow: () => row }), row);
  return { journal, events, spend, tables: () => tables! };
}

function count(sql: string): Record<string, number> {
  const db = new Database(path, { readonly: true });
  try {
    return db.query<Record<string, number>, []>(sql).get()!;
  } finally {
    db.close();
  }
}

const ROWS =
  'SELECT count(*) AS tries, sum(input) AS input, sum(cost) AS cost, sum(estimated) AS estimated FROM spend';
const TOTALS =
  'SELECT sum(tries) AS tries, sum(input) AS input, sum(cost) AS cost, sum(estimated) AS estimated FROM totals WHERE span = 0';

test('rows are written a moment later, in one piece with their totals', async () => {
  const { spend } = journalAt();
  for (let i = 0; i < 500; i++) spend(rowOf({ session: `s${i % 7}` }));
  await until(() => existsSync(path) && count(ROWS).tries === 500);
  expect(count(TOTALS)).toEqual({ tries: 500, input: 5000, cost: 500_000, estimated: 0 });
  expect(count('SELECT count(*) AS n, sum(tries) AS tries FROM session_totals')).toEqual({
    n: 7,
    tries: 500,
  });
});

test('what a worker spends is taken in although the first process has spent nothing', async () => {
  journalAt({ hasWorkers: true }).journal.open();
  journalAt({ isWorker: true }).spend(rowOf());
  await until(() => existsSync(path) && count(ROWS).tries === 1);
});

test('totals by hour, day and month are the sums of rows, whatever the rows', async () => {
  const row = fc.record({
    time: fc.integer({ min: Date.UTC(2026, 11, 30), max: Date.UTC(2027, 2, 2) }),
    key: fc.constantFrom('a', 'b', 'c\u0000d'),
    model: fc.constantFrom('m', 'n'),
    cost: fc.option(fc.integer({ min: 0, max: 10 ** 15 }), { nil: undefined }),
    estimated: fc.constantFrom(0 as const, 1 as const),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(row, { maxLength: 60 }), async (rows) => {
      rmSync(dir, { recursive: true, force: true });
      dir = mkdtempSync(join(tmpdir(), 'hopgate-journal-'));
      path = join(dir, 'spend.db');
      const { journal, spend } = journalAt();
      for (const one of rows) spend(rowOf(one));
      await journal.flush();
      const columns = 'sum(cost) AS cost, sum(estimated) AS estimated';
      const wanted = count(`SELECT count(*) AS tries, ${columns} FROM spend`);
      for (const span of [0, 1, 2]) {
        const got = count(
          `SELECT sum(tries) AS tries, ${columns} FROM totals WHERE span = ${span}`,
        );
        expect(Number(got.tries)).toBe(Number(wanted.tries));
        expect(Number(got.cost)).toBe(Number(wanted.cost));
        expect(Number(got.estimated)).toBe(Number(wanted.estimated));
      }
      await journal.close();
    }),
    { numRuns: 20 },
  );
});

test('a locked file: rows wait, nothing is lost, and nothing is logged for a short lock', async () => {
  const { journal, spend, events } = journalAt();
  spend(rowOf());
  await journal.flush();
  const other = new Database(path);
  other.run('BEGIN IMMEDIATE');
  for (let i = 0; i < 50; i++) spend(rowOf());
  await journal.flush();
  expect(journal.waiting).toBe(50);
  other.run('COMMIT');
  other.close();
  await until(() => journal.waiting === 0);
  expect(count(ROWS).tries).toBe(51);
  expect(events).toEqual([]);
});

test('a full disk: rows wait, and its start and end are logged once each', async () => {
  const { journal, spend, events, tables } = journalAt();
  spend(rowOf());
  await journal.flush();
  // SQLite fails as on a full disk when the file may not grow.
  await tables().query('PRAGMA max_page_count = 1');
  for (let i = 0; i < 3; i++) {
    for (let n = 0; n < 3000; n++) spend(rowOf({ request: 'x'.repeat(200) }));
    await journal.flush();
  }
  expect(journal.waiting).toBeGreaterThan(0);
  expect(events).toHaveLength(1);
  expect(events[0]).toMatch(/full/);
  await tables().query('PRAGMA max_page_count = 1000000');
  await until(() => journal.waiting === 0);
  expect(events).toEqual([events[0]!, 'recovered: 0']);
  expect(count(ROWS).tries).toBe(9001);
  expect(count(TOTALS)).toEqual(count(ROWS));
});

test('a folder that cannot be written to holds up no request, and rows come later', async () => {
  writeFileSync(join(dir, 'in-the-way'), '');
  path = join(dir, 'in-the-way', 'spend.db');
  const { journal, spend, events } = journalAt();
  spend(rowOf());
  await journal.flush();
  expect(journal.waiting).toBe(1);
  expect(events).toHaveLength(1);
});

test('of more rows than there is room for, the totals stay exact', async () => {
  writeFileSync(fileFolder(path), 'in the way');
  const { journal, spend, events } = journalAt({ journal: { maxWaiting: 100_000 } });
  for (let i = 0; i < 1000; i++) spend(rowOf({ session: `s${i % 3}` }));
  await journal.flush();
  expect(events).toHaveLength(1);
  rmSync(fileFolder(path));
  await until(() => events.length > 1);
  await journal.flush();
  const rows = Number(count(ROWS).tries);
  expect(rows).toBeGreaterThan(100);
  expect(rows).toBeLessThan(1000);
  expect(count(TOTALS)).toMatchObject({ tries: 1000, cost: 1_000_000 });
  expect(count('SELECT sum(tries) AS tries FROM session_totals')).toEqual({ tries: 1000 });
  expect(events[1]).toBe(`recovered: ${1000 - rows}`);
});

test('a damaged file is set aside, and a new one goes on', async () => {
  const first = journalAt();
  for (let i = 0; i < 300; i++) first.spend(rowOf());
  await first.journal.close();
  const page = Buffer.alloc(4096, 0x7f);
  const bytes = Buffer.from(await Bun.file(path).arrayBuffer());
  for (let at = 4096; at + 4096 <= bytes.length; at += 4096) page.copy(bytes, at);
  writeFileSync(path, bytes);
  const { journal, spend } = journalAt();
  spend(rowOf());
  await journal.flush();
  await until(() => journal.waiting === 0);
  expect(readdirSync(dir).some((name) => name.includes('damaged'))).toBe(true);
  expect(count(ROWS).tries).toBe(1);
});

describe('tries that run', () => {
  const reserved = rowOf({ ended: 'cut', estimated: 1, cost: 7777 });

  test('are in the file after a moment, and become their true row', async () => {
    const { journal } = journalAt();
    const place = journal.begin({ reservedRow: () => reserved });
    await until(() => place.n > 0);
    await journal.flush();
    expect(count('SELECT count(*) AS n FROM spend_open').n).toBe(1);
    journal.end(place, rowOf());
    await journal.flush();
    expect(count('SELECT count(*) AS n FROM spend_open').n).toBe(0);
    expect(count(ROWS)).toEqual({ tries: 1, input: 10, cost: 1000, estimated: 0 });
  });

  /** A process with 200 tries that run, killed. */
  async function killedProcess(): Promise<void> {
    const script = join(dir, 'child.ts');
    const source = join(import.meta.dir, '../../src/money/open-spend.ts');
    writeFileSync(
      script,
      `import { openSpend } from ${JSON.stringify(source)};
const nothing = () => {};
const journal = openSpend({ path: ${JSON.stringify(path)}, keep: () => ({ rows: 0, totals: 0 }), momentMs: 10, onProblem: console.error, onRecovered: nothing, onRefused: nothing, onLost: nothing });
const row = ${JSON.stringify(reserved)};
const places = Array.from({ length: 200 }, () => journal.begin({ reservedRow: () => row }));
const timer = setInterval(() => { if (places.every((place) => place.n > 0)) { clearInterval(timer); console.log('ready'); setInterval(() => {}, 1000); } }, 5);
`,
    );
    const child = Bun.spawn([process.execPath, script], { stdout: 'pipe', stderr: 'inherit' });
    const lines = child.stdout.getReader();
    expect(Buffer.from((await lines.read()).value!).toString()).toContain('ready');
    child.kill('SIGKILL');
    await child.exited;
  }

  test('that end with the process are written although another process writes', async () => {
    const { journal, spend, events } = journalAt();
    spend(rowOf());
    await journal.flush();
    const place = journal.begin({ reservedRow: () => reserved });
    const { over } = await writesElsewhere(path, 500);
    journal.end(place, rowOf());
    await journal.close();
    await over;
    expect(count(ROWS)).toEqual({ tries: 2, input: 20, cost: 2000, estimated: 0 });
    expect(count(TOTALS)).toEqual(count(ROWS));
    expect(events).toEqual([]);
  });

  test('of a process that was killed are rows as reserved, once', async () => {
    await killedProcess();
    for (let start = 0; start < 2; start++) {
      const { journal } = journalAt();
      journal.open();
      await until(() => existsSync(path) && count(ROWS).tries === 200);
      await journal.flush();
      expect(count('SELECT count(*) AS n FROM spend_open').n).toBe(0);
      await journal.close();
    }
    expect(count(ROWS)).toEqual({ tries: 200, input: 2000, cost: 200 * 7777, estimated: 200 });
    expect(count(TOTALS)).toEqual(count(ROWS));
  });

  test('of a process that is killed while another one runs are its rows, without a restart', async () => {
    const { journal, spend } = journalAt({ lookEveryMs: 50 });
    journal.open();
    spend(rowOf());
    await journal.flush();
    await killedProcess();
    await until(async () => {
      spend(rowOf({ cost: 0, ...NO_TOKENS }));
      await journal.flush();
      return Number(count(ROWS).estimated) === 200;
    });
    expect(count(ROWS)).toMatchObject({ input: 2010, cost: 1000 + 200 * 7777, estimated: 200 });
    expect(count(TOTALS)).toEqual(count(ROWS));
  });

  test('without a pause between two looks for killed processes a flush ends, and finds them', async () => {
    await killedProcess();
    const { journal, spend } = journalAt({ lookEveryMs: 0 });
    for (let round = 0; round < 3; round++) {
      spend(rowOf());
      await journal.flush();
    }
    expect(count('SELECT count(*) AS n FROM spend_open').n).toBe(0);
    expect(count(ROWS)).toMatchObject({ tries: 203, cost: 3000 + 200 * 7777 });
    await journal.close();
  });

  test('of a process that only seemed dead get their true row all the same', async () => {
    const { journal } = journalAt();
    const place = journal.begin({ reservedRow: () => reserved });
    await until(() => place.n > 0);
    await journal.flush();
    // Another machine's clock, or a suspended process: not seen for an hour.
    const [segment] = readdirSync(fileFolder(path));
    utimesSync(join(fileFolder(path), segment!), new Date(), new Date(Date.now() - HOUR));
    const second = journalAt();
    second.journal.open();
    await until(() => count(ROWS).tries === 1);
    expect(count(ROWS).cost).toBe(7777);
    journal.end(place, rowOf());
    await journal.flush();
    expect(count(ROWS)).toEqual({ tries: 1, input: 10, cost: 1000, estimated: 0 });
    expect(count(TOTALS)).toEqual(count(ROWS));
  });
});

test('the end of a try searches for its earlier rows, and reads no others', async () => {
  const database = openSqlite(spendSchema(), { path });
  const deletes: string[] = [];
  const store = new SpendStore(
    {
      form: 'file',
      now: database.now,
      query: database.query.bind(database),
      snapshot: database.snapshot.bind(database),
      transaction: (work) =>
        database.transaction((inside) =>
          work({
            query: (sql, values) => {
              if (sql.startsWith('DELETE')) deletes.push(sql);
              return inside.query(sql, values);
            },
          }),
        ),
      close: () => database.close(),
    },
    { machine: '' },
  );
  const numbers = Array.from({ length: 8 }, (_, i) => i + 1);
  const row = rowOf();
  const begun = numbers.map((n) => ({ n, value: { open: row } }));
  const ended = numbers.map((n) => ({ n: n + 8, value: { row, begun: [n, row.time] } }));
  await store.fold('one', 0, 8, begun);
  await store.fold('one', 8, 16, ended);
  store.close();
  expect(deletes).toHaveLength(2);
  for (const sql of deletes) {
    const own = sql.replaceAll('hopgate.', '').replaceAll('$', '?');
    const db = new Database(path, { readonly: true });
    const plan = db.query<{ detail: string }, []>(`EXPLAIN QUERY PLAN ${own}`).all();
    db.close();
    expect(plan.map(({ detail }) => detail).join('\n')).not.toMatch(/SCAN spend/);
  }
});

test('rows beyond their days go, their totals stay', async () => {
  const first = journalAt();
  for (let i = 0; i < 450; i++) first.spend(rowOf({ time: Date.now() - 48 * HOUR }));
  first.spend(rowOf({ time: Date.now() }));
  await first.journal.close();
  const { journal } = journalAt({ keepDays: 1 });
  journal.open();
  await until(() => count(ROWS).tries === 1);
  expect(count(TOTALS).tries).toBe(451);
  expect(journal.waiting).toBe(0);
});

test('a start with a clock that is a month ahead of the newest row deletes no rows', async () => {
  const first = journalAt();
  first.spend(rowOf({ time: Date.now() - 31 * 24 * HOUR }));
  await first.journal.close();
  const { journal, spend } = journalAt({ keepDays: 14 });
  journal.open();
  spend(rowOf({ time: Date.now() }));
  await until(() => count(ROWS).tries === 2);
  await journal.close();
  expect(count(ROWS).tries).toBe(2);
});

test('the file is the owner’s alone', async () => {
  const { journal, spend } = journalAt();
  spend(rowOf());
  await journal.flush();
  expect((await Bun.file(path).stat()).mode & 0o077).toBe(0);
  chmodSync(path, 0o600);
});

test('what answers have shown is known after a restart; what was learned since then counts more', async () => {
  const kinds = [
    { target: 'up/m', protocol: 'openai-chat', stream: true },
    { target: 'up/m', protocol: 'openai-chat', stream: false },
    { target: 'up/\u0000', protocol: 'anthropic-messages', stream: true },
  ] as const;
  const estimates = (one: OutputEstimate) =>
    kinds.map((kind) => [one.tokens(kind, 70_000, false), one.reserved(kind, undefined)]);
  const first = new OutputEstimate();
  const before = journalAt({ estimate: first });
  before.spend(rowOf());
  await before.journal.flush();
  for (let i = 0; i < 300; i++) {
    kinds.forEach((kind, at) => {
      first.learn(kind, (50 + i) * (at + 1) * 17, 50 + i);
    });
  }
  expect(estimates(first)).not.toEqual(estimates(new OutputEstimate()));
  await before.journal.close();

  const second = new OutputEstimate();
  second.learn(kinds[0], 100_000, 1000);
  const own = second.tokens(kinds[0], 70_000, false);
  const { journal } = journalAt({ estimate: second });
  journal.open();
  await until(() => estimates(second)[1]![1] === estimates(first)[1]![1]);
  expect(estimates(second).slice(1)).toEqual(estimates(first).slice(1));
  expect(second.tokens(kinds[0], 70_000, false)).toBe(own);
});

test('what is remembered of targets is bounded in the file', async () => {
  for (let start = 0; start < 3; start++) {
    const estimate = new OutputEstimate();
    const { journal, spend } = journalAt({ estimate });
    spend(rowOf());
    for (let i = 0; i < 900; i++) {
      const target = `up/m-${start}-${i}`;
      estimate.learn({ target, protocol: 'openai-chat', stream: true }, 5000, 50);
    }
    await journal.close();
  }
  expect(count('SELECT count(*) AS n FROM learned').n).toBe(2000);
  const estimate = new OutputEstimate();
  const { journal } = journalAt({ estimate });
  journal.open();
  await journal.flush();
  // The newest ones.
  const kind = { target: 'up/m-2-5', protocol: 'openai-chat', stream: true } as const;
  expect(estimate.tokens(kind, 10_000, false)).toBe(100);
});
