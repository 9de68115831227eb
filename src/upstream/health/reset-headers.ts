/** When a vendor's rate limit is reset, by the headers that it sends where it gives no `Retry-After`. */

import type { ReadonlyHeaders } from '../../lib/http/headers.ts';

/** What is left of a limit, and when it is whole again: OpenAI and its imitators, Anthropic, IETF draft names. */
const LIMITS: readonly (readonly [remaining: string, reset: string])[] = [
  ['x-ratelimit-remaining-requests', 'x-ratelimit-reset-requests'],
  ['x-ratelimit-remaining-tokens', 'x-ratelimit-reset-tokens'],
  ['anthropic-ratelimit-requests-remaining', 'anthropic-ratelimit-requests-reset'],
  ['anthropic-ratelimit-tokens-remaining', 'anthropic-ratelimit-tokens-reset'],
  ['anthropic-ratelimit-input-tokens-remaining', 'anthropic-ratelimit-input-tokens-reset'],
  ['anthropic-ratelimit-output-tokens-remaining', 'anthropic-ratelimit-output-tokens-reset'],
  ['x-ratelimit-remaining', 'x-ratelimit-reset'],
  ['ratelimit-remaining', 'ratelimit-reset'],
];

/** Seconds until the last of the used-up limits is whole again; undefined where no limit is said to be used up. */
export function resetAfterOf(headers: ReadonlyHeaders, now = Date.now()): number | undefined {
  let longest: number | undefined;
  for (const [remaining, reset] of LIMITS) {
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
