/** A refusal as the error that a client gets: which limit or budget, what is used, and when it is free again. */

import { GatewayError } from '../conversation/errors.ts';
import { FlatHeaders } from '../lib/http/headers.ts';
import { cutText } from '../lib/text/printable-text.ts';
import { usdText } from '../lib/text/usd.ts';
import { addLimitHeaders } from './headers.ts';
import { type KeyLimits, limitNameOf } from './key-limits.ts';
import type { LimitUsage, Refusal } from './limits.ts';

/** The name of a limit for messages and metrics: as in the configuration, or the name of the budget. */
export function limitName(keyLimits: KeyLimits, { limit }: Pick<Refusal, 'limit'>): string {
  const budget = keyLimits.budgets.find((one) => one.limit.id === limit.id)?.budget;
  if (budget !== undefined) return budget.name;
  if (limit.kind === 'slots' && keyLimits.partial.includes(limit)) return limit.name ?? limit.id;
  return limit.kind === 'window' ? (limit.name ?? limit.id) : limitNameOf(limit);
}

/**
 * The error for a refusal. A limit: 429 with `retry-after`. A budget: kind `budget`, which each codec writes in
 * its protocol (429 `insufficient_quota`, 402 `billing_error`), and which no client should try again by itself.
 * Both have the headers that say what is left.
 */
export function refusalError(keyLimits: KeyLimits, refusal: Refusal): GatewayError {
  const { limit, retryAfterMs, usage, asked } = refusal;
  const name = cutText(limitName(keyLimits, refusal), 200);
  const left = new FlatHeaders();
  addLimitHeaders(left, refusal.usages());
  const headers = left.record();
  if (limit.kind === 'window') return budgetError(name, refusal, headers);
  const seconds =
    retryAfterMs === undefined ? undefined : Math.max(1, Math.ceil(retryAfterMs / 1000));
  const more =
    seconds === undefined
      ? { code: 'rate_limit_exceeded', retryable: false, headers }
      : { code: 'rate_limit_exceeded', retryAfter: seconds, headers };
  return new GatewayError('rate_limit', limitMessage(name, usage, asked, seconds), more);
}

function limitMessage(
  name: string,
  { limit, used }: LimitUsage,
  asked: number,
  seconds: number | undefined,
): string {
  if (limit.kind === 'slots' && limit.name !== undefined) {
    return `The budget "${name}" has room only for what this request is likely to cost, and answers on such terms are running already, ${limit.amount} at most. Try again when one has ended, or set a lower limit of output tokens.`;
  }
  if (limit.kind === 'slots') {
    return `This key has ${used} requests running, and may have ${limit.amount} at a time (limits.${name}). Try again when one has ended.`;
  }
  if (seconds === undefined) {
    return `This request needs about ${asked} ${limit.unit}, more than this key may use in a minute: ${limit.amount} (limits.${name}).`;
  }
  return `This key may use ${limit.amount} ${limit.unit} per minute and has used ${used} (limits.${name}). Try again in ${seconds} s.`;
}

function budgetError(
  name: string,
  { limit, usage, asked }: Refusal,
  headers: Readonly<Record<string, string>>,
): GatewayError {
  const { used, held, resetAt } = usage;
  const spent = `$${usdText(used - held)} of $${usdText(limit.amount)} is spent`;
  const reserved = held === 0 ? '' : `, $${usdText(held)} is reserved by requests that still run`;
  const needs = asked === 0 ? '' : `, and this request may cost $${usdText(asked)}`;
  const reset =
    resetAt === undefined
      ? 'It does not reset.'
      : `It resets at ${new Date(resetAt).toISOString().replace(/\.\d+Z$/, 'Z')}.`;
  const isSpent = used >= limit.amount;
  const what = isSpent ? 'is used up' : 'has too little left for this request';
  // Waiting for the next period is in vain then, and nothing is ever spent.
  const never =
    asked > limit.amount
      ? ' That is more than the whole budget: only a larger budget, fewer answers (n) or a lower limit of output tokens let such a request through.'
      : '';
  const message = `The budget "${name}" ${what}: ${spent}${reserved}${needs}.${never} ${reset}`;
  const code = 'insufficient_quota';
  return new GatewayError('budget', message, { code, retryable: false, headers });
}
