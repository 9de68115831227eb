/** The cost of recorded tokens by the prices that are known now; without a price it is unknown. */

import type { Config } from '../../config/config.ts';
import type { ModelPrice, Rates } from '../../config/sections/prices.ts';
import { totalInput, totalOutput, type Usage } from '../../conversation/usage.ts';
import { usdOf } from '../../lib/text/usd.ts';
import { PicoRates } from '../../money/cost.ts';
import { PriceBook, ratesFor } from '../../money/price.ts';
import type { TargetRates } from '../sample.ts';

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

/** Cost in USD by list prices: reasoning costs what output does, and searches are not counted. */
export function costOf(usage: Usage, rates: Rates): number {
  let pico = known.get(rates);
  if (pico === undefined) {
    pico = new PicoRates(rates);
    known.set(rates, pico);
  }
  return usdOf(pico.costOf({ ...usage, output: totalOutput(usage), reasoning: 0 }, 0));
}

/** Usage from counts of the index; undefined where the vendor reported none. */
export function usageCounted(row: CountedTokens): Usage | undefined {
  if (row.input_tokens === null) return undefined;
  const cacheRead = row.cached_tokens ?? 0;
  const cacheWrite = row.cache_write_tokens ?? 0;
  return {
    input: Math.max(0, row.input_tokens - cacheRead - cacheWrite),
    cacheRead,
    cacheWrite,
    cacheWrite1h: row.cache_write_1h_tokens ?? 0,
    output: row.output_tokens ?? 0,
  };
}

/** Cost in USD of one exchange's tokens at a target; null when the tokens or the price are unknown. */
export function costAt(prices: Prices, target: string, usage: Usage | undefined): number | null {
  const price = usage && prices.of(target);
  return price === undefined ? null : costOf(usage!, ratesFor(price, totalInput(usage!)));
}

/** The rates of these targets, one line for each range of prompt tokens; targets without a price have none. */
export function rateTable(prices: Prices, targets: readonly string[]): readonly TargetRates[] {
  return targets.flatMap((target) => {
    const price = prices.of(target);
    if (price === undefined) return [];
    const bounds = price.tiers.flatMap(({ above }) => (above === undefined ? [] : [above]));
    const steps = [...new Set([-1, ...bounds])].sort((a, b) => a - b);
    return steps.map((above, i) => {
      const rates = new PicoRates(ratesFor(price, above + 1));
      return {
        target,
        above,
        up_to: steps[i + 1] ?? Number.MAX_SAFE_INTEGER,
        input: rates.input,
        cached: rates.cached,
        write: rates.cacheWrite,
        write_1h: rates.cacheWrite1h,
        output: rates.output,
        request: rates.request,
      };
    });
  });
}
