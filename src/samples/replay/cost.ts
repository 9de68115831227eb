/** The cost of recorded tokens by the prices that are known now; without a price it is unknown. */

import type { Config } from '../../config/config.ts';
import type { ModelPrice, Rates } from '../../config/sections/prices.ts';
import { totalInput, totalOutput, type Usage } from '../../conversation/usage.ts';
import { usdOf } from '../../lib/text/usd.ts';
import { PicoRates } from '../../money/cost.ts';
import { PriceBook, ratesFor } from '../../money/price.ts';

/** Token counts that have prices; `input` and `output` are totals, the others are parts of them. */
export interface Tokens {
  readonly input: number;
  readonly cached: number;
  readonly cacheWrite: number;
  readonly cacheWrite1h: number;
  readonly output: number;
}

/** Counts of the index, null where the vendor reported none. */
export interface CountedTokens {
  readonly input_tokens: number | null;
  readonly output_tokens: number | null;
  readonly cached_tokens: number | null;
  readonly cache_write_tokens: number | null;
  readonly cache_write_1h_tokens: number | null;
}

export interface Prices {
  /** At least one model has a price. */
  readonly any: boolean;
  /** The price of a `provider/model`; undefined when there is none. */
  of(target: string): ModelPrice | undefined;
}

/** The prices of a configuration by target, cached. */
export function pricesOf({ providers }: Pick<Config, 'providers'>): Prices {
  const book = new PriceBook({ providers });
  return { any: book.any, of: (target) => book.modelPrice(target, Date.now()) };
}

const known = new WeakMap<Rates, PicoRates>();

/** Cost in USD. Prompt tokens that were neither read from nor written to a cache cost `input`. */
export function costOf(tokens: Tokens, rates: Rates): number {
  const { input, cached, cacheWrite, cacheWrite1h, output } = tokens;
  let pico = known.get(rates);
  if (pico === undefined) {
    pico = new PicoRates(rates);
    known.set(rates, pico);
  }
  const plain = Math.max(0, input - cached - cacheWrite);
  return usdOf(pico.costOf({ input: plain, output, cacheRead: cached, cacheWrite, cacheWrite1h }));
}

export const tokensOf = (usage: Usage): Tokens => ({
  input: totalInput(usage),
  cached: usage.cacheRead ?? 0,
  cacheWrite: usage.cacheWrite ?? 0,
  cacheWrite1h: usage.cacheWrite1h ?? 0,
  output: totalOutput(usage),
});

/** Tokens from counts of the index; undefined where the vendor reported none. */
export function tokensCounted(row: CountedTokens): Tokens | undefined {
  if (row.input_tokens === null) return undefined;
  return {
    input: row.input_tokens,
    cached: row.cached_tokens ?? 0,
    cacheWrite: row.cache_write_tokens ?? 0,
    cacheWrite1h: row.cache_write_1h_tokens ?? 0,
    output: row.output_tokens ?? 0,
  };
}

/** Cost in USD of one exchange's tokens at a target; null when the tokens or the price are unknown. */
export function costAt(prices: Prices, target: string, tokens: Tokens | undefined): number | null {
  const price = tokens === undefined ? undefined : prices.of(target);
  return price === undefined ? null : costOf(tokens!, ratesFor(price, tokens!.input));
}
