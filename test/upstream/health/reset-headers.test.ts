/** When a limit is reset, in every spelling that vendors have for it. */

import { expect, test } from 'bun:test';
import { resetAfterOf } from '../../../src/upstream/health/reset-headers.ts';

const NOW = Date.parse('2026-11-23T12:00:00Z');
const after = (headers: Record<string, string>) => resetAfterOf(new Headers(headers), NOW);
const requests = (reset: string, remaining = '0') => ({
  'x-ratelimit-remaining-requests': remaining,
  'x-ratelimit-reset-requests': reset,
});

test.each([
  ['1s', 1],
  ['20ms', 0.02],
  ['6m0s', 360],
  ['2m59.56s', 179.56],
  ['1h2m3s', 3723],
  ['17', 17],
  ['0.5', 0.5],
  [String(NOW / 1000 + 40), 40],
  [String(NOW + 40_000), 40],
  ['2026-11-23T12:01:00Z', 60],
  ['Mon, 23 Nov 2026 12:00:30 GMT', 30],
  ['2026-11-23T11:00:00Z', 0],
])('%s is %d seconds', (reset, seconds) => {
  expect(after(requests(reset))).toBeCloseTo(seconds, 6);
});

test.each(['', 'soon', '-3', 'NaN', 'm', '9'.repeat(60), 's1'])('%j says nothing', (reset) => {
  expect(after(requests(reset))).toBeUndefined();
});

test('only a limit that is used up counts, the last of several', () => {
  expect(after(requests('30s', '7'))).toBeUndefined();
  expect(after({ 'x-ratelimit-reset-requests': '30s' })).toBeUndefined();
  expect(
    after({
      ...requests('30s'),
      'x-ratelimit-remaining-tokens': '0',
      'x-ratelimit-reset-tokens': '90s',
      'anthropic-ratelimit-requests-remaining': '5',
      'anthropic-ratelimit-requests-reset': '2026-11-23T13:00:00Z',
    }),
  ).toBe(90);
  expect(
    after({
      'anthropic-ratelimit-input-tokens-remaining': '0',
      'anthropic-ratelimit-input-tokens-reset': '2026-11-23T12:00:42Z',
    }),
  ).toBe(42);
  expect(after({ 'ratelimit-remaining': '0', 'ratelimit-reset': '12' })).toBe(12);
  // Cerebras
  expect(
    after({
      'x-ratelimit-remaining-requests-day': '0',
      'x-ratelimit-reset-requests-day': '33011.38',
      'x-ratelimit-remaining-tokens-minute': '0',
      'x-ratelimit-reset-tokens-minute': '11.38',
    }),
  ).toBe(33_011.38);
});
