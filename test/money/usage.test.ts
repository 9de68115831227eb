/** Usage from the totals against a brute-force sum of the rows: by each kind of group, whole and in steps, the dearest and all others. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runAtOnce } from '../../src/lib/loop/steps.ts';
import { NO_TOKENS, type SpendRow } from '../../src/money/spend.ts';
import { SpendStore } from '../../src/money/spend-store.ts';
import { labelNames, readUsageQuery, usageBy } from '../../src/money/usage.ts';
import { usageCsv } from '../../src/money/usage-csv.ts';

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
  return {
    request: `req_${i}`,
    time: NOW - below(25 * DAY_MS),
    key: `key-${below(12)}`,
    labels: LABELS[below(LABELS.length)]!,
    session: below(5) === 0 ? undefined : `s-${below(300)}`,
    client: 'test',
    model,
    target: `p/${model}`,
    upstreamKey: undefined,
    hop: 1,
    attempt: 1,
    status: 200,
    ended: 'done',
    tokens: { ...NO_TOKENS, input: below(5000), output: below(500) },
    estimated: false,
    cost: below(10) === 0 ? undefined : below(1e9),
    price: '{"input":1}',
    trace: undefined,
  };
});

let dir: string;
let store: SpendStore;

beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'hopgate-usage-'));
  store = new SpendStore(join(dir, 'spend.db'), 'test');
  const rows = ROWS.map((row) => ({ row, running: 0 }));
  for (let at = 0; at < rows.length; ) at += store.write(rows.slice(at), undefined);
});
afterAll(() => {
  store.close();
  rmSync(dir, { recursive: true, force: true });
});

const ask = (parameters: Readonly<Record<string, string>>) => {
  const query = readUsageQuery((name) => parameters[name], NOW);
  return { query, groups: runAtOnce(usageBy(store, query)) };
};

const GROUP: Readonly<Record<string, (row: SpendRow) => string | null | undefined>> = {
  key: ({ key }) => key,
  model: ({ model }) => model,
  target: ({ target }) => target,
  session: ({ session }) => session,
  'label.team': ({ labels }) => labels.team ?? null,
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

describe.each(Object.keys(GROUP))('by %s', (by) => {
  test('the whole time', () => {
    const { query, groups } = ask({ by, from: '17d' });
    const expected = brute(by, query.from, query.to, () => 0);
    const found = groups.map(({ name, sums }) => [
      JSON.stringify([name, 0]),
      [sums.cost, sums.tries],
    ]);
    expect(Object.fromEntries(found)).toEqual(Object.fromEntries(expected));
    const costs = groups.map(({ sums }) => sums.cost);
    expect(costs).toEqual(costs.toSorted((a, b) => b - a));
  });

  test('the dearest day by day, and all others together: no sum is lost', () => {
    const { query, groups } = ask({ by, from: '17d', step: 'day', top: '3' });
    const whole = ask({ by, from: '17d', limit: '3' }).groups.map(({ name }) => name);
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

test('one key alone', () => {
  const { groups } = ask({ by: 'session', key: 'key-3' });
  const mine = ROWS.filter(({ key, session }) => key === 'key-3' && session !== undefined);
  expect(groups.reduce((sum, { sums }) => sum + sums.tries, 0)).toBe(mine.length);
});

test('the names of labels are told, prices are none', () => {
  expect(labelNames(store)).toEqual(['env', 'team']);
});

test('CSV has a line for each group, with names that no table program runs', () => {
  const { query, groups } = ask({ by: 'key', limit: '2' });
  const lines = usageCsv(query, groups, { nameOf: () => '=1+1' }).split('\r\n');
  expect(lines[0]).toStartWith('key,key_name,cost_usd,tries,');
  expect(lines).toHaveLength(4);
  expect(lines[1]).toContain(",'=1+1,");
});

test.each([
  [{ top: '3' }, 'step'],
  [{ top: '0', step: 'day' }, "'top' must be"],
  [{ top: '51', step: 'day' }, "'top' must be"],
])('%p is refused', (parameters, text) => {
  expect(() => ask(parameters as unknown as Record<string, string>)).toThrow(text);
});
