/** Usage from the totals against a brute-force sum of the rows: by each kind of group, whole and in steps, the dearest and all others. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Secret } from '../../src/config/secret.ts';
import type { SpendJournal } from '../../src/money/journal.ts';
import { type SpendSource, usageCsv } from '../../src/money/reports.ts';
import type { SpendRow } from '../../src/money/schema.ts';
import { DATABASE_NAMES, type SpendReader } from '../../src/money/schema.ts';
import { labelsText } from '../../src/money/totals.ts';
import { labelNames, readUsageQuery, usageBy } from '../../src/money/usage.ts';
import { PostgresDatabase } from '../../src/state/engines/postgres.ts';
import {
  HAS_BOUNCER,
  HAS_POSTGRES,
  startBouncer,
  startPostgres,
} from '../support/engines/database-servers.ts';
import { openedSpend, spendRow } from '../support/spend-rows.ts';

const NOW = Date.parse('2026-06-20T12:00:00Z');
const DAY_MS = 86_400_000;

/** Numbers that are the same in every run. */
function* numbers(seed: number): Generator<number, never> {
  for (let last = seed; ; ) {
    last = (last * 48_271) % 2_147_483_647;
    yield last / 2_147_483_647;
  }
}

const random = numbers(11);
const below = (most: number) => Math.floor(random.next().value * most);
const LABELS: readonly Readonly<Record<string, string>>[] = [
  { team: 'web' },
  { team: 'web', env: 'test' },
  { team: 'data' },
  {},
];
const ROWS = Array.from({ length: 3000 }, (_, i): SpendRow => {
  const model = `m${below(9)}`;
  return spendRow({
    request: `req_${i}`,
    time: NOW - below(25 * DAY_MS),
    key: `key-${below(12)}`,
    labels: labelsText(LABELS[below(LABELS.length)]!),
    session: below(5) === 0 ? undefined : `s-${below(300)}`,
    model,
    target: `p/${model}`,
    input: below(5000),
    output: below(500),
    cost: below(10) === 0 ? undefined : below(1e9),
    price: '{"input":1}',
  });
});

const queryOf = (parameters: Readonly<Record<string, string>>) =>
  readUsageQuery((name) => parameters[name], NOW);

const GROUP: Readonly<Record<string, (row: SpendRow) => string | null | undefined>> = {
  key: ({ key }) => key,
  model: ({ model }) => model,
  target: ({ target }) => target,
  session: ({ session }) => session,
  'label.team': ({ labels }) => JSON.parse(labels).team ?? null,
};

/** Cost and tries by group and step, straight from the rows. */
function brute(by: string, from: number, to: number, bucket: (time: number) => number) {
  const sums = new Map<string, [cost: number, tries: number]>();
  for (const row of ROWS) {
    const name = GROUP[by]!(row);
    if (name === undefined || row.time < from || row.time >= to) continue;
    const place = JSON.stringify([name, bucket(row.time)]);
    const sum = sums.get(place) ?? [0, 0];
    sums.set(place, [sum[0] + (row.cost ?? 0), sum[1] + 1]);
  }
  return sums;
}

const dayOf = (time: number) => time - (time % DAY_MS);

interface Opened extends SpendSource {
  readonly journals: readonly SpendJournal[];
  close(): Promise<void>;
}

function openFile(dir: string): Opened {
  const journal = openedSpend(join(dir, 'spend.db'));
  return {
    journals: [journal],
    read: (question) => journal.read(question),
    close: async () => journal.close(),
  };
}

/** Two replicas, which have written half of the rows each; the second one is asked. */
async function openDatabase(dir: string, pooled: boolean): Promise<Opened> {
  const server = await startPostgres();
  const bouncer = pooled ? await startBouncer(server) : undefined;
  const { url } = bouncer ?? server;
  const database = new PostgresDatabase({ url: new Secret(url) }, () => {});
  const replicas = ['one', 'two'].map((replica) =>
    openedSpend(join(dir, replica, 'spend.db'), { database, replica }),
  );
  return {
    journals: replicas,
    async read(question) {
      await replicas[0]!.read(() => {});
      return replicas[1]!.read(question);
    },
    async close() {
      for (const one of replicas) await one.close();
      await database.close();
      await bouncer?.stop();
      await server.stop();
    },
  };
}

const SOURCES: readonly (readonly [string, boolean, (dir: string) => Opened | Promise<Opened>])[] =
  [
    ['the file', true, openFile],
    ['Postgres', HAS_POSTGRES, (dir) => openDatabase(dir, false)],
    ['Postgres behind PgBouncer', HAS_BOUNCER, (dir) => openDatabase(dir, true)],
  ];

for (const [name, here, open] of SOURCES) {
  describe.skipIf(!here)(`usage from ${name}`, () => suite(open));
}

function suite(open: (dir: string) => Opened | Promise<Opened>): void {
  let dir: string;
  let source: Opened;

  beforeAll(async () => {
    dir = mkdtempSync(join(tmpdir(), 'hopgate-usage-'));
    source = await open(dir);
    for (const [at, row] of ROWS.entries()) {
      const journal = source.journals[at % source.journals.length]!;
      journal.end(journal.begin({ reservedRow: () => row }), row);
    }
  });
  afterAll(async () => {
    await source.close();
    rmSync(dir, { recursive: true, force: true });
  });

  const ask = async (parameters: Readonly<Record<string, string>>) => {
    const query = queryOf(parameters);
    return { query, groups: await source.read((reader) => usageBy(reader, query)) };
  };

  describe.each(Object.keys(GROUP))('by %s', (by) => {
    test('the whole time', async () => {
      const { query, groups } = await ask({ by, from: '17d' });
      const expected = brute(by, query.from, query.to, () => 0);
      const found = groups.map(({ name, sums }) => [
        JSON.stringify([name, 0]),
        [sums.cost, sums.tries],
      ]);
      expect(Object.fromEntries(found)).toEqual(Object.fromEntries(expected));
      const costs = groups.map(({ sums }) => sums.cost);
      expect(costs).toEqual(costs.toSorted((a, b) => b - a));
    });

    test('the dearest day by day, and all others together: no sum is lost', async () => {
      const { query, groups } = await ask({ by, from: '17d', step: 'day', top: '3' });
      const whole = (await ask({ by, from: '17d', limit: '3' })).groups.map(({ name }) => name);
      const expected = new Map<string, [number, number]>();
      for (const [place, [cost, tries]] of brute(by, query.from, query.to, dayOf)) {
        const [name, start] = JSON.parse(place) as [string | null, number];
        const own = whole.includes(name) ? place : JSON.stringify(['others', start]);
        const sum = expected.get(own) ?? [0, 0];
        expected.set(own, [sum[0] + cost, sum[1] + tries]);
      }
      const found = groups.map(({ name, start, others, sums }) => [
        JSON.stringify([others ? 'others' : name, start]),
        [sums.cost, sums.tries],
      ]);
      expect(Object.fromEntries(found)).toEqual(Object.fromEntries(expected));
    });
  });

  test('one key alone', async () => {
    const { groups } = await ask({ by: 'session', key: 'key-3' });
    const mine = ROWS.filter(({ key, session }) => key === 'key-3' && session !== undefined);
    expect(groups.reduce((sum, { sums }) => sum + sums.tries, 0)).toBe(mine.length);
  });

  test('the names of labels are told, prices are none', async () => {
    expect(await source.read(labelNames)).toEqual(['env', 'team']);
  });

  test('CSV has a line for each group, with names that no table program runs', async () => {
    const { query, groups } = await ask({ by: 'key', limit: '2' });
    const lines = usageCsv(query, groups, { nameOf: () => '=1+1' }).split('\r\n');
    expect(lines[0]).toStartWith('key,key_name,cost_usd,tries,');
    expect(lines).toHaveLength(4);
    expect(lines[1]).toContain(",'=1+1,");
  });
}

test.each([
  [{ top: '3' }, 'step'],
  [{ top: '0', step: 'day' }, "'top' must be"],
  [{ top: '51', step: 'day' }, "'top' must be"],
])('%p is refused', (parameters, text) => {
  expect(() => queryOf(parameters as unknown as Record<string, string>)).toThrow(text);
});

test.each([undefined, 5])(
  'a database elsewhere is asked once for sessions of many days, top: %p',
  async (top) => {
    const asked: string[] = [];
    const reader: SpendReader = {
      names: DATABASE_NAMES,
      remote: true,
      all(sql) {
        asked.push(sql);
        return [];
      },
    };
    const days = async (count: number) => {
      asked.length = 0;
      const from = count * DAY_MS;
      await usageBy(reader, {
        by: 'session',
        from: 0,
        to: from,
        step: top && 'day',
        key: undefined,
        limit: 10,
        top,
      });
      return asked.length;
    };
    expect(await days(400)).toBe(await days(1));
  },
);
