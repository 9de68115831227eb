/** Google's errors read, and errors written for clients that expect Google's. */

import { expect, test } from 'bun:test';
import { googleGemini } from '../../../src/codecs/google-gemini/index.ts';
import { type ErrorKind, GatewayError } from '../../../src/conversation/errors.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';

const read = (status: number, body: unknown) =>
  googleGemini.decodeError(
    status,
    typeof body === 'string' ? body : JSON.stringify(body),
    new Headers(),
  );

const google = (code: number, message: string, status: string, details?: JsonObject[]) => ({
  error: { code, message, status, ...(details === undefined ? {} : { details }) },
});

const KEY_INVALID = {
  '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
  reason: 'API_KEY_INVALID',
};
const RETRY = { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '34.4s' };
const DAILY = { violations: [{ quotaId: 'GenerateRequestsPerDayPerProjectPerModel-FreeTier' }] };

test.each<[number, unknown, ErrorKind]>([
  [400, google(400, 'Invalid JSON payload received.', 'INVALID_ARGUMENT'), 'invalid_request'],
  [400, google(400, 'API key not valid.', 'INVALID_ARGUMENT', [KEY_INVALID]), 'authentication'],
  [403, google(403, 'No.', 'PERMISSION_DENIED'), 'permission'],
  [404, google(404, 'models/x is not found', 'NOT_FOUND'), 'not_found'],
  [
    400,
    google(
      400,
      'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).',
      'INVALID_ARGUMENT',
    ),
    'context_overflow',
  ],
  [429, google(429, 'Slow down.', 'RESOURCE_EXHAUSTED', [RETRY]), 'rate_limit'],
  [429, google(429, 'Used up.', 'RESOURCE_EXHAUSTED', [DAILY]), 'quota'],
  [503, google(503, 'The model is overloaded.', 'UNAVAILABLE'), 'overloaded'],
  [504, google(504, 'Too late.', 'DEADLINE_EXCEEDED'), 'timeout'],
  [500, google(500, 'Oops.', 'INTERNAL'), 'upstream'],
  [400, [google(400, 'As a list.', 'INVALID_ARGUMENT')], 'invalid_request'],
  [502, '<html>Bad gateway</html>', 'upstream'],
])('%d %j is %s', (status, body, kind) => {
  const error = read(status, body);
  expect(error.kind).toBe(kind);
  expect(error.fromUpstream).toBe(true);
});

test('the wait is that of RetryInfo, or of the message', () => {
  expect(read(429, google(429, 'x', 'RESOURCE_EXHAUSTED', [RETRY])).retryAfter).toBe(34.4);
  const words = 'Please retry in 48.939935699s.';
  expect(read(429, google(429, words, 'RESOURCE_EXHAUSTED')).retryAfter).toBeCloseTo(48.94);
});

test('a reason that is not in Google’s form is no code: spelt in capitals, a key would not be masked', () => {
  const info = (reason: string) => google(400, 'x', 'INVALID_ARGUMENT', [{ reason }]);
  expect(read(400, info('API_KEY_INVALID')).code).toBe('api_key_invalid');
  for (const other of ['AIza-of-the-gateway', 'Bearer sk-1', 'A'.repeat(64)]) {
    expect(read(400, info(other)).code).toBeUndefined();
  }
});

test('an error has Google’s shape, with its reason, its field and its wait', () => {
  const { status, headers, body } = googleGemini.encodeError(
    new GatewayError('rate_limit', 'Too many.', {
      code: 'key_limit',
      param: 'contents',
      retryAfter: 2.2,
    }),
    'req_1',
  );
  expect(status).toBe(429);
  expect(headers['retry-after']).toBe('3');
  expect(body).toEqual({
    error: {
      code: 429,
      message: 'Too many.',
      status: 'RESOURCE_EXHAUSTED',
      details: [
        {
          '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
          reason: 'KEY_LIMIT',
          domain: 'hopgate',
        },
        {
          '@type': 'type.googleapis.com/google.rpc.BadRequest',
          fieldViolations: [{ field: 'contents', description: 'Too many.' }],
        },
        { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '3s' },
      ],
    },
  });
});

test('a full context is said in the words that clients know, and a spent account is a 429', () => {
  const full = googleGemini.encodeError(
    new GatewayError('context_overflow', 'prompt is too long'),
    '',
  );
  expect(JSON.stringify(full.body)).toMatch(
    /input token count exceeds the maximum number of tokens/,
  );
  expect(googleGemini.encodeError(new GatewayError('billing', 'No money.'), '').status).toBe(429);
});
