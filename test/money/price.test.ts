/** Money of one try: exact integers, the right price version and tier, and nothing that a table program would run. */

import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { modelPrice, resolvePrices } from '../../src/config/sections/prices.ts';
import { usdText } from '../../src/lib/text/usd.ts';
import { MAX_NANO_USD, PicoRates } from '../../src/money/cost.ts';
import { PriceBook } from '../../src/money/price.ts';
import { cell } from '../../src/money/rows.ts';

const tokens = fc.oneof(fc.nat(2000), fc.integer({ min: 0, max: 10 ** 12 }));
const usd = fc.integer({ min: 0, max: 10 ** 9 }).map((millionths) => millionths / 1e6);

test('the cost is the exact sum, rounded up once, at any size', () => {
  fc.assert(
    fc.property(usd, usd, usd, tokens, tokens, tokens, (input, output, cached, a, b, c) => {
      const rates = new PicoRates(modelPrice('m', { input, output, cached }));
      const pico = (price: number) => BigInt(Math.round(price * 1e6));
      const exact = BigInt(a) * pico(input) + BigInt(b) * pico(output) + BigInt(c) * pico(cached);
      const nano = (exact + 999n) / 1000n;
      const most = BigInt(MAX_NANO_USD);
      const cost = rates.costOf({ input: a, output: b, cacheRead: c });
      expect(BigInt(cost)).toBe(nano > most ? most : nano);
    }),
  );
});

test('USD as text is the nano amount, without an exponent', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }), (nano) => {
      const [whole = '', rest = ''] = usdText(nano).split('.');
      expect(BigInt(whole + rest.padEnd(9, '0'))).toBe(BigInt(nano));
      expect(rest).not.toMatch(/0$/);
    }),
  );
});

test('the last tier that fits counts, and a price from the day on which it begins', () => {
  const prices = resolvePrices({
    m: [
      {
        input: 2,
        output: 12,
        tiers: [
          { above: 200_000, input: 4 },
          { service_tier: 'flex', input: 1 },
        ],
      },
      { input: 3, output: 12, effective_from: '2027-01-01' },
    ],
  });
  const book = new PriceBook({ providers: { up: { prices } } });
  const input = (time: string, count: number, tier?: string) =>
    book.of('up/m').at(Date.parse(time))!.applied(count, { serviceTier: tier }).rates.input / 1e6;
  expect(input('2026-12-31T23:59:59Z', 200_000)).toBe(2);
  expect(input('2026-12-31T23:59:59Z', 200_001)).toBe(4);
  expect(input('2026-12-31T23:59:59Z', 200_001, 'flex')).toBe(1);
  expect(input('2027-01-01T00:00:00Z', 200_001, 'flex')).toBe(3);
  expect(book.of('up/other').at(0)).toBeUndefined();
  expect(book.of('nobody/m').at(0)).toBeUndefined();
});

test('a known model of a known vendor has a price without any in the file', () => {
  const book = new PriceBook({ providers: { up: { vendor: 'anthropic', prices: [] } } });
  expect(book.modelPrice('up/claude-sonnet-4-5', Date.now())).toMatchObject({ input: 3 });
  expect(book.modelPrice('up/made-up-model', Date.now())).toBeUndefined();
});

test.each([
  ['=HYPERLINK("x")', `"'=HYPERLINK(""x"")"`],
  ['-1+1', "'-1+1"],
  ...[...'+@＝＋－＠\t\0'].map((first) => [`${first}1+1`, `'${first}1+1`] as const),
  ...[...'\r\n'].map((first) => [`${first}=1`, `"'${first}=1"`] as const),
  ['a,b', '"a,b"'],
  ['plain', 'plain'],
  [null, ''],
  [-5, '-5'],
])('CSV: %p', (value, text) => {
  expect(cell(value)).toBe(text);
});

test.each([
  // The provider, what was asked, what answered, the price of the input.
  ['router', 'cheap', 'anthropic/claude-opus-4.7', 5],
  ['router', 'openrouter/auto', 'anthropic/claude-opus-4.7', 5],
  ['router', 'cheap', 'cheap', 1],
  ['router', 'cheap', 'cheap-20250929', 1],
  ['router', 'cheap', 'CHEAP', 1],
  ['router', 'cheap', 'cheap-001', 1],
  ['router', 'cheap', 'cheap-preview-05-20', 1],
  ['router', 'cheap:free', 'cheap', 0],
  ['router', 'cheap', 'cheap-4', 1],
  ['router', 'cheap', 'nobody knows it', 1],
  ['router', 'cheap', '', 1],
  ['router', 'unpriced', 'cheap', 1],
  ['maker', 'claude-opus-4-1', 'claude-haiku-4-5-20251001', 1],
  ['maker', 'claude-haiku-4-5', 'claude-haiku-4-5-20251001', 1],
  ['cloud', 'our-deployment', 'gpt-4o-2024-08-06', 7],
  ['cloud', 'another-deployment', 'gpt-4o-2024-08-06', 2.5],
  ['relay', 'a', 'b', 2],
  ['relay', 'a', 'gpt-4o', 1],
] as const)('at %s, %s that answered as %s costs %d', (provider, asked, answered, input) => {
  const book = new PriceBook({
    providers: {
      router: {
        vendor: 'openrouter',
        prices: resolvePrices({
          cheap: { input: 1, output: 1 },
          'cheap:free': { input: 0, output: 0 },
        }),
      },
      maker: { vendor: 'anthropic', prices: [] },
      cloud: {
        vendor: 'azure',
        platform: {},
        prices: resolvePrices({ 'our-deployment': { input: 7, output: 7 } }),
      },
      relay: { prices: resolvePrices({ a: { input: 1, output: 1 }, b: { input: 2, output: 2 } }) },
    },
  });
  for (const _ of ['asked for', 'remembered']) {
    const price = book.ofAnswer(`${provider}/${asked}`, answered).at(Date.now())!;
    expect(price.model.input).toBe(input);
  }
  const endless = book.ofAnswer(`${provider}/${asked}`, 'x'.repeat(10_000));
  expect(endless).toBe(book.of(`${provider}/${asked}`));
});

test('a batch costs what its tier says, else half; searches and requests cost the same', () => {
  const prices = resolvePrices({
    told: { input: 10, output: 20, tiers: [{ service_tier: 'batch', input: 6, output: 7 }] },
    halved: {
      input: 10,
      output: 20,
      search: 10,
      request: 4,
      tiers: [
        { above: 1000, input: 30 },
        { service_tier: 'flex', input: 1 },
      ],
    },
  });
  const book = new PriceBook({ providers: { up: { prices } } });
  const rates = (model: string, input: number) => {
    const { rates, json } = book
      .of(`up/${model}`)
      .at(Date.now())!
      .applied(input, { serviceTier: 'batch' });
    return { ...rates, tier: JSON.parse(json).service_tier };
  };
  expect(rates('told', 1)).toMatchObject({ input: 6e6, output: 7e6, tier: 'batch' });
  const half = { output: 10e6, search: 10e9, request: 4e9, tier: 'batch' };
  expect(rates('halved', 1)).toMatchObject({ input: 5e6, ...half });
  expect(rates('halved', 1001)).toMatchObject({ input: 15e6, ...half });
});

test('an answer that names the model behind a profile of Bedrock has its price', () => {
  const book = new PriceBook({
    providers: { up: { vendor: 'amazon-bedrock', platform: {}, prices: [] } },
  });
  const priceAt = (target: string, model: string) =>
    book.ofAnswer(target, model).at(Date.now())?.model.input;
  const plain = priceAt('up/anthropic.claude-sonnet-4-5-20250929-v1:0', 'x')!;
  const profile = 'up/arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/x1y2';
  expect(priceAt(profile, 'claude-sonnet-4-5-20250929')).toBe(plain);
});

test('an answer has its own price where that of its other spelling is not known', () => {
  const price = modelPrice('gpt-6', { input: 3, output: 4 });
  const book = new PriceBook({ providers: { up: { prices: [price] } } });
  expect(book.ofAnswer('up/openai/gpt-6', 'gpt-6').at(Date.now())?.model.input).toBe(3);
});
