/** `hopgate usage` by key: names beside ids, from the file of this machine and from the shared database. */

import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Secret } from '../../../src/config/secret.ts';
import type { SpendJournal } from '../../../src/money/journal.ts';
import type { SpendRow } from '../../../src/money/schema.ts';
import { PostgresDatabase } from '../../../src/state/engines/postgres.ts';
import { HAS_POSTGRES, startPostgres } from '../../support/engines/database-servers.ts';
import { openedSpend, spendRow } from '../../support/spend-rows.ts';
import { createWorld, type World } from '../world.ts';

let world: World;
beforeEach(() => {
  world = createWorld();
});
afterEach(() => world.remove());

const stateFile = (name: string) => join(world.home, '.hopgate', 'state', name);

const rowOf = (key: string, cost: number): SpendRow =>
  spendRow({
    request: `req_${cost}`,
    time: Date.now(),
    key,
    labels: '{}',
    target: 'p/m',
    output: 0,
    cost,
    price: undefined,
  });

/** One row each, the dearest first. */
function spend(journal: SpendJournal, keys: readonly string[]): void {
  keys.forEach((key, i) => {
    const row = rowOf(key, (keys.length - i) * 1e9);
    journal.end(journal.begin({ reservedRow: () => row }), row);
  });
}

async function spendOnFile(keys: readonly string[]): Promise<void> {
  const journal = openedSpend(stateFile('spend.db'));
  spend(journal, keys);
  await journal.close();
}

/** The id of a key that is made now. */
async function made(name: string): Promise<string> {
  const { out } = await world.run(['keys', 'create', name]);
  return /^hk_\w{22}/.exec(out)![0];
}

/** The first columns of each line. */
const cells = (out: string, columns: number) =>
  out
    .trimEnd()
    .split('\n')
    .map((line) => line.split(/ {2,}/).slice(0, columns));

test('a key made at run time has its name beside its id; one of the file has its name for an id', async () => {
  const [web, old] = [await made('web'), await made('old one')];
  await world.run(['keys', 'revoke', old]);
  await spendOnFile([web, old, 'ci', 'jwt:alice', '']);
  const ran = await world.run(['usage']);
  expect([ran.code, ran.err]).toEqual([0, '']);
  expect(cells(ran.out, 3)).toEqual([
    ['NAME', 'KEY', 'REQUESTS'],
    ['web', web, '1'],
    ['old one', old, '1'],
    ['ci', 'ci', '1'],
    ['jwt:alice', 'jwt:alice', '1'],
    ['–', '–', '1'],
    ['TOTAL', '5', '5'],
  ]);
  const stepped = await world.run(['usage', '--step', 'month']);
  expect(cells(stepped.out, 3)[0]).toEqual(['FROM', 'NAME', 'KEY']);
  const json = JSON.parse((await world.run(['usage', '--json'])).out) as {
    data: readonly { name: string; key_name?: string }[];
  };
  // As the admin API has it.
  expect(json.data.map(({ name, key_name }) => [name, key_name])).toEqual([
    [web, 'web'],
    [old, 'old one'],
    ['ci', undefined],
    ['jwt:alice', undefined],
    ['', undefined],
  ]);
});

test('rows of single tries as CSV have the id and the name of their key', async () => {
  const web = await made('web');
  await spendOnFile([web, 'ci']);
  const lines = (await world.run(['usage', '--csv'])).out.trim().split('\r\n');
  const [head, ...rows] = lines.map((line) => line.split(','));
  const at = (name: string) => head!.indexOf(name);
  expect(rows.map((row) => [row[at('key')], row[at('key_name')]]).toSorted()).toEqual(
    [
      [web, 'web'],
      ['ci', 'ci'],
    ].toSorted(),
  );
});

test('where no key was made at run time, or others are asked for, one column is enough', async () => {
  await spendOnFile(['ci']);
  expect(cells((await world.run(['usage'])).out, 2)).toEqual([
    ['NAME', 'REQUESTS'],
    ['ci', '1'],
    ['TOTAL', '1'],
  ]);
  const web = await made('web');
  await spendOnFile([web]);
  expect(cells((await world.run(['usage', '--by', 'model'])).out, 2)).toEqual([
    ['NAME', 'REQUESTS'],
    ['m', '1'],
    ['TOTAL', '1'],
  ]);
});

test('a file of keys that cannot be read costs the report its names alone, and says so', async () => {
  const web = await made('web');
  await spendOnFile([web]);
  for (const end of ['', '-wal', '-shm']) writeFileSync(stateFile(`keys.db${end}`), 'no database');
  const ran = await world.run(['usage']);
  expect(cells(ran.out, 2)).toEqual([
    ['NAME', 'REQUESTS'],
    [web, '1'],
    ['TOTAL', '1'],
  ]);
  expect([ran.code, ran.err]).toEqual([
    0,
    expect.stringContaining('Keys are shown by their ids alone: '),
  ]);
});

/** Two requests of one key: one took three tries at two targets, the other one; beside them another key's. */
const TRIES: readonly Partial<SpendRow>[] = [
  { request: 'req_a', attempt: 1, cost: 0 },
  { request: 'req_a', attempt: 2, cost: 1_500_000, target: 'p/m' },
  { request: 'req_a', attempt: 3, cost: 2_000_000_000, target: 'q/m' },
  { request: 'req_b', cost: 30, labels: '{"team":"x"}' },
  { request: 'req_c', cost: 7, key: 'other-key', input: 123_456 },
];

async function triesOnFile(rows: readonly Partial<SpendRow>[], keepDays = 0): Promise<void> {
  const journal = openedSpend(stateFile('spend.db'), {
    keep: () => ({ rows: keepDays, totals: 0 }),
  });
  for (const more of rows) {
    const row = { ...rowOf('ci', 0), ...more };
    journal.end(journal.begin({ reservedRow: () => row }), row);
  }
  await journal.close();
}

test.each([
  [
    'key',
    [
      ['ci', '2', '4'],
      ['other-key', '1', '1'],
      ['TOTAL', '3', '5'],
    ],
  ],
  [
    'target',
    [
      ['q/m', '1', '1'],
      ['p/m', '3', '4'],
      ['TOTAL', '3', '5'],
    ],
  ],
  [
    'label.team',
    [
      ['–', '2', '4'],
      ['x', '1', '1'],
      ['TOTAL', '3', '5'],
    ],
  ],
])(
  'by %s: requests stand before their tries, and the last line has the sums',
  async (by, lines) => {
    await triesOnFile(TRIES);
    const { out } = await world.run(['usage', '--by', by]);
    expect(cells(out, 3)).toEqual([['NAME', 'REQUESTS', 'ATTEMPTS'], ...lines]);
  },
);

test('numbers stand on the right, under each other', async () => {
  await triesOnFile(TRIES);
  for (const more of [[], ['--step', 'day']]) {
    const lines = (await world.run(['usage', ...more])).out.trimEnd().split('\n');
    for (const title of ['REQUESTS', 'ATTEMPTS', 'INPUT', 'COST USD', 'ESTIMATED']) {
      const end = lines[0]!.indexOf(title) + title.length;
      for (const line of lines.slice(1)) {
        expect([title, /\d/.test(line[end - 1]!), line[end] ?? ' ']).toEqual([title, true, ' ']);
      }
    }
    expect(lines.at(-1)).toStartWith('TOTAL');
    expect(lines.at(-1)).toContain('2.001500037');
  }
});

test('as JSON, requests and the total are there, too', async () => {
  await triesOnFile(TRIES);
  const { out } = await world.run(['usage', '--json']);
  const { total, data } = JSON.parse(out) as { total: object; data: readonly object[] };
  expect(total).toMatchObject({ requests: 3, tries: 5, cost_usd: 2.001500037 });
  expect(data).toMatchObject([
    { requests: 2, tries: 4 },
    { requests: 1, tries: 1 },
  ]);
});

test('a file that its gateway could not fill (a full disk) is no internal error', async () => {
  await triesOnFile(TRIES);
  rmSync(stateFile('spend.db'));
  writeFileSync(stateFile('spend.db'), '');
  const { code, out, err } = await world.run(['usage']);
  expect([code, out]).toEqual([1, '']);
  expect(err).toBe(
    `The spend in ${stateFile('spend.db')} cannot be read: there is nothing in it yet\n`,
  );
});

test('where rows are gone and totals are not, the number of requests is unknown, not smaller', async () => {
  await triesOnFile(TRIES);
  const { Database } = await import('bun:sqlite');
  const db = new Database(stateFile('spend.db'));
  db.run("DELETE FROM spend WHERE request = 'req_b'");
  db.close();
  expect(cells((await world.run(['usage'])).out, 3)).toEqual([
    ['NAME', 'REQUESTS', 'ATTEMPTS'],
    ['ci', '–', '4'],
    ['other-key', '1', '1'],
    ['TOTAL', '–', '5'],
  ]);
});

test('the CSV has the cost in USD and each part of the price in a column, behind the columns of before', async () => {
  const price = JSON.stringify({
    ...{ source: 'config', model: 'm*', above: 1000, input: 1e-6, output: 1000, cached: 0.5 },
    ...{ cache_write: 5e-7, region: 'eu', factor: 1.1, minute: 6, character: 15, input_text: 5 },
  });
  await triesOnFile([
    { cost: 1_500_000, price },
    { cost: 0, price: undefined },
    { cost: undefined, price: undefined },
  ]);
  const { out } = await world.run(['usage', '--csv']);
  const [head = '', ...lines] = out.trimEnd().split('\r\n');
  const titles = head.split(',');
  expect(head).toStartWith('id,time,request,key,');
  // Columns that were added later stand behind these.
  const end = titles.indexOf('requests') + 1;
  expect(titles.slice(titles.indexOf('cost_nano_usd'), end)).toEqual([
    ...['cost_nano_usd', 'price', 'trace_id', 'cost_usd', 'price_source', 'price_model'],
    ...['price_effective_from', 'price_above', 'price_service_tier', 'price_input', 'price_output'],
    ...['price_cached', 'price_cache_write', 'price_cache_write_1h', 'price_reasoning'],
    ...['price_search', 'price_request', 'key_name', 'requests'],
  ]);
  expect(titles.slice(end, end + 8)).toEqual([
    ...['price_region', 'price_factor', 'price_minute', 'price_character', 'price_input_audio'],
    ...['price_input_text', 'price_output_audio', 'price_output_text'],
  ]);
  // The JSON of the price has commas of its own: from the end.
  const last = (line: string) => line.split(',').slice(-8).join();
  expect(lines.map(last)).toEqual([',,,,,,,', ',,,,,,,', 'eu,1.1,6,15,,5,,']);
  const from = titles.indexOf('cost_usd') - titles.length;
  const added = lines.map((line) => line.split(',').slice(from, end - titles.length || undefined));
  const nothing = Array.from({ length: 13 }, () => '');
  expect(added).toEqual([
    ['', ...nothing, 'ci', '1'],
    ['0', ...nothing, 'ci', '1'],
    [
      '0.0015',
      'config',
      'm*',
      '',
      '1000',
      '',
      '0.000001',
      '1000',
      '0.5',
      '0.0000005',
      '',
      '',
      '',
      '',
      'ci',
      '1',
    ],
  ]);
});

describe.skipIf(!HAS_POSTGRES)('with a shared database', () => {
  test('names come from there', async () => {
    const server = await startPostgres();
    const database = new PostgresDatabase({ url: new Secret(server.url) }, () => {});
    try {
      world.write('.config/hopgate/hopgate.yaml', `engines: { database: "${server.url}" }\n`);
      const web = await made('web');
      const shared = openedSpend(stateFile('spend.db'), { database, replica: 'one' });
      spend(shared, [web, 'ci']);
      await shared.close();
      const ran = await world.run(['usage']);
      expect([ran.code, ran.err]).toEqual([0, '']);
      expect(cells(ran.out, 3)).toEqual([
        ['NAME', 'KEY', 'REQUESTS'],
        ['web', web, '1'],
        ['ci', 'ci', '1'],
        ['TOTAL', '2', '2'],
      ]);
    } finally {
      await database.close();
      await server.stop();
    }
  }, 60_000);
});

test.each([
  [['--since', 'yesterdayish'], '--since must be a time'],
  [['--until', 'soon'], '--until must be a time'],
  [['--since', '1h', '--until', '2h'], '--until must be after --since.'],
  [['--by', 'colour'], '--by must be key'],
])('%p is refused in the words of the command line', async (more, words) => {
  const { code, err } = await world.run(['usage', ...more]);
  expect(code).toBe(2);
  expect(err).toContain(words);
});
