/** An exchange under the limits of its key, and what the official SDKs make of a refusal in each protocol. */

import { describe, expect, test } from 'bun:test';
import Anthropic from '@anthropic-ai/sdk';
import { ApiError, GoogleGenAI } from '@google/genai';
import OpenAI from 'openai';
import { anthropicMessages } from '../../src/codecs/anthropic-messages/index.ts';
import type { Codec } from '../../src/codecs/codec.ts';
import { googleGemini } from '../../src/codecs/google-gemini/index.ts';
import { openaiChat } from '../../src/codecs/openai-chat/index.ts';
import { openaiResponses } from '../../src/codecs/openai-responses/index.ts';
import { GatewayError } from '../../src/conversation/errors.ts';
import { errorResponse } from '../../src/gateway/error-response.ts';
import { type Budget, type Principal, WITHOUT_KEY } from '../../src/keys/principal.ts';
import { FlatHeaders } from '../../src/lib/http/headers.ts';
import { durationText, type LimitGuard, openGuard } from '../../src/limits/guard.ts';
import { keyLimitsOf } from '../../src/limits/key-limits.ts';
import { budgetsReport, usageReport } from '../../src/limits/usage-report.ts';
import { remedyForError } from '../../src/upstream/classify.ts';
import { maskedError } from '../../src/upstream/vendor-error.ts';
import { LocalLimits } from '../support/local-limits.ts';

const NOW = Date.parse('2026-06-10T10:00:00Z');

const budget = (more: Partial<Budget> = {}): Budget => ({
  id: 'budget:web',
  name: 'web-team',
  nanoUsd: 10e9,
  per: 'day',
  timeZone: 'UTC',
  warn: [0.5],
  over: { action: 'refuse' },
  ...more,
});
const key = (more: Partial<Principal>): Principal => ({
  ...WITHOUT_KEY,
  id: 'ci',
  name: 'ci',
  ...more,
});

function gate() {
  const clock = { now: NOW, wall: () => clock.now, monotonic: () => clock.now };
  const limits = new LocalLimits({ clock });
  const refusals: string[] = [];
  const options = {
    limits,
    onRefused: ({ name }: Principal, limit: string) => refusals.push(`${name} ${limit}`),
  };
  return {
    clock,
    limits,
    refusals,
    open: (principal: Principal) => openGuard(options, principal) as LimitGuard | undefined,
  };
}

function errorOf(work: () => unknown): GatewayError {
  try {
    work();
  } catch (thrown) {
    if (thrown instanceof GatewayError) return thrown;
    throw thrown;
  }
  throw new Error('nothing was refused');
}

const headersOf = (guard: LimitGuard) => {
  const headers = FlatHeaders.of({});
  guard.addHeaders(headers);
  return Object.fromEntries([...headers]);
};

describe('an exchange under limits', () => {
  test('nothing to keep: no guard', () => {
    expect(gate().open(WITHOUT_KEY)).toBeUndefined();
    expect(gate().open(key({}))).toBeUndefined();
  });

  test('the limits of a principal are made once, and a shared budget is one limit', () => {
    const shared = budget();
    const one = key({ limits: { requestsPerMinute: 5 }, budgets: [shared] });
    const two = key({ id: 'b', budgets: [shared] });
    expect(keyLimitsOf(one)).toBe(keyLimitsOf(one));
    expect(keyLimitsOf(one).budgets[0]!.limit).toBe(keyLimitsOf(two).budgets[0]!.limit);
  });

  test('a try beside another is not made from the last tenth of a budget, unless it only warns', () => {
    for (const action of ['refuse', 'warn'] as const) {
      const { open } = gate();
      const guard = open(key({ budgets: [budget({ over: { action } })] }))!;
      const amount = budget().nanoUsd;
      guard.reserve({ tokens: 1, nanoUsd: Math.floor(amount * 0.9) });
      expect(guard.scarce).toBe(false);
      guard.reserve({ tokens: 1, nanoUsd: Math.ceil(amount * 0.01) });
      expect(guard.scarce).toBe(action === 'refuse');
    }
    expect(gate().open(key({ limits: { concurrent: 1 } }))!.scarce).toBe(false);
  });

  test('requests, tokens and streams: each refusal names its limit and says when', () => {
    const { open, refusals, clock } = gate();
    const principal = key({
      limits: { requestsPerMinute: 2, tokensPerMinute: 1000, concurrent: 1 },
    });
    const first = open(principal)!;
    const slots = errorOf(() => open(principal));
    expect(slots).toMatchObject({ kind: 'rate_limit', status: 429, retryAfter: 1 });
    expect(slots.message).toContain('limits.concurrent');
    const hold = first.reserve({ tokens: 800, nanoUsd: undefined });
    const tokens = errorOf(() => first.reserve({ tokens: 300, nanoUsd: undefined }));
    expect(tokens).toMatchObject({ kind: 'rate_limit', retryAfter: 6 });
    expect(remedyForError(tokens)).toBe('never');
    const never = errorOf(() => first.reserve({ tokens: 1001, nanoUsd: undefined }));
    expect(never).toMatchObject({ retryable: false, retryAfter: undefined });
    expect(never.message).toContain('1001 tokens');
    (hold as { settle(used: object): void }).settle({ tokens: 500, nanoUsd: undefined });
    expect(headersOf(first)).toEqual({
      'x-ratelimit-limit-requests': '2',
      'x-ratelimit-remaining-requests': '1',
      'x-ratelimit-reset-requests': '30s',
      'x-ratelimit-limit-tokens': '1000',
      'x-ratelimit-remaining-tokens': '500',
      'x-ratelimit-reset-tokens': '30s',
    });
    first.end();
    first.end();
    open(principal)!.end();
    const requests = errorOf(() => open(principal));
    expect(requests).toMatchObject({ kind: 'rate_limit', retryAfter: 30 });
    expect(requests.message).toContain('2 requests per minute');
    clock.now += 30_000;
    open(principal)!.end();
    expect(refusals).toEqual([
      'ci concurrent',
      'ci tokens_per_minute',
      'ci tokens_per_minute',
      'ci requests_per_minute',
    ]);
  });

  test('a refusal says what is left of every limit, as an answer does', () => {
    const { open } = gate();
    const principal = key({
      limits: { requestsPerMinute: 2, tokensPerMinute: 1000 },
      budgets: [budget()],
    });
    const first = open(principal)!;
    first.reserve({ tokens: 800, nanoUsd: 4e9 });
    // Of a try: what it asked for is more than is left, and all that is left stays.
    const tokens = errorOf(() => first.reserve({ tokens: 300, nanoUsd: 1e9 }));
    expect(tokens.headers).toEqual({
      'x-ratelimit-limit-tokens': '1000',
      'x-ratelimit-remaining-tokens': '200',
      'x-ratelimit-reset-tokens': '48s',
      'x-hopgate-budget-remaining-usd': '6',
    });
    expect(headersOf(first)).toEqual({
      'x-ratelimit-limit-requests': '2',
      'x-ratelimit-remaining-requests': '1',
      'x-ratelimit-reset-requests': '30s',
      ...tokens.headers,
    });
    open(principal);
    const requests = errorOf(() => open(principal));
    expect(requests.headers).toEqual({
      ...tokens.headers,
      'x-ratelimit-limit-requests': '2',
      'x-ratelimit-remaining-requests': '0',
      'x-ratelimit-reset-requests': '1m0s',
    });
    first.reserve({ tokens: 1, nanoUsd: 6e9 });
    const spent = errorOf(() => open(principal));
    expect(spent.headers).toMatchObject({
      'x-ratelimit-remaining-tokens': '199',
      'x-hopgate-budget-remaining-usd': '0',
    });
  });

  test.each([
    ['Chat Completions', openaiChat],
    ['Responses', openaiResponses],
    ['Messages', anthropicMessages],
    ['Gemini', googleGemini],
  ] as const)('%s: what is left stands beside the headers of the protocol', (_name, codec) => {
    const { open } = gate();
    const principal = key({ limits: { requestsPerMinute: 1 }, budgets: [budget()] });
    open(principal);
    const error = errorOf(() => open(principal));
    const own = { requestId: 'req_1', target: undefined, notes: undefined };
    // Secrets are masked in a copy.
    for (const one of [error, maskedError(error, ['minute'])]) {
      const { headers } = errorResponse(codec, one, own);
      expect(Object.fromEntries([...headers])).toMatchObject({
        'retry-after': '60',
        'x-ratelimit-limit-requests': '1',
        'x-ratelimit-remaining-requests': '0',
        'x-ratelimit-reset-requests': '1m0s',
        'x-hopgate-budget-remaining-usd': '10',
      });
    }
  });

  test('a budget: reserved, settled, refused with what is spent and when it resets', () => {
    const { open, refusals } = gate();
    const principal = key({ budgets: [budget()] });
    const guard = open(principal)!;
    const hold = guard.reserve({ tokens: 9, nanoUsd: 9e9 });
    const error = errorOf(() => guard.reserve({ tokens: 9, nanoUsd: 2e9 }));
    expect(error).toMatchObject({ kind: 'budget', status: 429, retryable: false });
    expect(error.message).toBe(
      'The budget "web-team" has too little left for this request: $0 of $10 is spent, $9 is reserved by requests that still run, and this request may cost $2. It resets at 2026-06-11T00:00:00Z.',
    );
    expect(remedyForError(error)).toBe('never');
    (hold as { settle(used: object): void }).settle({ tokens: 9, nanoUsd: 10e9 });
    expect(headersOf(guard)).toEqual({ 'x-hopgate-budget-remaining-usd': '0' });
    const spent = errorOf(() => open(principal));
    expect(spent.message).toBe(
      'The budget "web-team" is used up: $10 of $10 is spent. It resets at 2026-06-11T00:00:00Z.',
    );
    expect(refusals).toEqual(['ci web-team', 'ci web-team']);
  });

  test('what was counted too much comes back when it is settled, in the period in which it was counted', () => {
    const { open, clock, limits } = gate();
    const principal = key({ budgets: [budget()], limits: { tokensPerMinute: 100 } });
    const used = () => limits.usage(keyLimitsOf(principal).all).map(({ used }) => used);
    const settle = (amounts: object, reserved: object = { tokens: 0, nanoUsd: 0, owed: true }) => {
      const hold = open(principal)!.reserve(reserved as never);
      (hold as { settle(used: object): void }).settle(amounts);
    };
    settle({ tokens: 0, nanoUsd: 9e9 }, { tokens: 0, nanoUsd: 9e9 });
    settle({ tokens: 0, nanoUsd: -7e9 }, { tokens: 0, nanoUsd: 0, owed: true, countedAt: NOW });
    expect(used()).toEqual([0, 2e9]);
    // What it gives back can be used at once.
    settle({ tokens: 0, nanoUsd: 7e9 }, { tokens: 0, nanoUsd: 7e9 });
    // Nobody says when it was counted, or it was yesterday.
    settle({ tokens: 0, nanoUsd: -1e9 });
    clock.now += 24 * 3_600_000;
    settle({ tokens: 0, nanoUsd: 4e9 }, { tokens: 0, nanoUsd: 4e9 });
    settle({ tokens: -5, nanoUsd: -3e9 }, { tokens: 0, nanoUsd: 0, owed: true, countedAt: NOW });
    expect(used()).toEqual([0, 4e9]);
    clock.now = NOW;
    expect(used()).toEqual([0, 9e9]);
  });

  test.each<[change: string, changed: Partial<Budget>, used: number]>([
    ['time_zone', { timeZone: 'Europe/Berlin' }, 0],
    ['per', { per: 'month' }, 0],
    ['its amount', { nanoUsd: 20e9 }, 9e9],
    ['its marks', { warn: [0.9] }, 9e9],
    ['over', { over: { action: 'warn' } }, 9e9],
  ])('a budget whose %s is changed: what of the running period counts', (_, changed, expected) => {
    const { open, limits } = gate();
    const hold = open(key({ budgets: [budget()] }))!.reserve({ tokens: 0, nanoUsd: 9e9 });
    (hold as { settle(used: object): void }).settle({ tokens: 0, nanoUsd: 9e9 });
    const usedOf = (more: Partial<Budget>) =>
      limits.usage(keyLimitsOf(key({ budgets: [budget(more)] })).all).map(({ used }) => used);
    expect(usedOf(changed)).toEqual([expected]);
    // A change that is taken back finds what was spent.
    expect(usedOf({})).toEqual([9e9]);
  });

  test('a budget that only warns counts and lets all through', () => {
    const { open, limits } = gate();
    const principal = key({ budgets: [budget({ over: { action: 'warn' } })] });
    for (let i = 0; i < 3; i++) {
      const hold = open(principal)!.reserve({ tokens: 0, nanoUsd: 6e9 });
      (hold as { settle(used: object): void }).settle({ tokens: 0, nanoUsd: 6e9 });
    }
    expect(limits.usage(keyLimitsOf(principal).all)[0]!.used).toBe(18e9);
  });

  test('a budget that is smaller than one request says that it never fits', () => {
    const { open } = gate();
    const guard = open(key({ budgets: [budget({ nanoUsd: 1e6 })] }))!;
    const never = errorOf(() => guard.reserve({ tokens: 1, nanoUsd: 2e6 }));
    expect(never.message).toContain('$0 of $0.001 is spent, and this request may cost $0.002.');
    expect(never.message).toContain('more than the whole budget');
  });

  test('such a budget is told in reports, until it is larger than the request', async () => {
    const clock = { wall: () => NOW, monotonic: () => NOW };
    const limits = new LocalLimits({ clock });
    const neverFits = new Map<string, number>();
    const onNeverFits = (id: string, nanoUsd: number) => void neverFits.set(id, nanoUsd);
    const small = budget({ nanoUsd: 1e6 });
    const options = { limits, onRefused: () => {}, onNeverFits };
    const guard = openGuard(options, key({ budgets: [small] })) as LimitGuard;
    const told = async (one: Budget) => {
      const { budgets } = await usageReport(limits, key({ budgets: [one] }), neverFits);
      const { data } = await budgetsReport(limits, [{ budget: one }], 9, neverFits);
      expect(data[0]!.never_fits_usd).toBe(budgets[0]!.never_fits_usd);
      return budgets[0]!.never_fits_usd;
    };
    expect(await told(small)).toBeNull();
    errorOf(() => guard.reserve({ tokens: 1, nanoUsd: 2e6 }));
    expect(await told(small)).toBe(0.002);
    expect(await told(budget({ nanoUsd: 2e6 }))).toBeNull();
    // One that fits, but for what is spent, is none of these.
    errorOf(() => openGuard(options, key({ budgets: [budget({ nanoUsd: 0 })] })));
    expect(neverFits.get(keyLimitsOf(key({ budgets: [small] })).budgets[0]!.limit.id)).toBe(2e6);
  });

  test('a spent budget with a route sends exchanges there, unless another limit refuses', () => {
    const { open } = gate();
    const cheap = budget({ id: 'a', over: { action: 'route', route: 'cheap' } });
    const principal = key({ budgets: [cheap] });
    const first = open(principal)!;
    expect(first.route).toBeUndefined();
    const hold = first.reserve({ tokens: 0, nanoUsd: 12e9 });
    (hold as { settle(used: object): void }).settle({ tokens: 0, nanoUsd: 12e9 });
    expect(open(principal)!.route).toBe('cheap');
    const both = key({ budgets: [cheap, budget({ id: 'b', name: 'hard', nanoUsd: 0 })] });
    expect(errorOf(() => open(both)).message).toContain('"hard"');
  });

  test('what has no price costs nothing, and a budget still counts the rest', () => {
    const { open, limits } = gate();
    const principal = key({ budgets: [budget()] });
    const hold = open(principal)!.reserve({ tokens: 5, nanoUsd: undefined });
    (hold as { settle(used: object): void }).settle({ tokens: 5, nanoUsd: undefined });
    expect(limits.usage(keyLimitsOf(principal).all)[0]).toMatchObject({ used: 0, held: 0 });
  });

  test('what is used and left, for the holder of the key and for the admin', async () => {
    const { open, limits } = gate();
    const principal = key({
      limits: { requestsPerMinute: 60, concurrent: 3 },
      budgets: [budget()],
    });
    const hold = open(principal)!.reserve({ tokens: 1, nanoUsd: 2.5e9 });
    const row = {
      name: 'web-team',
      usd: 10,
      per: 'day',
      time_zone: 'UTC',
      over: 'refuse',
      spent_usd: 0,
      reserved_usd: 2.5,
      remaining_usd: 7.5,
      never_fits_usd: null,
      resets_at: '2026-06-11T00:00:00Z',
    };
    expect(await usageReport(limits, principal)).toEqual({
      object: 'usage',
      key: 'ci',
      limits: [
        { limit: 'requests_per_minute', amount: 60, used: 1, remaining: 59, reset_seconds: 1 },
        { limit: 'concurrent', amount: 3, used: 1, remaining: 2, reset_seconds: null },
      ],
      budgets: [row],
    });
    (hold as { settle(used: object): void }).settle({ tokens: 1, nanoUsd: 1e9 });
    const owned = principal.budgets.map((budget) => ({ budget, key: { id: 'hk_1', name: 'ci' } }));
    const fuller = budget({ id: 'budget:small', name: 'small', nanoUsd: 0 });
    const report = await budgetsReport(limits, [...owned, { budget: fuller, labels: {} }], 10);
    expect(report.data.map(({ id }) => id)).toEqual(['budget:web', 'budget:small']);
    expect(report.data[0]).toEqual({
      id: 'budget:web',
      ...row,
      spent_usd: 1,
      reserved_usd: 0,
      remaining_usd: 9,
      warn: [0.5],
      key: 'hk_1',
      key_name: 'ci',
      labels: null,
    });
    const first = await budgetsReport(limits, [...owned, { budget: fuller, labels: {} }], 1);
    expect([first.data.length, first.has_more]).toEqual([1, true]);
    expect(await usageReport(limits, key({}))).toEqual({
      object: 'usage',
      key: 'ci',
      limits: [],
      budgets: [],
    });
  });

  test('times as OpenAI writes them', () => {
    expect([0, 120, 1000, 1500, 59_999, 60_000, 3_725_000].map(durationText)).toEqual([
      '0ms',
      '120ms',
      '1s',
      '1.5s',
      '59.999s',
      '1m0s',
      '62m5s',
    ]);
  });
});

describe('the official SDKs', () => {
  const limitError = () => {
    const { open } = gate();
    const principal = key({ limits: { requestsPerMinute: 1 } });
    open(principal);
    return errorOf(() => open(principal));
  };
  const budgetError = () => errorOf(() => gate().open(key({ budgets: [budget({ nanoUsd: 0 })] })));

  /** A server that answers every request with the error. */
  async function asked(codec: Codec, error: GatewayError, ask: (url: string) => Promise<unknown>) {
    let requests = 0;
    const server = Bun.serve({
      port: 0,
      fetch() {
        requests++;
        return errorResponse(codec, error, {
          requestId: 'req_1',
          target: undefined,
          notes: undefined,
        });
      },
    });
    const thrown = await ask(`http://127.0.0.1:${server.port}`).catch((caught: unknown) => caught);
    await server.stop(true);
    return { thrown: thrown as { status: number; headers: Headers; message: string }, requests };
  }

  const messages = [{ role: 'user' as const, content: 'hi' }];
  const openai = (url: string) => new OpenAI({ apiKey: 'k', baseURL: `${url}/v1`, maxRetries: 2 });
  const chat = (url: string) => openai(url).chat.completions.create({ model: 'm', messages });
  const responses = (url: string) => openai(url).responses.create({ model: 'm', input: 'hi' });
  const anthropic = (url: string) =>
    new Anthropic({ apiKey: 'k', baseURL: url, maxRetries: 2 }).messages.create({
      model: 'm',
      max_tokens: 1,
      messages,
    });

  for (const [name, codec, ask] of [
    ['Chat Completions', openaiChat, chat],
    ['Responses', openaiResponses, responses],
  ] as const) {
    test(`${name}: a budget is a RateLimitError with insufficient_quota that is not tried again`, async () => {
      const { thrown, requests } = await asked(codec, budgetError(), ask);
      expect(thrown).toBeInstanceOf(OpenAI.RateLimitError);
      expect(thrown).toMatchObject({
        status: 429,
        code: 'insufficient_quota',
        type: 'insufficient_quota',
      });
      expect(thrown.headers.get('x-should-retry')).toBe('false');
      expect(thrown.message).toContain('The budget "web-team" is used up');
      expect(requests).toBe(1);
    });

    test(`${name}: a limit is a RateLimitError that says when to come back, and is tried again`, async () => {
      const error = limitError();
      const soon = new GatewayError('rate_limit', error.message, { retryAfter: 1 });
      const { thrown, requests } = await asked(codec, soon, ask);
      expect(thrown).toBeInstanceOf(OpenAI.RateLimitError);
      expect(thrown.headers.get('retry-after')).toBe('1');
      expect(requests).toBe(3);
      expect(error.retryAfter).toBe(60);
    }, 20_000);
  }

  test('Messages: a budget is a 402 billing_error that is not tried again', async () => {
    const { thrown, requests } = await asked(anthropicMessages, budgetError(), anthropic);
    expect(thrown).toBeInstanceOf(Anthropic.APIError);
    expect(thrown).toMatchObject({
      status: 402,
      error: { type: 'error', error: { type: 'billing_error' } },
    });
    expect(requests).toBe(1);
  });

  test('Messages: a limit is a RateLimitError that says when to come back', async () => {
    const { thrown, requests } = await asked(
      anthropicMessages,
      new GatewayError('rate_limit', limitError().message, { retryAfter: 0.4 }),
      anthropic,
    );
    expect(thrown).toBeInstanceOf(Anthropic.RateLimitError);
    expect(thrown.headers.get('retry-after')).toBe('1');
    expect(requests).toBe(3);
  }, 20_000);

  test('Gemini: a budget and a limit are an ApiError RESOURCE_EXHAUSTED; the limit alone says when to come back', async () => {
    const gemini = (url: string) =>
      new GoogleGenAI({ apiKey: 'k', httpOptions: { baseUrl: url } }).models.generateContent({
        model: 'm',
        contents: 'hi',
      });
    for (const [error, words, wait] of [
      [budgetError(), 'is used up', undefined],
      [limitError(), 'limits.requests_per_minute', '60s'],
    ] as const) {
      const { thrown, requests } = await asked(googleGemini, error, gemini);
      expect(thrown).toBeInstanceOf(ApiError);
      expect(thrown.status).toBe(429);
      const told = JSON.parse(thrown.message) as {
        error: { status: string; message: string; details?: { retryDelay?: string }[] };
      };
      expect(told.error.status).toBe('RESOURCE_EXHAUSTED');
      expect(told.error.message).toContain(words);
      const waits = (told.error.details ?? []).flatMap(({ retryDelay }) => retryDelay ?? []);
      expect(waits).toEqual(wait === undefined ? [] : [wait]);
      expect(requests).toBe(1);
    }
  });
});
