/** Errors by the vendor's own codes: what they mean, and whether another try can help. */

import { describe, expect, test } from 'bun:test';
import { anthropicMessages } from '../../src/codecs/anthropic-messages/index.ts';
import { openaiChat } from '../../src/codecs/openai-chat/index.ts';
import { type ErrorKind, GatewayError } from '../../src/conversation/errors.ts';
import { vendorError } from '../../src/upstream/vendor-error.ts';
import { PROFILES } from '../../src/vendors/index.ts';

const body = (code: string | number, message = 'words') =>
  JSON.stringify({ error: { code, message } });

const CASES: readonly (readonly [
  profile: string,
  status: number,
  code: string,
  kind: ErrorKind,
  retryable: boolean,
])[] = [
  ['glm', 429, '1113', 'billing', false],
  ['glm', 400, '1210', 'invalid_request', false],
  ['glm', 400, '1211', 'not_found', false],
  ['glm', 400, '1214', 'invalid_request', false],
  ['glm', 400, '1261', 'context_overflow', false],
  ['glm', 400, '1301', 'content_filter', false],
  ['glm', 429, '1302', 'rate_limit', true],
  ['glm', 429, '1303', 'rate_limit', true],
  ['glm', 429, '1304', 'quota', false],
  ['glm', 429, '1305', 'overloaded', true],
  ['glm', 429, '1308', 'quota', false],
  ['glm', 429, '1309', 'billing', false],
  ['glm', 429, '1312', 'overloaded', true],
  ['glm', 500, '1234', 'upstream', true],
  ['glm', 500, '500', 'upstream', true],
  ['zai', 429, '1310', 'quota', false],
  ['qwen', 400, 'Arrearage', 'billing', false],
  ['qwen', 429, 'limit_requests', 'rate_limit', true],
  ['groq', 400, 'tool_use_failed', 'upstream', true],
  ['openai', 429, 'insufficient_quota', 'quota', false],
];

describe('a code of the profile', () => {
  for (const [profile, status, code, kind, retryable] of CASES) {
    test(`${profile} ${code} is ${kind}, ${retryable ? 'passing' : 'final'}`, () => {
      const error = openaiChat.decodeError(status, body(code, 'the words'), new Headers());
      const known = vendorError(PROFILES[profile]!, error);
      expect(known).toMatchObject({ kind, retryable, status, code, message: 'the words' });
      expect(known.fromUpstream).toBe(true);
      expect(vendorError(PROFILES[profile]!, known)).toBe(known);
    });
  }

  test("is read on the vendor's Messages endpoint too", () => {
    const error = anthropicMessages.decodeError(
      429,
      JSON.stringify({ type: 'error', error: { type: 'x', code: '1113', message: 'no balance' } }),
      new Headers(),
    );
    expect(vendorError(PROFILES['glm-anthropic']!, error)).toMatchObject({ kind: 'billing' });
  });

  test('keeps what the vendor said beside it', () => {
    const error = new GatewayError('rate_limit', 'm', {
      status: 429,
      code: '1302',
      param: 'p',
      retryAfter: 7,
      details: { a: 1 },
      fromUpstream: true,
    });
    const known = vendorError(PROFILES.glm!, error);
    expect(known).toMatchObject({ param: 'p', retryAfter: 7, details: { a: 1 }, retryable: true });
  });
});

describe('stays the very error', () => {
  const upstream = (code?: string) =>
    new GatewayError('rate_limit', 'm', { fromUpstream: true, ...(code ? { code } : {}) });

  test('without a code, with an unknown one, or without facts', () => {
    for (const [profile, error] of [
      ['glm', upstream()],
      ['glm', upstream('9999')],
      ['glm', upstream('toString')],
      ['none', upstream('1113')],
    ] as const) {
      expect(vendorError(PROFILES[profile]!, error)).toBe(error);
    }
  });

  test("when it is the gateway's own", () => {
    const own = new GatewayError('timeout', 'm', { code: '1113' });
    expect(vendorError(PROFILES.glm!, own)).toBe(own);
  });
});
