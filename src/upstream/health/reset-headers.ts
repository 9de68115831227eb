/** Reads a vendor's rate limits from its headers: what remains, and when it is whole again. */

import type { ReadonlyHeaders } from '../../lib/http/headers.ts';

/** What a limit counts; `all`: the vendor does not say. */
export type LimitKind = 'requests' | 'tokens' | 'input_tokens' | 'output_tokens' | 'all';

type LimitNames = readonly [kind: LimitKind, limit: string, remaining: string, reset: string];

const openaiLimit = (kind: LimitKind, per = ''): LimitNames => [
  kind,
  `x-ratelimit-limit-${kind}${per}`,
  `x-ratelimit-remaining-${kind}${per}`,
  `x-ratelimit-reset-${kind}${per}`,
];
const anthropicLimit = (kind: LimitKind): LimitNames => {
  const name = `anthropic-ratelimit-${kind.replace('_', '-')}`;
  return [kind, `${name}-limit`, `${name}-remaining`, `${name}-reset`];
};

/** A limit, what is left of it, and when it is whole again: OpenAI and its imitators, Anthropic, IETF draft names. */
const LIMITS: readonly LimitNames[] = [
  openaiLimit('requests'),
  openaiLimit('tokens'),
  // https://inference-docs.cerebras.ai/support/rate-limits
  openaiLimit('requests', '-day'),
  openaiLimit('tokens', '-minute'),
  anthropicLimit('requests'),
  anthropicLimit('tokens'),
  anthropicLimit('input_tokens'),
  anthropicLimit('output_tokens'),
  ['all', 'x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset'],
  ['all', 'ratelimit-limit', 'ratelimit-remaining', 'ratelimit-reset'],
];

/** What a vendor says is left of one of its limits. */
export interface VendorQuota {
  readonly kind: LimitKind;
  /** Undefined: the vendor does not say. */
  readonly limit: number | undefined;
  readonly remaining: number;
  /** When it is whole again, in milliseconds since 1970; undefined: the vendor does not say. */
  readonly resetAt: number | undefined;
}

const AMOUNT = /^\d{1,15}(?:\.\d{1,6})?$/;

/** Every limit of which the headers of an answer say what is left. @param now milliseconds since 1970 */
export function quotasIn(headers: ReadonlyHeaders, now: number): readonly VendorQuota[] {
  const found: VendorQuota[] = [];
  for (const [kind, limit, remaining, reset] of LIMITS) {
    const left = amountOf(headers.get(remaining));
    if (left === undefined) continue;
    const seconds = secondsOf(headers.get(reset) ?? '', now);
    found.push({
      kind,
      limit: amountOf(headers.get(limit)),
      remaining: left,
      resetAt: seconds === undefined ? undefined : Math.round(now + seconds * 1000),
    });
  }
  return found;
}

function amountOf(text: string | null): number | undefined {
  if (text === null) return undefined;
  const value = text.trim();
  return AMOUNT.test(value) ? Number(value) : undefined;
}

/** Seconds until the last of the used-up limits is whole again; undefined where no limit is said to be used up. */
export function resetAfterOf(headers: ReadonlyHeaders, now = Date.now()): number | undefined {
  let longest: number | undefined;
  for (const [, , remaining, reset] of LIMITS) {
    const left = headers.get(remaining);
    if (left === null || Number.parseFloat(left) > 0) continue;
    const seconds = secondsOf(headers.get(reset) ?? '', now);
    if (seconds !== undefined) longest = Math.max(longest ?? 0, seconds);
  }
  return longest;
}

const PART = /([\d.]{1,20})(ms|[hms])/g;
const SECONDS_OF: Readonly<Record<string, number>> = { h: 3600, m: 60, s: 1, ms: 0.001 };
const NUMBER = /^\d{1,16}(?:\.\d{1,9})?$/;
// Above it a number is a moment in seconds since 1970, and above the second bound in milliseconds.
const MOMENT_S = 1e9;
const MOMENT_MS = 1e12;

/** `6m0s`, `20ms`, a number of seconds, a moment as a number or a date; undefined for anything else. */
function secondsOf(text: string, now: number): number | undefined {
  const value = text.trim();
  if (value === '' || value.length > 40) return undefined;
  if (NUMBER.test(value)) {
    const number = Number(value);
    if (number < MOMENT_S) return number;
    return Math.max(0, ((number < MOMENT_MS ? number * 1000 : number) - now) / 1000);
  }
  const parts = [...value.matchAll(PART)];
  if (parts.length > 0 && parts.map(([whole]) => whole).join('') === value) {
    const seconds = parts.reduce(
      (sum, [, count, unit]) => sum + Number(count) * SECONDS_OF[unit!]!,
      0,
    );
    return Number.isNaN(seconds) ? undefined : seconds;
  }
  // Almost any short text is a date to the parser.
  const date = value.includes(':') ? Date.parse(value) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, (date - now) / 1000);
}
