/** `hopgate usage` by key: names beside ids, from the file of this machine and from the shared database. */

import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Secret } from '../../../src/config/secret.ts';
import { PostgresDatabase } from '../../../src/engines/postgres.ts';
import { SpendJournal } from '../../../src/money/journal.ts';
import { openSharedSpend } from '../../../src/money/shared/open-shared.ts';
import { NO_TOKENS, type SpendRow } from '../../../src/money/spend.ts';
import { HAS_POSTGRES, startPostgres } from '../../support/engines/database-servers.ts';
import { createWorld, type World } from '../world.ts';

let world: World;
beforeEach(() => {
  world = createWorld();
});
afterEach(() => world.remove());

const stateFile = (name: string) => join(world.home, '.hopgate', 'state', name);

const rowOf = (key: string, cost: number): SpendRow => ({
  request: `req_${cost}`,
  time: Date.now(),
  key,
  labels: {},
  session: undefined,
  client: 'test',
  model: 'm',
  target: 'p/m',
  upstreamKey: undefined,
  hop: 1,
  attempt: 1,
  status: 200,
  ended: 'done',
  tokens: { ...NO_TOKENS, input: 10 },
  estimated: false,
  cost,
  price: undefined,
  trace: undefined,
});

const failing = (message: string) => {
  throw new Error(message);
};
const journalOptions = () => ({
  path: stateFile('spend.db'),
  keepDays: () => 0,
  onProblem: failing,
  onRecovered: () => {},
});

/** One row each, the dearest first. */
function spend(journal: SpendJournal, keys: readonly string[]): void {
  keys.forEach((key, i) => {
    const row = rowOf(key, (keys.length - i) * 1e9);
    journal.end(journal.begin({ reservedRow: () => row }), row);
  });
}

function spendOnFile(keys: readonly string[]): void {
  const journal = new SpendJournal(journalOptions());
  spend(journal, keys);
  journal.close();
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
  spendOnFile([web, old, 'ci', 'jwt:alice', '']);
  const ran = await world.run(['usage']);
  expect([ran.code, ran.err]).toEqual([0, '']);
  expect(cells(ran.out, 3)).toEqual([
    ['NAME', 'KEY', 'TRIES'],
    ['web', web, '1'],
    ['old one', old, '1'],
    ['ci', 'ci', '1'],
    ['jwt:alice', 'jwt:alice', '1'],
    ['–', '–', '1'],
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

test('where no key was made at run time, or others are asked for, one column is enough', async () => {
  spendOnFile(['ci']);
  expect(cells((await world.run(['usage'])).out, 2)).toEqual([
    ['NAME', 'TRIES'],
    ['ci', '1'],
  ]);
  const web = await made('web');
  spendOnFile([web]);
  expect(cells((await world.run(['usage', '--by', 'model'])).out, 2)).toEqual([
    ['NAME', 'TRIES'],
    ['m', '2'],
  ]);
});

test('a file of keys that cannot be read costs the report its names alone, and says so', async () => {
  const web = await made('web');
  spendOnFile([web]);
  for (const end of ['', '-wal', '-shm']) writeFileSync(stateFile(`keys.db${end}`), 'no database');
  const ran = await world.run(['usage']);
  expect(cells(ran.out, 2)).toEqual([
    ['NAME', 'TRIES'],
    [web, '1'],
  ]);
  expect([ran.code, ran.err]).toEqual([
    0,
    expect.stringContaining('Keys are shown by their ids alone: '),
  ]);
});

describe.skipIf(!HAS_POSTGRES)('with a shared database', () => {
  test('names come from there', async () => {
    const server = await startPostgres();
    const database = new PostgresDatabase({ url: new Secret(server.url) }, () => {});
    try {
      world.write('.config/hopgate/hopgate.yaml', `engines: { database: "${server.url}" }\n`);
      const web = await made('web');
      const shared = openSharedSpend({
        ...journalOptions(),
        database,
        replica: 'one',
        onRefused: failing,
        onLost: () => {},
      });
      spend(shared.journal, [web, 'ci']);
      await shared.read(() => {});
      await shared.close();
      const ran = await world.run(['usage']);
      expect([ran.code, ran.err]).toEqual([0, '']);
      expect(cells(ran.out, 3)).toEqual([
        ['NAME', 'KEY', 'TRIES'],
        ['web', web, '1'],
        ['ci', 'ci', '1'],
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
