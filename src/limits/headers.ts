/** Response headers about the rest of a key's limits and budgets. */

import type { FlatHeaders } from '../lib/http/headers.ts';
import { usdText } from '../lib/text/usd.ts';
import type { LimitUsage } from './limits.ts';

/**
 * `x-ratelimit-limit-requests`, `-remaining-requests`, `-reset-requests`, the same with `-tokens`, and
 * `x-hopgate-budget-remaining-usd`. With several limits of a unit, the one of which least is left.
 */
export function addLimitHeaders(headers: FlatHeaders, usages: readonly LimitUsage[]): void {
  // With each answer: one pass, and no lists in between.
  let requests: LimitUsage | undefined;
  let tokens: LimitUsage | undefined;
  let budget: LimitUsage | undefined;
  for (const one of usages) {
    const { limit } = one;
    if (limit.unit === 'nano_usd') budget = tighter(budget, one);
    else if (limit.kind !== 'rate') continue;
    else if (limit.unit === 'requests') requests = tighter(requests, one);
    else tokens = tighter(tokens, one);
  }
  if (requests !== undefined) addRate(headers, 'requests', requests);
  if (tokens !== undefined) addRate(headers, 'tokens', tokens);
  if (budget !== undefined) {
    headers.set('x-hopgate-budget-remaining-usd', usdText(budget.remaining));
  }
}

function addRate(headers: FlatHeaders, unit: string, { limit, remaining, resetMs }: LimitUsage) {
  headers.set(`x-ratelimit-limit-${unit}`, String(limit.amount));
  headers.set(`x-ratelimit-remaining-${unit}`, String(remaining));
  headers.set(`x-ratelimit-reset-${unit}`, durationText(resetMs ?? 0));
}

const tighter = (known: LimitUsage | undefined, one: LimitUsage): LimitUsage =>
  known === undefined || one.remaining < known.remaining ? one : known;

/** As OpenAI writes it: `120ms`, `1.5s`, `6m0s`. */
export function durationText(ms: number): string {
  if (ms < 1000) return `${ms}ms`;
  const seconds = ms / 1000;
  if (seconds < 60) return `${Number(seconds.toFixed(3))}s`;
  const whole = Math.ceil(seconds);
  return `${Math.floor(whole / 60)}m${whole % 60}s`;
}
