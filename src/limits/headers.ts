/** The headers that say what is left of a key's limits and budgets. */

import type { FlatHeaders } from '../lib/http/headers.ts';
import { usdText } from '../lib/text/usd.ts';
import type { Standing } from './limits.ts';

/**
 * `x-ratelimit-limit-requests`, `-remaining-requests`, `-reset-requests`, the same with `-tokens`, and
 * `x-hopgate-budget-remaining-usd`. With several laws of a unit, the one of which least is left.
 */
export function addLimitHeaders(headers: FlatHeaders, standings: readonly Standing[]): void {
  // With each answer: one pass, and no lists in between.
  let requests: Standing | undefined;
  let tokens: Standing | undefined;
  let budget: Standing | undefined;
  for (const one of standings) {
    const { law } = one;
    if (law.unit === 'nano_usd') budget = tighter(budget, one);
    else if (law.kind !== 'rate') continue;
    else if (law.unit === 'requests') requests = tighter(requests, one);
    else tokens = tighter(tokens, one);
  }
  if (requests !== undefined) {
    headers.set('x-ratelimit-limit-requests', String(requests.law.amount));
    headers.set('x-ratelimit-remaining-requests', String(requests.remaining));
    headers.set('x-ratelimit-reset-requests', durationText(requests.resetMs ?? 0));
  }
  if (tokens !== undefined) {
    headers.set('x-ratelimit-limit-tokens', String(tokens.law.amount));
    headers.set('x-ratelimit-remaining-tokens', String(tokens.remaining));
    headers.set('x-ratelimit-reset-tokens', durationText(tokens.resetMs ?? 0));
  }
  if (budget !== undefined) {
    headers.set('x-hopgate-budget-remaining-usd', usdText(budget.remaining));
  }
}

const tighter = (known: Standing | undefined, one: Standing): Standing =>
  known === undefined || one.remaining < known.remaining ? one : known;

/** As OpenAI writes it: `120ms`, `1.5s`, `6m0s`. */
export function durationText(ms: number): string {
  if (ms < 1000) return `${ms}ms`;
  const seconds = ms / 1000;
  if (seconds < 60) return `${Number(seconds.toFixed(3))}s`;
  const whole = Math.ceil(seconds);
  return `${Math.floor(whole / 60)}m${whole % 60}s`;
}
