/** Decoding and encoding of Messages errors, and the overflow message that Claude Code parses. */

import { describe, expect, test } from 'bun:test';
import Anthropic, { APIError } from '@anthropic-ai/sdk';
import { anthropicMessages } from '../../../../src/codecs/anthropic-messages/index.ts';
import { type ErrorKind, GatewayError } from '../../../../src/conversation/errors.ts';
import type { JsonObject } from '../../../../src/lib/json/json.ts';
import { ABSENT, bytes, client, eventsOf, recorded, sse } from '../recorded.ts';

const decode = (status: number, body: unknown, headers: Record<string, string> = {}) =>
  anthropicMessages.decodeError(
    status,
    typeof body === 'string' ? body : JSON.stringify(body),
    new Headers(headers),
  );

const anthropic = (type: string, message = 'm') => ({ type: 'error', error: { type, message } });

describe('an upstream error is decoded', () => {
  const cases: readonly (readonly [string, number, unknown, ErrorKind, string])[] = [
    ['bad request', 400, anthropic('invalid_request_error'), 'invalid_request', 'm'],
    ['bad key', 401, anthropic('authentication_error'), 'authentication', 'm'],
    ['billing', 402, anthropic('billing_error'), 'billing', 'm'],
    ['forbidden', 403, anthropic('permission_error'), 'permission', 'm'],
    ['no such model', 404, anthropic('not_found_error'), 'not_found', 'm'],
    ['too large', 413, anthropic('request_too_large'), 'too_large', 'm'],
    ['rate limit', 429, anthropic('rate_limit_error'), 'rate_limit', 'm'],
    ['server error', 500, anthropic('api_error'), 'upstream', 'm'],
    ['time-out', 504, anthropic('timeout_error'), 'timeout', 'm'],
    ['overload', 529, anthropic('overloaded_error'), 'overloaded', 'm'],
    ['overload with another status', 500, anthropic('overloaded_error'), 'overloaded', 'm'],
    [
      'prompt too long',
      400,
      anthropic('invalid_request_error', 'prompt is too long: 3 tokens > 2 maximum'),
      'context_overflow',
      'prompt is too long: 3 tokens > 2 maximum',
    ],
    [
      'no room for the answer',
      400,
      anthropic(
        'invalid_request_error',
        'input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000',
      ),
      'context_overflow',
      'input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000',
    ],
    [
      'no money, as a bad request',
      400,
      anthropic('invalid_request_error', 'Your credit balance is too low to access the API'),
      'billing',
      'Your credit balance is too low to access the API',
    ],
    [
      'OpenAI shape from a relay',
      429,
      { error: { message: 'slow', type: 'rate_limit', code: 1302 } },
      'rate_limit',
      'slow',
    ],
    ['error as text', 503, { error: 'down' }, 'overloaded', 'down'],
    ['detail', 422, { detail: 'wrong' }, 'invalid_request', 'wrong'],
    ['message at the top', 500, { message: 'bad day', code: '1234' }, 'upstream', 'bad day'],
    ['HTML', 502, '<html>Bad Gateway</html>', 'upstream', 'The upstream answered HTTP 502.'],
    ['nothing', 418, '', 'invalid_request', 'The upstream answered HTTP 418.'],
  ];
  for (const [name, status, body, kind, message] of cases) {
    test(name, () => {
      const error = decode(status, body);
      expect({ kind: error.kind, status: error.status, message: error.message }).toEqual({
        kind,
        status,
        message,
      });
      expect(error.fromUpstream).toBe(true);
    });
  }

  test('headers say when, and whether, to try again', () => {
    expect(decode(429, '', { 'retry-after': '7' }).retryAfter).toBe(7);
    expect(decode(429, '', { 'retry-after-ms': '250', 'retry-after': '7' }).retryAfter).toBe(0.25);
    const soon = new Date(Date.now() + 20_000).toUTCString();
    expect(decode(429, '', { 'retry-after': soon }).retryAfter).toBeWithin(15, 22);
    expect(decode(429, '', { 'retry-after': 'later' }).retryAfter).toBeUndefined();
    expect(decode(500, '', { 'x-should-retry': 'false' }).retryable).toBe(false);
    expect(decode(500, '', { 'x-should-retry': 'true' }).retryable).toBe(true);
    expect(decode(500, '').retryable).toBeUndefined();
  });
});

describe('every kind of error is encoded in this protocol', () => {
  const cases: Readonly<Record<ErrorKind, readonly [number, string]>> = {
    invalid_request: [400, 'invalid_request_error'],
    authentication: [401, 'authentication_error'],
    permission: [403, 'permission_error'],
    not_found: [404, 'not_found_error'],
    too_large: [413, 'request_too_large'],
    context_overflow: [400, 'invalid_request_error'],
    rate_limit: [429, 'rate_limit_error'],
    quota: [429, 'rate_limit_error'],
    billing: [402, 'billing_error'],
    budget: [402, 'billing_error'],
    overloaded: [529, 'overloaded_error'],
    timeout: [504, 'timeout_error'],
    conflict: [409, 'invalid_request_error'],
    content_filter: [400, 'invalid_request_error'],
    upstream: [502, 'api_error'],
    internal: [500, 'api_error'],
  };
  for (const [kind, [status, type]] of Object.entries(cases)) {
    test(kind, () => {
      const answer = anthropicMessages.encodeError(
        new GatewayError(kind as ErrorKind, 'why'),
        'req_9',
      );
      expect(answer.status).toBe(status);
      expect(answer.headers['request-id']).toBe('req_9');
      expect(answer.body).toMatchObject({ type: 'error', error: { type }, request_id: 'req_9' });
    });
  }

  test("another upstream's overload of 503 becomes 529", () => {
    const error = new GatewayError('overloaded', 'busy', { status: 503 });
    expect(anthropicMessages.encodeError(error, 'r').status).toBe(529);
  });

  test('Retry-After stays in whole seconds; a final failure is not retryable', () => {
    const error = new GatewayError('rate_limit', 'slow', { retryAfter: 1.2, retryable: false });
    const { headers } = anthropicMessages.encodeError(error, 'r');
    expect(headers).toMatchObject({ 'retry-after': '2', 'x-should-retry': 'false' });
    const plain = anthropicMessages.encodeError(new GatewayError('internal', 'x'), 'r').headers;
    expect(plain['retry-after']).toBeUndefined();
    expect(plain['x-should-retry']).toBeUndefined();
  });

  test('the SDK throws the right error, with the request id', async () => {
    const answer = anthropicMessages.encodeError(
      new GatewayError('permission', 'not you'),
      'req_7',
    );
    const sdk = new Anthropic({
      apiKey: 'k',
      maxRetries: 0,
      fetch: async () => new Response(JSON.stringify(answer.body), answer),
    });
    const thrown = await sdk.messages
      .create({ model: 'm', max_tokens: 1, messages: [] })
      .catch((error: unknown) => error);
    expect(thrown).toBeInstanceOf(APIError);
    expect(thrown).toMatchObject({ status: 403, requestID: 'req_7', type: 'permission_error' });
  });
});

describe('a prompt that is too long gets the message that Claude Code parses', () => {
  const cases: readonly (readonly [string, string])[] = [
    [
      "This model's maximum context length is 128000 tokens. However, your messages resulted in 130512 tokens. Please reduce the length of the messages.",
      'prompt is too long: 130512 tokens > 128000 maximum',
    ],
    [
      "This model's maximum context length is 8192 tokens, however you requested 10000 tokens (9500 in the messages, 500 in the completion).",
      'prompt is too long: 10000 tokens > 8192 maximum',
    ],
    [
      'request (12345 tokens) exceeds the available context size (8192 tokens), try increasing it',
      'prompt is too long: 12345 tokens > 8192 maximum',
    ],
    [
      'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).',
      'prompt is too long: 1200000 tokens > 1048576 maximum',
    ],
    [
      "This model's maximum prompt length is 131072 but the request contains 140,001 tokens.",
      'prompt is too long: 140001 tokens > 131072 maximum',
    ],
    [
      'prompt is too long: 3333404 tokens > 200000 maximum',
      'prompt is too long: 3333404 tokens > 200000 maximum',
    ],
    [
      'input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length',
      'input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length',
    ],
    ['Prompt exceeds max length', 'prompt is too long: Prompt exceeds max length'],
    ['prompt is too long', 'prompt is too long'],
  ];
  for (const [text, expected] of cases) {
    test(text.slice(0, 60), () => {
      const error = new GatewayError('context_overflow', text, { status: 413 });
      const answer = anthropicMessages.encodeError(error, 'r');
      expect(answer.status).toBe(400);
      expect(answer.body.error).toEqual({ type: 'invalid_request_error', message: expected });
    });
  }
});

describe('errors in the middle of a stream', () => {
  const start = {
    type: 'message_start',
    message: { id: 'msg_1', model: 'm', content: [], usage: { input_tokens: 1, output_tokens: 1 } },
  };

  test("an upstream's error event is decoded, and nothing follows", () => {
    const text = sse(
      start,
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'ab' } },
      { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } },
      { type: 'message_stop' },
    );
    const events = eventsOf([bytes(text)]);
    expect(events.map(({ type }) => type)).toEqual([
      'start',
      'block-start',
      'delta',
      'block-stop',
      'error',
    ]);
    const last = events.at(-1);
    expect(last?.type === 'error' && last.error.kind).toBe('overloaded');
  });

  test('the client gets one error event and nothing more', () => {
    const encoder = anthropicMessages.encodeStream(client());
    encoder.event({ type: 'start', id: 'msg_1', model: 'm' });
    const text = encoder.fail(new GatewayError('upstream', 'cut off'));
    expect(text).toBe(
      'event: error\ndata: {"type":"error","error":{"type":"api_error","message":"cut off"}}\n\n',
    );
    expect(encoder.event({ type: 'end' })).toBe('');
    expect(encoder.ping()).toBe('');
    expect(encoder.fail(new GatewayError('upstream', 'again'))).toBe('');
  });

  test('an error in place of a reply is thrown with its kind', () => {
    const context = {
      sent: { model: 'm', system: [], turns: [], tools: [], settings: { stream: false } },
    };
    const body = { type: 'error', error: { type: 'overloaded_error', message: 'x' } };
    const decodeReply = () =>
      anthropicMessages.decodeReply(body, {
        ...context,
        target: undefined,
        notes: undefined,
      } as never);
    expect(decodeReply).toThrow(expect.objectContaining({ kind: 'overloaded' }));
  });

  test('a body that is not a message is an upstream error', () => {
    for (const body of [null, 'hi', [], {}, { content: 'x' }]) {
      expect(() => anthropicMessages.decodeReply(body, undefined as never)).toThrow(
        expect.objectContaining({ kind: 'upstream' }),
      );
    }
  });
});

const suite = ABSENT === undefined ? describe : describe.skip;

suite(ABSENT ?? 'every recorded error answer', () => {
  test('an unknown error is decoded and encoded unchanged', () => {
    const errors = recorded('json').filter(({ status }) => status >= 400);
    expect(errors.length).toBeGreaterThan(10);
    for (const { file, text, status } of errors) {
      const body = JSON.parse(text) as JsonObject;
      const error = anthropicMessages.decodeError(status, text, new Headers());
      expect(error.kind, file).not.toBe('upstream');
      const answer = anthropicMessages.encodeError(error, String(body.request_id));
      expect(answer.status, file).toBe(status);
      expect(answer.body as unknown, file).toEqual(body);
    }
  });
});
