/** The cost of tokens by the prices of the configuration; without a configured price it is unknown. */

import type { Config } from '../../config/config.ts';
import type { ModelPrice } from '../../config/sections/prices.ts';
import { totalInput, totalOutput, type Usage } from '../../conversation/usage.ts';
import { globTest } from '../../lib/text/glob.ts';

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
  const known = new Map<string, ModelPrice | undefined>();
  const find = (target: string) => {
    const slash = target.indexOf('/');
    const [provider, model] = [target.slice(0, slash), target.slice(slash + 1)];
    if (!Object.hasOwn(providers, provider)) return undefined;
    return providers[provider]!.prices.find((price) => globTest(price.model)(model));
  };
  return {
    any: Object.values(providers).some(({ prices }) => prices.length > 0),
    of(target) {
      if (!known.has(target)) known.set(target, find(target));
      return known.get(target);
    },
  };
}

/** Cost in USD. Prompt tokens that were neither read from nor written to a cache cost `input`. */
export function costOf(tokens: Tokens, price: ModelPrice): number {
  const { input, cached, cacheWrite, cacheWrite1h, output } = tokens;
  const plain = input - cached - cacheWrite;
  const sum =
    plain * price.input +
    cached * price.cached +
    (cacheWrite - cacheWrite1h) * price.cacheWrite +
    cacheWrite1h * price.cacheWrite1h +
    output * price.output;
  return sum / 1e6;
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

/** Cost in USD of tokens at a target; null when the tokens or the price are unknown. */
export function costAt(prices: Prices, target: string, tokens: Tokens | undefined): number | null {
  const price = tokens === undefined ? undefined : prices.of(target);
  return price === undefined ? null : costOf(tokens!, price);
}
