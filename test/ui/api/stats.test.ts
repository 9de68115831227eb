/** Figures of the charts against counting by hand, and the live filter against the index, over random samples. */

import { afterEach, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { modelPrice } from '../../../src/config/sections/prices.ts';
import { WITHOUT_KEY } from '../../../src/keys/principal.ts';
import { pricesOf, rateTable } from '../../../src/samples/replay/cost.ts';
import {
  SAMPLE_SORTS,
  type SamplePercentiles,
  type SampleRow,
  type SampleStore,
} from '../../../src/samples/sample.ts';
import { openIndex } from '../../../src/samples/store/index-store.ts';
import { sortValue } from '../../../src/samples/store/row-order.ts';
import { openSampleStore } from '../../../src/samples/store/sample-store.ts';
import type { StatsFigures, UiRow } from '../../../src/ui/api/api.ts';
import { filterOfQuery, fits, priced, samplesPage } from '../../../src/ui/api/list.ts';
import { statsFor } from '../../../src/ui/api/stats.ts';
import { cpuTime, expectCpuBelow } from '../../support/cpu-time.ts';

// Each case of a property opens an index of its own.
setDefaultTimeout(60_000);

const NOW = 1_800_000_000_000;
const principal = WITHOUT_KEY;
const EVERYBODY = { principal, key: '', owner: undefined };

const price = modelPrice('m*', {
  input: 2,
  output: 10,
  cached: 0.5,
  cache_write: 2.5,
  cache_write_1h: 4,
});
const prices = pricesOf({
  providers: { glm: { prices: [price] }, free: { prices: [] } },
} as unknown as Parameters<typeof pricesOf>[0]);

const tokens = fc.option(fc.integer({ min: 0, max: 100_000 }));
const target = fc.constantFrom('glm/m1', 'glm/m2', 'glm/other', 'free/m1', '');
const notes = fc.constantFrom('', 'content_bridged', 'content_bridged=3,parameter_dropped', 'x=12');

/** Rows as the recorder makes them: parts of the tokens never exceed the total. */
const row: fc.Arbitrary<SampleRow> = fc
  .record({
    number: fc.integer({ min: 0, max: 0x7fffffff }),
    age: fc.integer({ min: -1000, max: 100_000 }),
    model: fc.constantFrom('m1', 'Claude-X', 'a[b]c', ''),
    target,
    status: fc.constantFrom(0, 200, 200, 429, 500, 503),
    error: fc.constantFrom('', '', 'rate_limit', 'upstream'),
    state: fc.constantFrom('done' as const, 'cut' as const),
    notes,
    input: tokens,
    output: tokens,
    parts: fc.tuple(fc.double({ min: 0, max: 0.5 }), fc.double({ min: 0, max: 0.5 })),
    cached: fc.boolean(),
    first: fc.option(fc.integer({ min: 0, max: 5000 })),
    total: fc.option(fc.integer({ min: 0, max: 9000 })),
    session: fc.constantFrom('', 'abc-1', 'abd-2'),
    owner: fc.constantFrom('', 'ann', 'bob'),
    entry: fc.constantFrom('openai-chat' as const, 'anthropic-messages' as const),
  })
  .map((one): SampleRow => {
    const { number, age, input, parts, cached, first, total, output, ...rest } = one;
    const part = (share: number) =>
      input === null || !cached ? null : Math.floor(input * (share || 0));
    const time = NOW - age;
    const written = part(parts[1]);
    return {
      ...rest,
      id: `req_${time}_${number.toString(36)}`,
      time,
      failed: rest.error !== '' || rest.status >= 400,
      stream: false,
      tries: 1,
      hops: 1,
      input_tokens: input,
      output_tokens: input === null ? null : (output ?? 0),
      cached_tokens: part(parts[0]),
      cache_write_tokens: written,
      cache_write_1h_tokens: written === null ? null : Math.floor(written / 2),
      reasoning_tokens: input === null || output === null ? null : Math.floor(output / 3),
      first_byte_ms: first,
      total_ms: total,
      memory_space: '',
      client: number % 3 === 0 ? '' : number % 3 === 1 ? 'Claude Code' : 'Codex',
      bytes: 10,
    } as SampleRow;
  });

const rowsOf = fc.uniqueArray(row, { maxLength: 60, selector: ({ id }) => id });

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

function bookWith(rows: readonly SampleRow[]): SampleStore {
  const folder = mkdtempSync(join(tmpdir(), 'hopgate-stats-'));
  folders.push(folder);
  const index = openIndex(folder);
  index.put(rows);
  index.close();
  return openSampleStore(folder, true);
}

/** Nearest rank by definition: the smallest value with at least p % of the values at or below it. */
function ranked(values: readonly (number | null)[]): SamplePercentiles | null {
  const sorted = values.filter((value) => value !== null).sort((a, b) => a - b);
  if (sorted.length === 0) return null;
  const at = (percent: number) =>
    sorted.find(
      (value) => sorted.filter((one) => one <= value).length * 100 >= percent * sorted.length,
    )!;
  return { p50: at(50), p95: at(95), p99: at(99) };
}

function costByHand(one: SampleRow): number | null {
  if (one.input_tokens === null || !/^glm\/m/.test(one.target)) return null;
  const [cached, written, long] = [
    one.cached_tokens ?? 0,
    one.cache_write_tokens ?? 0,
    one.cache_write_1h_tokens ?? 0,
  ];
  const dollars =
    (one.input_tokens - cached - written) * 2 +
    cached * 0.5 +
    (written - long) * 2.5 +
    long * 4 +
    one.output_tokens! * 10;
  return dollars / 1_000_000;
}

function byHand(rows: readonly SampleRow[]): StatsFigures {
  const total = (value: (one: SampleRow) => number | null) =>
    rows.reduce((sum, one) => sum + (value(one) ?? 0), 0);
  const count = (names: readonly (readonly [string, number])[]) => {
    const counts: Record<string, number> = {};
    for (const [name, times] of names) counts[name] = (counts[name] ?? 0) + times;
    return counts;
  };
  const costs = rows.map(costByHand).filter((cost) => cost !== null);
  const counted = rows.filter((one) => one.input_tokens !== null);
  const reported = rows.filter((one) => one.cached_tokens !== null);
  const cacheable = reported.reduce((sum, one) => sum + one.input_tokens!, 0);
  return {
    requests: rows.length,
    failed: rows.filter(({ failed }) => failed).length,
    errors: count(rows.filter((one) => one.error !== '').map((one) => [one.error, 1])),
    first_byte_ms: ranked(rows.map((one) => one.first_byte_ms)),
    total_ms: ranked(rows.map((one) => one.total_ms)),
    input_tokens: total((one) => one.input_tokens),
    cached_tokens: total((one) => one.cached_tokens),
    cache_write_tokens: total((one) => one.cache_write_tokens),
    output_tokens: total((one) => one.output_tokens),
    reasoning_tokens: total((one) => one.reasoning_tokens),
    cache_hit_rate: cacheable > 0 ? total((one) => one.cached_tokens) / cacheable : null,
    cost: costs.length === 0 ? null : costs.reduce((sum, cost) => sum + cost, 0),
    unpriced: counted.length - costs.length,
    notes: count(
      rows
        .flatMap((one) => one.notes.split(',').filter((note) => note !== ''))
        .map((note) => [note.split('=')[0]!, Number(note.split('=')[1] ?? 1)]),
    ),
  };
}

/** Sums of fractions depend on their order in the last digits. */
const rounded = ({ cost, ...rest }: StatsFigures) => ({
  ...rest,
  cost: cost === null ? null : Number(cost.toFixed(9)),
});

describe('statistics', () => {
  test('statistics equal counting by hand, in every bucket, by target, and for a single key', async () => {
    await fc.assert(
      fc.asyncProperty(
        rowsOf,
        fc.integer({ min: 1, max: 20 }),
        fc.option(fc.constantFrom('ann', 'bob'), { nil: undefined }),
        async (rows, buckets, owner) => {
          const book = bookWith(rows);
          const [since, until] = [NOW - 90_000, NOW];
          const query = { since: String(since), until: String(until), buckets };
          const stats = await statsFor(book, query, { principal, key: owner ?? '', owner }, prices);
          book.close();
          const received = rows.filter(
            (one) =>
              one.time >= since && one.time < until && (owner === undefined || one.owner === owner),
          );
          expect(rounded(stats.all)).toEqual(rounded(byHand(received)));
          expect(stats.buckets.length).toBeLessThanOrEqual(buckets);
          for (const [i, { time, ...figures }] of stats.buckets.entries()) {
            expect(time).toBe(since + i * stats.bucket_ms);
            const own = received.filter(
              (one) => one.time >= time && one.time < time + stats.bucket_ms,
            );
            expect(rounded(figures)).toEqual(rounded(byHand(own)));
          }
          for (const { target: name, ...figures } of stats.targets) {
            const own = received.filter((one) => one.target === name);
            expect(rounded(figures)).toEqual(rounded(byHand(own)));
          }
          expect(stats.targets.map((one) => one.requests)).toEqual(
            stats.targets.map((one) => one.requests).sort((a, b) => b - a),
          );
        },
      ),
      { numRuns: 60 },
    );
  });

  test('ten times as many samples cost about ten times as much work, not a hundred times', async () => {
    const some = fc.sample(row, { numRuns: 3000, seed: 7 });
    /** A summary of that many samples. */
    const work = (count: number) => {
      const rows = Array.from({ length: count }, (_, i) => ({
        ...some[i % some.length]!,
        id: `req_${NOW - i}_${i.toString(36)}`,
        time: NOW - i,
      }));
      const book = bookWith(rows);
      const query = { since: String(NOW - count), until: String(NOW + 1), buckets: 60 };
      return async () => {
        const stats = await statsFor(book, query, EVERYBODY, prices);
        expect(stats.all.requests).toBe(count);
      };
    };
    const few = work(3000);
    await few();
    await expectCpuBelow(40 * (await cpuTime(few)), work(30_000));
  });
});

describe('the filter of the live feed', () => {
  const given = fc.record(
    {
      status: fc.constantFrom('500', '5xx', '429,5xx', 'ok', 'failed', 'cut', ' OK , 2xx'),
      model: fc.constantFrom('m1', 'claude-*', 'glm/*', 'a[b]c', '?1', 'M'),
      note: fc.constantFrom('content_bridged', 'parameter_dropped', 'x', 'content'),
      session: fc.constantFrom('abc', 'ab', 'abc-1', 'b'),
      entry: fc.constantFrom('openai-chat', 'openai-responses'),
      error: fc.constantFrom('upstream', 'rate'),
      since: fc.constantFrom(String(NOW - 50_000)),
      until: fc.constantFrom(String(NOW - 10_000)),
      key: fc.constantFrom('ann', 'bob'),
      client: fc.constantFrom('claude', 'Cod*', 'x'),
      target: fc.constantFrom('glm/*', 'm1', 'free'),
      slower: fc.constantFrom('0', '50ms', '1s', '2 s'),
      cost: fc.constantFrom('0', '$0.0001', '0.05'),
      q: fc.constantFrom('claude', 'bridged', 'req_', 'GLM', 'abd', '%', '_'),
    },
    { requiredKeys: [] },
  );

  test('the filter passes exactly the rows that the list would show', () => {
    fc.assert(
      fc.property(rowsOf, given, fc.constantFrom(undefined, 'ann'), (rows, query, owner) => {
        const book = bookWith(rows);
        const filter = filterOfQuery(query, { principal, key: owner ?? '', owner });
        const rates = rateTable(prices, book.targets());
        const listed = book.list({ ...filter, rates }).map(({ id }) => id);
        book.close();
        const passed = rows.filter((one) => fits(priced(one, prices), filter)).map(({ id }) => id);
        expect(new Set(passed)).toEqual(new Set(listed));
      }),
      { numRuns: 300 },
    );
  });
});

describe('pages of the list', () => {
  test('pages together show every row once, newest first, including rows of the same millisecond', async () => {
    await fc.assert(
      fc.asyncProperty(rowsOf, fc.integer({ min: 1, max: 7 }), async (rows, limit) => {
        // Many rows share a time: the cursor must separate them.
        const crowded = rows.map((one) => ({ ...one, time: NOW - (one.status % 3) }));
        const book = bookWith(crowded);
        const ids: string[] = [];
        let cursor: string | undefined;
        do {
          const query = { limit, ...(cursor && { cursor }) };
          const page = await samplesPage(book, query, EVERYBODY, prices);
          ids.push(...page.rows.map(({ id }) => id));
          cursor = page.cursor;
        } while (cursor !== undefined);
        book.close();
        const expected = crowded
          .toSorted((a, b) => b.time - a.time || (a.id < b.id ? 1 : -1))
          .map(({ id }) => id);
        expect(ids).toEqual(expected);
      }),
      { numRuns: 100 },
    );
  });

  test('every order lists every row once over its pages, by its value, with unknown ones last', async () => {
    const sorts = fc.constantFrom(...SAMPLE_SORTS);
    await fc.assert(
      fc.asyncProperty(rowsOf, sorts, fc.boolean(), async (rows, by, up) => {
        const book = bookWith(rows);
        const listed: UiRow[] = [];
        let cursor: string | undefined;
        do {
          const query = { limit: 4, sort: up ? `${by}:up` : by, ...(cursor && { cursor }) };
          const page = await samplesPage(book, query, EVERYBODY, prices);
          listed.push(...page.rows);
          cursor = page.cursor;
        } while (cursor !== undefined);
        book.close();
        expect(listed.map(({ id }) => id).toSorted()).toEqual(rows.map(({ id }) => id).toSorted());
        const places = listed.map((one) => sortValue(one, { by, up }, one.cost));
        for (const [i, value] of places.entries()) {
          const before = places[i - 1];
          if (before === undefined || before === value) continue;
          expect(before < value).toBe(up);
        }
      }),
      { numRuns: 150 },
    );
  });

  test('a row costs the price of its tokens, and has no cost without a price', () => {
    fc.assert(
      fc.property(row, (one) => {
        const [cost, expected] = [priced(one, prices).cost, costByHand(one)];
        if (expected === null) expect(cost).toBeNull();
        else expect(cost).toBeCloseTo(expected, 12);
      }),
    );
  });
});
