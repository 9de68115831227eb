/** What a request costs by how it was served: at what time, in which region, with how many free searches; and the most it may cost before. */

import { describe, expect, setSystemTime, test } from 'bun:test';
import { anthropicMessages } from '../../src/codecs/anthropic-messages/index.ts';
import { googleGemini } from '../../src/codecs/google-gemini/index.ts';
import { environmentFrom } from '../../src/config/environment.ts';
import { parseConfig } from '../../src/config/load.ts';
import { resolvePrices } from '../../src/config/sections/prices.ts';
import type { Usage } from '../../src/conversation/usage.ts';
import type { TryAmounts } from '../../src/limits/limits.ts';
import { SpendAccounts } from '../../src/money/accounts.ts';
import { OutputEstimate } from '../../src/money/estimate.ts';
import { FreeSearches } from '../../src/money/free-searches.ts';
import { PriceBook, type PricedProvider } from '../../src/money/price.ts';
import { wholeRow } from '../../src/money/row-parts.ts';
import type { SpendRow } from '../../src/money/schema.ts';

const MILLION = 1e6;
const NOON = Date.parse('2026-11-25T12:00:00Z');

/** The providers of a configuration, as the gateway has them. */
function providersOf(yaml: string): Readonly<Record<string, PricedProvider>> {
  const loaded = parseConfig(`providers: ${yaml}`, 'x.yaml', environmentFrom({}, '/nowhere'));
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  return loaded.config.providers;
}

/** Accounts that keep what was reserved, and the rows. */
function accountsOf(providers: Readonly<Record<string, PricedProvider>>) {
  const rows: SpendRow[] = [];
  const reserved: TryAmounts[] = [];
  const prices = new PriceBook({ providers });
  const freeSearches = new FreeSearches();
  const accounts = new SpendAccounts({
    journal: {
      begin: () => ({}),
      end: (_: object, ...row: Parameters<typeof wholeRow>) => rows.push(wholeRow(...row)),
    } as never,
    prices: () => prices,
    unpriced: () => 'count',
    estimate: new OutputEstimate(),
    freeSearches,
    guard: () =>
      ({
        reserve: (expected: TryAmounts) => {
          reserved.push(expected);
          return { settle: () => {} };
        },
        end: () => {},
      }) as never,
    onCost: () => {},
  });
  /** USD of a try, and the most that was reserved for it. */
  const ask = (target: string, usage: Partial<Usage>, more: object = {}, at = NOON) => {
    const slash = target.indexOf('/');
    const account = accounts.open({ principal: { id: 'k', labels: {} } } as never) as never as {
      beginTry(start: object): { answered(status: number): void; end(result: object): void };
    };
    setSystemTime(NOON);
    const one = account.beginTry({
      target: { provider: target.slice(0, slash), model: target.slice(slash + 1), profile: {} },
      inputTokens: (usage.input ?? 0) + (usage.cacheRead ?? 0) + (usage.cacheWrite ?? 0),
      maxOutputTokens: usage.output ?? 0,
      ...more,
    });
    one.answered(200);
    setSystemTime(at);
    const whole = { input: 0, output: 0, ...usage };
    one.end({ ended: 'done', usage: whole, final: true, content: true, bytes: 0 });
    setSystemTime();
    const [{ cost, price }, { mostNanoUsd = 0 }] = [rows.at(-1)!, reserved.at(-1)!];
    return {
      usd: cost === undefined ? undefined : cost / 1e9,
      most: mostNanoUsd / 1e9,
      price: JSON.parse(price ?? '{}'),
    };
  };
  return { ask, freeSearches, prices };
}

const KNOWN = `{
  deepseek: { keys: k },
  anthropic: { keys: k },
  openai: { keys: k },
  eu: { preset: openai, base_url: "https://eu.api.openai.com/v1", keys: k },
  us: { protocol: openai-chat, base_url: "https://us.api.openai.com/v1", keys: k },
  iowa: { preset: vertex-claude, project: p, location: us-central1, keys: k },
  anywhere: { preset: vertex-claude, project: p, location: global, keys: k },
  europe: { preset: vertex-gemini, project: p, location: eu, keys: k },
  gemini: { keys: k }
}`;

test.each([
  // Target, when it ended, USD for a million tokens of the prompt. The dear hours are 01-04 and 06-10 UTC, Monday to Friday.
  ['deepseek/deepseek-v4-pro', '2026-11-25T01:00:00Z', 1.32],
  ['deepseek/deepseek-v4-pro', '2026-11-25T03:59:59Z', 1.32],
  ['deepseek/deepseek-v4-pro', '2026-11-25T04:00:00Z', 0.66],
  ['deepseek/deepseek-v4-pro', '2026-11-25T09:59:59Z', 1.32],
  ['deepseek/deepseek-v4-pro', '2026-11-25T10:00:00Z', 0.66],
  ['deepseek/deepseek-v4-pro', '2026-11-25T00:59:59Z', 0.66],
  ['deepseek/deepseek-v4-pro', '2026-11-28T02:00:00Z', 0.66],
  ['deepseek/deepseek-v4-flash', '2026-11-29T08:00:00Z', 0.15],
  ['deepseek/deepseek-v4-flash', '2026-11-30T08:00:00Z', 0.3],
])(
  '%s that ends at %s costs %d, and at most what the dear hours cost is reserved',
  (target, at, usd) => {
    const { ask } = accountsOf(providersOf(KNOWN));
    const asked = ask(target, { input: MILLION, output: 0 }, {}, Date.parse(at));
    expect(asked.usd).toBe(usd);
    expect(asked.most).toBe(target.endsWith('pro') ? 1.32 : 0.3);
  },
);

test.each([
  // Target, what the answer says of the region, the factor, and the factor that is reserved.
  ['anthropic/claude-opus-5-5', 'us', 1.1, 1.1],
  ['anthropic/claude-opus-5-5', undefined, 1, 1.1],
  ['anthropic/claude-opus-4-5', 'us', 1, 1],
  ['openai/gpt-6-sol', undefined, 1, 1],
  ['eu/gpt-6-sol', undefined, 1.1, 1.1],
  ['us/gpt-6-sol', undefined, 1.1, 1.1],
  ['eu/gpt-5', undefined, 1, 1],
  ['iowa/claude-opus-4-5', undefined, 1.1, 1.1],
  ['anywhere/claude-opus-4-5', undefined, 1, 1],
  ['europe/gemini-3.5-flash', undefined, 1.1, 1.1],
] as const)(
  '%s, region %p: factor %d of the tokens, %d reserved',
  (target, region, factor, reserved) => {
    const { ask, prices } = accountsOf(providersOf(KNOWN));
    const { input, output, cacheWrite1h, cacheWrite } = prices.modelPrice(target, NOON)!;
    const usage = { input: 1000, output: 1000, ...(region && { region }) };
    const tier = { serviceTier: 'default' };
    const { usd, most, price } = ask(target, usage, tier);
    expect(usd).toBeCloseTo(((input + output) / 1000) * factor, 9);
    expect(most).toBeCloseTo(
      ((Math.max(input, cacheWrite, cacheWrite1h) + output) / 1000) * reserved,
      8,
    );
    expect(price.factor).toBe(factor === 1 ? undefined : factor);
  },
);

describe('the most that is reserved', () => {
  const priced = (more: object) =>
    accountsOf({ up: { prices: resolvePrices({ m: { input: 1, output: 10, ...more } }) } });
  const usage = { input: MILLION, output: MILLION };
  const tiers = [
    { service_tier: 'priority', input: 2, output: 20 },
    { service_tier: 'flex', input: 0.5, output: 5 },
    { service_tier: 'batch', input: 0.25, output: 2.5 },
  ];

  test.each([
    // What the request says, what is reserved.
    [undefined, 22],
    ['auto', 22],
    ['default', 11],
    ['flex', 5.5],
    ['priority', 22],
  ])('tier %p: %d, since a project may have another one', (serviceTier, most) => {
    expect(priced({ tiers }).ask('up/m', usage, { serviceTier }).most).toBe(most);
  });

  test('the book has the tier that was served', () => {
    const { ask } = priced({ tiers });
    const served = (tier: string) =>
      ask('up/m', { ...usage, serviceTier: tier }, { serviceTier: 'priority' }).usd;
    expect([served('priority'), served('default'), served('flex')]).toEqual([22, 11, 5.5]);
  });

  test('a batch: its own tier', () => {
    const { ask } = priced({ tiers });
    expect(ask('up/m', usage, { batch: 1 }).most).toBe(2.75);
  });

  test('the whole prompt may be written to the cache, and all output be reasoning', () => {
    const { ask } = priced({ cache_write: 1.25, reasoning: 12 });
    expect(ask('up/m', usage).most).toBe(13.25);
  });
});

describe('searches that cost nothing', () => {
  const searching = (count: number, more: object = {}) => ({
    hosted: { web_search_requests: count },
    ...more,
  });

  test('up to the quota of a day, shared by the models of a group, and from the next day on again', () => {
    const free = { count: 3, per: 'day', group: 'g', zone: 'America/Los_Angeles' } as const;
    const price = { input: 0, output: 0, search: 1000, free_searches: free };
    const prices = resolvePrices({
      one: price,
      other: price,
      alone: { ...price, free_searches: { count: 1, per: 'month' } },
    });
    const { ask } = accountsOf({ up: { prices }, second: { prices } });
    expect(ask('up/one', searching(2)).usd).toBe(0);
    const { usd, price: told } = ask('up/other', searching(2));
    expect([usd, told.paid_searches]).toEqual([1, 1]);
    expect(ask('up/one', searching(1)).usd).toBe(1);
    // Another account, and a model of its own.
    expect(ask('second/one', searching(3)).usd).toBe(0);
    expect(ask('up/alone', searching(2)).usd).toBe(1);
    // Midnight in Los Angeles is 08:00 UTC.
    const next = (time: string) => Date.parse(`2026-11-26T${time}Z`);
    expect(ask('up/one', searching(1), {}, next('07:59:59')).usd).toBe(1);
    expect(ask('up/one', searching(3), {}, next('08:00:00')).usd).toBe(0);
    expect(ask('up/alone', searching(1), {}, next('08:00:00')).usd).toBe(1);
  });

  test('Gemini: by the search since 3, by the request before', () => {
    const { ask, freeSearches, prices } = accountsOf(providersOf(KNOWN));
    const use = (model: string, searches: number) => {
      const price = prices.of(`gemini/${model}`).at(NOON)!;
      return freeSearches.paid(`gemini/${model}`, price, searches, NOON);
    };
    expect(use('gemini-3.5-flash', 4999)).toBe(0);
    expect(ask('gemini/gemini-3.1-pro-preview', searching(3)).usd).toBeCloseTo(2 * 0.014, 9);
    for (let i = 0; i < 1500; i++) expect(use('gemini-2.5-flash', 4)).toBe(0);
    expect(ask('gemini/gemini-2.5-flash-lite', searching(4)).usd).toBeCloseTo(0.035, 9);
  });

  test('what the book has already is used: after a restart, and what other replicas have asked for', async () => {
    const { freeSearches, prices } = accountsOf(providersOf(KNOWN));
    const price = prices.of('gemini/gemini-3.5-flash').at(NOON)!;
    const read = async () => [
      { name: 'gemini/gemini-3.5-flash', sums: { searches: 4000, tries: 100 } },
      { name: 'gemini/gemini-3.1-pro-preview', sums: { searches: 998, tries: 5 } },
      { name: 'anthropic/claude-opus-5-5', sums: { searches: 50_000, tries: 5 } },
    ];
    await freeSearches.read({ read } as never, prices, NOON);
    expect(freeSearches.paid('gemini/gemini-3.5-flash', price, 3, NOON)).toBe(1);
  });
});

test('the region is what the answer of Claude says, and Google bills different queries', () => {
  const message = (inference_geo: string) => ({
    type: 'message',
    role: 'assistant',
    content: [],
    stop_reason: 'end_turn',
    usage: { input_tokens: 1, output_tokens: 1, inference_geo },
  });
  const regions = ['us', 'global', 'not_available'].map(
    (geo) => anthropicMessages.digestReply(message(geo)).usage?.region,
  );
  expect(regions).toEqual(['us', undefined, undefined]);
  const searched = (webSearchQueries: readonly string[]) =>
    googleGemini.digestReply({
      candidates: [
        {
          content: { parts: [{ text: 'a' }] },
          finishReason: 'STOP',
          groundingMetadata: { webSearchQueries },
        },
      ],
      usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1 },
    }).usage?.hosted;
  // https://github.com/BerriAI/litellm/issues/36377
  expect(searched(['bitcoin', 'ether', 'bitcoin', ''])).toEqual({ web_search_requests: 2 });
});

test('a service tier, a time and a region of the file of prices are checked', () => {
  const problems = (price: string) => {
    const yaml = `providers: { up: { base_url: "http://x", protocol: openai-chat, prices: { m: ${price} } } }`;
    const loaded = parseConfig(yaml, 'x.yaml', environmentFrom({}, '/nowhere'));
    return loaded.ok ? [] : loaded.problems.map(({ path }) => path);
  };
  const price = (more: string) => `{ input: 1, output: 1, ${more} }`;
  const at = 'providers.up.prices.m';
  expect(problems(price('tiers: [{ time: "25:00-26:00" }]'))).toEqual([`${at}.tiers[0].time`]);
  expect(problems(price('regions: { eu: -1 }'))).toEqual([`${at}.regions.eu`]);
  expect(problems(price('free_searches: { count: 5, per: hour }'))).toEqual([
    `${at}.free_searches.per`,
  ]);
  expect(
    problems(
      price(
        'tiers: [{ time: [{ hours: "22:00-06:00", days: [mon, tue], zone: Asia/Shanghai }], input: 0.5 }], regions: { eu: 1.1 }, search_per: request',
      ),
    ),
  ).toEqual([]);
});
