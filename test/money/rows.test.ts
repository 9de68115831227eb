/** Rows of spend, page by page: those of a session by the ranges beside its totals, in files of the version before too. */

import { afterEach, beforeEach, expect, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import type { ModelPrice, Rates } from '../../src/config/sections/prices.ts';
import type { JsonObject } from '../../src/lib/json/json.ts';
import { PriceVersion } from '../../src/money/price.ts';
import { FileReader } from '../../src/money/reader.ts';
import { usageCsv } from '../../src/money/reports.ts';
import { readRowsQuery, spendCsv, spendPage } from '../../src/money/rows.ts';
import {
  ADDED,
  type Column,
  NO_TOKENS,
  type SpendReader,
  type SpendRow,
  type SpendTokens,
  SUM_COLUMNS,
  spendSchema,
} from '../../src/money/schema.ts';
import { fileStore } from '../../src/money/spend-store.ts';
import { readUsageQuery, usageBy, usageJson } from '../../src/money/usage.ts';
import { putRows, spendRow } from '../support/spend-rows.ts';

const DAY = 86_400_000;
const NOW = Date.UTC(2027, 0, 15, 12);

let dir: string;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'hopgate-rows-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const rowOf = spendRow;

/** The requests of all pages. */
async function requestsOf(reader: SpendReader, parameters: Readonly<Record<string, string>>) {
  const found: string[] = [];
  for (let before: string | undefined; ; ) {
    const all = { ...parameters, ...(before !== undefined && { before }) };
    const query = readRowsQuery((name) => (all as Record<string, string>)[name], NOW);
    const page = await spendPage(reader, query);
    found.push(...(page.data as JsonObject[]).map(({ request }) => String(request)));
    if (page.next === null) return found;
    before = String(page.next);
  }
}

test('a session has exactly its rows, newest first, whatever the clock and the batches', async () => {
  const one = fc.record({
    // A clock that jumps: days are not in order.
    time: fc.integer({ min: NOW - 3 * DAY, max: NOW }),
    session: fc.constantFrom(undefined, 'a', 'b'),
    key: fc.constantFrom('ci', 'ann'),
  });
  let files = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(one, { maxLength: 80 }),
      fc.integer({ min: 1, max: 30 }),
      async (drawn, size) => {
        const rows = drawn.map((row, at) => rowOf({ ...row, request: `req_${at}` }));
        const path = join(dir, `${files++}.db`);
        const file = fileStore(path);
        const store = new FileReader(path);
        try {
          await putRows(file, rows, size);
          const ofSession = rows.filter(({ session }) => session === 'a').toReversed();
          const requests = (some: readonly SpendRow[]) => some.map(({ request }) => request);
          expect(await requestsOf(store, { session: 'a', limit: '3' })).toEqual(
            requests(ofSession),
          );
          const mine = ofSession.filter(({ key }) => key === 'ann');
          expect(await requestsOf(store, { session: 'a', key: 'ann' })).toEqual(requests(mine));
          expect(await requestsOf(store, { limit: '7' })).toEqual(requests(rows.toReversed()));
        } finally {
          store.close();
          file.close();
        }
      },
    ),
    {
      numRuns: 40,
      // Two hours of a day in one batch, between them an hour of the day before.
      examples: [
        [
          [NOW, NOW - 8 * 3_600_000, NOW].map((time) => ({
            time,
            session: 'a' as const,
            key: 'ann' as const,
          })),
          3,
        ],
      ],
    },
  );
});

test('no column of a row is lost on its way into the file, the totals, JSON and CSV', async () => {
  const tokens = Object.fromEntries(
    Object.keys(NO_TOKENS).map((name, at) => [name, 1_000_001 + at]),
  ) as unknown as SpendTokens;
  const texts = {
    request: 'req_own',
    key: 'key-own',
    labels: '{"team":"label-own"}',
    session: 'session-own',
    client: 'client-own',
    model: 'model-own',
    target: 'target/own',
    upstream_key: 'upstream-own',
    ended: 'hedge_lost',
    price: '{"input":"price-own"}',
    trace: 'trace-own',
  } as const;
  const numbers = { hop: 2_000_001, attempt: 2_000_002, status: 2_000_003, cost: 2_000_004 };
  const added = Object.fromEntries(
    ADDED.map(({ name, type }: Column, at) => [
      name,
      type === 'text' ? `${name}-own` : 3_000_001 + at,
    ]),
  );
  const row = rowOf({ ...texts, ...numbers, ...tokens, ...added, estimated: 1 });
  const path = join(dir, 'all.db');
  const file = fileStore(path);
  await putRows(file, [row]);
  file.close();
  const store = new FileReader(path);
  try {
    const all = readRowsQuery(() => undefined, NOW);
    const csv = (await Array.fromAsync(spendCsv(store, all))).join('');
    const named = { ...texts, labels: 'label-own', price: 'price-own' };
    const counts = [
      ...Object.values(tokens),
      ...ADDED.flatMap(({ name, isSummed }: Column) => (isSummed ? [added[name]] : [])),
    ];
    for (const text of [JSON.stringify(await spendPage(store, all)), csv]) {
      for (const value of [named, numbers, tokens, added].flatMap((columns) =>
        Object.values(columns),
      )) {
        expect(text).toContain(String(value));
      }
    }
    for (const by of ['key', 'session']) {
      const query = readUsageQuery((name) => (name === 'by' ? by : undefined), NOW + DAY);
      const groups = await usageBy(store, query);
      const cost = numbers.cost / 1e9;
      for (const text of [JSON.stringify(usageJson(query, groups)), usageCsv(query, groups)]) {
        for (const value of [...counts, cost]) expect(text).toContain(String(value));
      }
      for (const name of SUM_COLUMNS)
        if (name !== 'unpriced') expect(groups[0]!.sums[name]).toBeGreaterThan(0);
    }
  } finally {
    store.close();
  }
});

test('what a price says stands in a column of its own in the CSV, every kind of price', async () => {
  const rates = {
    ...{ input: 1, output: 2, cached: 3, cacheWrite: 4, cacheWrite1h: 5, reasoning: 6 },
    ...{ search: 7, request: 8, minute: 9, character: 10, inputAudio: 11, inputText: 12 },
    ...{ outputAudio: 13, outputText: 14 },
  } satisfies { readonly [name in keyof Rates]-?: number };
  const model: ModelPrice = {
    ...{ model: 'm*', effectiveFrom: NOW, ...rates, regions: { eu: 2 } },
    tiers: [{ above: 1, serviceTier: 'flex', time: undefined, rates }],
    ...{ searchPer: 'search', freeSearches: undefined },
  };
  const served = { serviceTier: 'flex', region: 'eu' };
  const price = new PriceVersion(model, 'config').applied(2, served).json;
  const path = join(dir, 'prices.db');
  const file = fileStore(path);
  await putRows(file, [rowOf({ price })]);
  file.close();
  const store = new FileReader(path);
  try {
    const all = readRowsQuery(() => undefined, NOW);
    const csv = (await Array.fromAsync(spendCsv(store, all))).join('');
    const [titles = [], values = []] = csv.split('\r\n').map((line) => line.split(','));
    // The JSON has commas of its own: from the end.
    const said = Object.fromEntries(
      titles.map((title, at) => [title, values[values.length - titles.length + at]]),
    );
    for (const [name, value] of Object.entries(JSON.parse(price)))
      expect([name, said[`price_${name}`]]).toEqual([name, String(value)]);
    expect(Object.keys(JSON.parse(price))).toHaveLength(Object.keys(rates).length + 7);
  } finally {
    store.close();
  }
});

test('a published migration is never changed, not even by a column that is added to the sums', () => {
  const digest = (sql: unknown) =>
    new Bun.CryptoHasher('sha256').update(String(sql)).digest('hex').slice(0, 16);
  // A new migration adds its own line.
  const { sqlite, postgres } = spendSchema();
  expect(sqlite.version).toBe(7);
  expect(Object.entries(sqlite.upgrades!).map(([from, sql]) => [from, digest(sql)])).toEqual([
    ['4', 'baf490a5e9f2dcfd'],
    ['6', '1c684f63013833ca'],
  ]);
  expect(postgres.map(digest)).toEqual([
    '00b8e5b92cb02547',
    // Versions 2 to 4 are in the first one: nothing.
    'e3b0c44298fc1c14',
    'e3b0c44298fc1c14',
    'e3b0c44298fc1c14',
    '9d2edec4b7ac9ec5',
    '9c02db4f361ce617',
  ]);
});
