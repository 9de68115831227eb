/** The headers that say what is left of a key's limits and budgets. */

import type { FlatHeaders } from '../lib/http/headers.ts';
import { usdText } from '../lib/text/usd.ts';
import type { Standing } from './limits.ts';

/**
 * `x-ratelimit-limit-requests`, `-remaining-requests`, `-reset-requests`, the same with `-tokens`, and
 * `x-hopgate-budget-remaining-usd`. With several laws of a unit, the one of which least is left.
 */
export function addLimitHeaders(headers: FlatHeaders, standings: readonly Standing[]): void {
  for (const unit of ['requests', 'tokens'] as const) {
    const tightest = leastLeft(
      standings.filter(({ law }) => law.kind === 'rate' && law.unit === unit),
    );
    if (tightest === undefined) continue;
    headers.set(`x-ratelimit-limit-${unit}`, String(tightest.law.amount));
    headers.set(`x-ratelimit-remaining-${unit}`, String(tightest.remaining));
    headers.set(`x-ratelimit-reset-${unit}`, durationText(tightest.resetMs ?? 0));
  }
  const budget = leastLeft(standings.filter(({ law }) => law.unit === 'nano_usd'));
  if (budget !== undefined) {
    headers.set('x-hopgate-budget-remaining-usd', usdText(budget.remaining));
  }
}

function leastLeft(standings: readonly Standing[]): Standing | undefined {
  let least: Standing | undefined;
  for (const one of standings) {
    if (least === undefined || one.remaining < least.remaining) least = one;
  }
  return least;
}

/** As OpenAI writes it: `120ms`, `1.5s`, `6m0s`. */
export function durationText(ms: number): string {
  if (ms < 1000) return `${ms}ms`;
  const seconds = ms / 1000;
  if (seconds < 60) return `${Number(seconds.toFixed(3))}s`;
  const whole = Math.ceil(seconds);
  return `${Math.floor(whole / 60)}m${whole % 60}s`;
}
