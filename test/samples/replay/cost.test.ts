/** Prices: which one counts, and what tokens cost by it. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { modelPrice } from '../../../src/config/sections/prices.ts';
import { totalInput } from '../../../src/conversation/usage.ts';
import { costAt, costOf, pricesOf } from '../../../src/samples/replay/cost.ts';
import { bad, good } from '../../config/support.ts';

const CONFIG = `
providers:
  glm:
    protocol: openai-chat
    base_url: http://127.0.0.1:1/v1
    prices:
      "*": { input: 9, output: 9 }
      "glm-4.*": { input: 1, output: 4, cached: 0.25 }
      glm-4.7: { input: 2, output: 8, cached: 0.5, cache_write: 2.5 }
  bare:
    protocol: openai-chat
    base_url: http://127.0.0.1:1/v1
`;

describe('the price of a target', () => {
  test('an exact name comes before globs, globs in their order; otherwise there is no price', () => {
    const prices = pricesOf(good(CONFIG));
    expect(prices.any).toBe(true);
    expect(prices.of('glm/glm-4.7')?.input).toBe(2);
    // The file says "*" first, so that is the glob that counts.
    expect(prices.of('glm/glm-4.6')?.input).toBe(9);
    expect(prices.of('bare/glm-4.7')).toBeUndefined();
    expect(prices.of('nobody/x')).toBeUndefined();
    expect(prices.of('')).toBeUndefined();
    expect(prices.of('__proto__/x')).toBeUndefined();
  });

  test('a missing price defaults to the prompt price, and the one-hour cache price to the five-minute price', () => {
    const price = pricesOf(good(CONFIG)).of('glm/glm-4.7')!;
    expect(price).toMatchObject({ cached: 0.5, cacheWrite: 2.5, cacheWrite1h: 2.5 });
    const any = pricesOf(good(CONFIG)).of('glm/x')!;
    expect(any).toMatchObject({ cached: 9, cacheWrite: 9, cacheWrite1h: 9 });
  });

  test('a negative price or an unknown member is a problem of the file', () => {
    for (const wrong of [
      '{ input: -1, output: 1 }',
      '{ input: 1 }',
      '{ input: 1, output: 1, x: 1 }',
    ]) {
      const text = CONFIG.replace('{ input: 9, output: 9 }', wrong);
      expect(bad(text)[0]!.path).toContain('prices');
    }
  });
});

describe('what tokens cost', () => {
  const count = fc.integer({ min: 0, max: 1_000_000 });

  test('with one price for everything, the cost is all tokens times that price', () => {
    fc.assert(
      fc.property(count, count, count, count, count, (input, read, write, output, reasoning) => {
        const usage = { input, output, reasoning, cacheRead: read, cacheWrite: write };
        const price = modelPrice('*', { input: 3, output: 3 });
        const all = totalInput(usage) + output + reasoning;
        expect(costOf(usage, price)).toBeCloseTo((all * 3) / 1e6, 9);
      }),
    );
  });

  test('each kind has its own price, reasoning counts as output, the one-hour cache is separate', () => {
    const price = modelPrice('*', {
      input: 1,
      output: 10,
      cached: 0.1,
      cache_write: 2,
      cache_write_1h: 4,
    });
    const usage = {
      input: 1_000_000,
      cacheRead: 2_000_000,
      cacheWrite: 3_000_000,
      cacheWrite1h: 1_000_000,
      output: 4_000_000,
      reasoning: 1_000_000,
    };
    expect(costOf(usage, price)).toBeCloseTo(1 + 0.2 + 4 + 4 + 50, 9);
  });

  test('the cost is unknown without tokens or without a price', () => {
    const prices = pricesOf({ providers: {} });
    expect(costAt(prices, 'a/b', { input: 1, output: 1 })).toBeNull();
    expect(costAt(prices, 'a/b', undefined)).toBeNull();
  });
});
