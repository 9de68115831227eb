/** Prices as a table of numbers, by which the index can filter and sort exchanges by their cost. */

import { PicoRates } from '../../money/cost.ts';
import { ratesFor } from '../../money/price.ts';
import type { TargetRates } from '../sample.ts';
import type { Prices } from './cost.ts';

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
