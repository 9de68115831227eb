/** What a vendor's headers say is left of its limits, in the forms of each family, and what is no statement at all. */

import { expect, test } from 'bun:test';
import { quotasIn } from '../../../src/upstream/health/reset-headers.ts';

const NOW = Date.parse('2026-06-10T10:00:00Z');
const quotas = (headers: Record<string, string>) => quotasIn(new Headers(headers), NOW);

test('OpenAI: lengths of time', () => {
  expect(
    quotas({
      'x-ratelimit-limit-requests': '5000',
      'x-ratelimit-remaining-requests': '4211',
      'x-ratelimit-reset-requests': '1m30s',
      'x-ratelimit-remaining-tokens': '0',
    }),
  ).toEqual([
    { kind: 'requests', limit: 5000, remaining: 4211, resetAt: NOW + 90_000 },
    { kind: 'tokens', limit: undefined, remaining: 0, resetAt: undefined },
  ]);
});

test('Anthropic: moments', () => {
  expect(
    quotas({
      'anthropic-ratelimit-input-tokens-limit': '40000',
      'anthropic-ratelimit-input-tokens-remaining': '39000',
      'anthropic-ratelimit-input-tokens-reset': '2026-06-10T10:00:20Z',
    }),
  ).toEqual([{ kind: 'input_tokens', limit: 40_000, remaining: 39_000, resetAt: NOW + 20_000 }]);
});

test('names of the IETF draft', () => {
  expect(
    quotas({ 'ratelimit-limit': '100', 'ratelimit-remaining': '7', 'ratelimit-reset': '12' }),
  ).toEqual([{ kind: 'all', limit: 100, remaining: 7, resetAt: NOW + 12_000 }]);
});

test.each(['', '-1', 'many', '1e9', '99999999999999999999', '0x10'])(
  '%p is no number of what is left',
  (remaining) => {
    expect(quotas({ 'x-ratelimit-remaining-requests': remaining })).toEqual([]);
  },
);
