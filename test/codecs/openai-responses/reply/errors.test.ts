/** Decoding and encoding of errors, and digests of answers that failed or ended. */

import { describe, expect, test } from 'bun:test';
import { openaiResponses } from '../../../../src/codecs/openai-responses/index.ts';
import { type ErrorKind, GatewayError } from '../../../../src/conversation/errors.ts';
import type { SseFrame } from '../../../../src/lib/bytes/sse.ts';
import type { Json } from '../../../../src/lib/json/json.ts';
import { conversation, frames, upstream } from '../material.ts';

const decode = (status: number, body: string, headers: Record<string, string> = {}) =>
  openaiResponses.decodeError(status, body, new Headers(headers));

describe("an upstream's error", () => {
  const error = (value: Json) => JSON.stringify({ error: value });
  test.each<[number, string, ErrorKind, string]>([
    [
      400,
      error({
        message: 'Bad',
        type: 'invalid_request_error',
        param: 'x',
        code: 'unsupported_value',
      }),
      'invalid_request',
      'Bad',
    ],
    [
      400,
      error({ message: 'Too long', code: 'context_length_exceeded' }),
      'context_overflow',
      'Too long',
    ],
    [
      400,
      error({ message: "This model's maximum context length is 8192 tokens." }),
      'context_overflow',
      "This model's maximum context length is 8192 tokens.",
    ],
    [
      400,
      error({ message: 'No such model', code: 'model_not_found' }),
      'not_found',
      'No such model',
    ],
    [
      401,
      error({ message: 'Key', type: 'invalid_request_error', code: 'invalid_api_key' }),
      'authentication',
      'Key',
    ],
    [402, error({ message: 'Pay' }), 'billing', 'Pay'],
    [403, error({ message: 'No' }), 'permission', 'No'],
    [404, error({ message: 'None' }), 'not_found', 'None'],
    [413, error({ message: 'Big' }), 'too_large', 'Big'],
    [
      429,
      error({ message: 'Slow', type: 'requests', code: 'rate_limit_exceeded' }),
      'rate_limit',
      'Slow',
    ],
    [
      429,
      error({ message: 'Broke', type: 'insufficient_quota', code: 'insufficient_quota' }),
      'quota',
      'Broke',
    ],
    [429, error({ message: 'Slow', code: 429, metadata: {} }), 'rate_limit', 'Slow'],
    [500, error({ message: 'Oops', type: 'server_error' }), 'upstream', 'Oops'],
    [503, error({ message: 'Busy', type: 'server_error' }), 'overloaded', 'Busy'],
    [504, '', 'timeout', 'The upstream answered HTTP 504.'],
    [502, '<html>Bad gateway</html>', 'upstream', 'The upstream answered HTTP 502.'],
    [400, '{"code":"invalid-argument","error":"text"}', 'invalid_request', 'text'],
    [422, '{"detail":"Unprocessable"}', 'invalid_request', 'Unprocessable'],
    [
      400,
      '{"object":"error","message":"Flat","type":"BadRequestError","code":400}',
      'invalid_request',
      'Flat',
    ],
    [500, 'plain words', 'upstream', 'plain words'],
  ])('%i %s', (status, body, kind, message) => {
    const decoded = decode(status, body);
    expect([decoded.kind, decoded.status, decoded.message, decoded.fromUpstream]).toEqual([
      kind,
      status,
      message,
      true,
    ]);
  });

  test('headers say when and whether to try again', () => {
    expect(decode(429, '', { 'retry-after': '3' }).retryAfter).toBe(3);
    expect(decode(429, '', { 'retry-after-ms': '1500', 'retry-after': '9' }).retryAfter).toBe(1.5);
    const soon = new Date(Date.now() + 30_000).toUTCString();
    expect(decode(429, '', { 'retry-after': soon }).retryAfter).toBeWithin(20, 31);
    expect(decode(500, '', { 'x-should-retry': 'false' }).retryable).toBe(false);
    expect(decode(500, '').retryable).toBeUndefined();
  });
});

describe('an error for the client', () => {
  test.each<[GatewayError, number, string, string | null]>([
    [
      new GatewayError('invalid_request', 'm', { param: 'input', code: 'invalid_type' }),
      400,
      'invalid_request_error',
      'invalid_type',
    ],
    [
      new GatewayError('context_overflow', 'm', { code: 'string_above_max_length' }),
      400,
      'invalid_request_error',
      'context_length_exceeded',
    ],
    [new GatewayError('authentication', 'm'), 401, 'invalid_request_error', 'invalid_api_key'],
    [
      new GatewayError('not_found', 'm', { code: 'model_not_found' }),
      404,
      'invalid_request_error',
      'model_not_found',
    ],
    [new GatewayError('rate_limit', 'm'), 429, 'rate_limit_error', 'rate_limit_exceeded'],
    [new GatewayError('quota', 'm'), 429, 'insufficient_quota', 'insufficient_quota'],
    [new GatewayError('overloaded', 'm'), 503, 'server_error', null],
    [new GatewayError('internal', 'm'), 500, 'server_error', null],
  ])('%#', (error, status, type, code) => {
    const encoded = openaiResponses.encodeError(error, 'req_1');
    expect(encoded.status).toBe(status);
    expect(encoded.body).toEqual({
      error: { message: 'm', type, param: error.param ?? null, code },
    });
    expect(encoded.headers).toEqual({ 'x-request-id': 'req_1' });
    const again = openaiResponses.decodeError(status, JSON.stringify(encoded.body), new Headers());
    expect(again.kind).toBe(error.kind === 'internal' ? 'upstream' : error.kind);
  });

  test('headers hold the retry facts', () => {
    const error = new GatewayError('rate_limit', 'm', { retryAfter: 1.2, retryable: false });
    expect(openaiResponses.encodeError(error, 'r').headers).toEqual({
      'x-request-id': 'r',
      'retry-after': '2',
      'x-should-retry': 'false',
    });
  });
});

describe('digests of streams', () => {
  const look = (text: string) => openaiResponses.digestStream(frames(text));
  const end = (type: string, response: object) =>
    `event: ${type}\ndata: ${JSON.stringify({ type, response })}\n\n`;
  const usage = { input_tokens: 3, output_tokens: 4 };
  const message = { type: 'message', content: [{ type: 'output_text', text: 'x' }] };

  test('a terminal event completes a stream', () => {
    expect(
      look(end('response.completed', { status: 'completed', output: [message], usage })),
    ).toEqual({
      complete: true,
      semantic: true,
      answered: true,
      usage: { input: 3, output: 4 },
      counted: true,
      finish: 'stop',
    });
  });

  test('a terminal event has no content', () => {
    const nothing = { type: 'message', content: [{ type: 'output_text', text: '' }] };
    expect(look(end('response.completed', { output: [nothing] }))).toEqual({
      complete: true,
      semantic: false,
      answered: false,
      finish: 'stop',
    });
  });

  test('minimal streams are judged by their deltas and items', () => {
    const item = `data: ${JSON.stringify({ type: 'response.output_item.done', item: message })}\n\n`;
    expect(look(item + end('response.completed', { id: 'x' })).semantic).toBe(true);
    expect(look('data: {"type":"response.output_text.delta","delta":"x"}\n\n')).toEqual({
      complete: false,
      semantic: true,
    });
    expect(look('data: {"type":"response.output_text.delta","delta":""}\n\n').semantic).toBe(false);
  });

  test('incomplete streams and failures are recognised', () => {
    expect(
      look(
        end('response.incomplete', {
          status: 'incomplete',
          incomplete_details: { reason: 'max_output_tokens' },
        }),
      ),
    ).toMatchObject({ complete: true, finish: 'length' });
    const failed = look(
      end('response.failed', {
        status: 'failed',
        error: { code: 'rate_limit_exceeded', message: 'x' },
      }),
    );
    expect([failed.complete, failed.error?.kind]).toEqual([false, 'rate_limit']);
    expect(look('event: error\ndata: {"type":"error","message":"x"}\n\n').error?.kind).toBe(
      'upstream',
    );
  });

  test('[DONE] without a terminal event completes only a stream with content and no open item', () => {
    const delta = 'data: {"type":"response.output_text.delta","delta":"x"}\n\n';
    const done =
      'data: {"type":"response.output_item.done","item":{"type":"message","content":[{"text":"x"}]}}\n\n';
    expect(look(`${delta}data: [DONE]\n\n`).complete).toBe(false);
    expect(look(`${delta}${done}data: [DONE]\n\n`).complete).toBe(true);
    expect(look('data: [DONE]\n\n').complete).toBe(false);
  });

  test('every possible start of a terminal event has its prefix', () => {
    for (const text of [
      end('response.completed', {}),
      'data: {"type":"response.incomplete","response":{}}\n\n',
      'event:response.failed\ndata:{}\n\n',
      'data:{"type":"response.completed"}\n\n',
      'data: {"type": "response.completed"}\n\n',
    ]) {
      expect(
        openaiResponses.terminalPrefixes.some((prefix) => Buffer.from(text).indexOf(prefix) === 0),
        text,
      ).toBe(true);
    }
    const delta =
      'event: response.output_text.delta\ndata: {"type":"response.output_text.delta"}\n\n';
    expect(
      openaiResponses.terminalPrefixes.some((prefix) => Buffer.from(delta).includes(prefix)),
    ).toBe(false);
  });
});

describe('whole replies that are invalid', () => {
  const context = upstream(conversation({ model: 'm', input: 'i' }));
  test.each<[Json, ErrorKind]>([
    ['text', 'upstream'],
    [{}, 'upstream'],
    [{ error: { message: 'x', code: 'rate_limit_exceeded' } }, 'rate_limit'],
    [{ status: 'failed', output: [], error: { code: 'server_error', message: 'x' } }, 'upstream'],
    [{ status: 'completed', output: [{ type: 'function_call', call_id: 'c' }] }, 'upstream'],
  ])('%j', (body, kind) => {
    let thrown: unknown;
    try {
      openaiResponses.decodeReply(body, context);
    } catch (error) {
      thrown = error;
    }
    expect((thrown as GatewayError).kind).toBe(kind);
  });

  test('digests of invalid replies', () => {
    expect(openaiResponses.digestReply('x')).toEqual({ complete: false, semantic: false });
    expect(openaiResponses.digestReply({ error: { message: 'x' } }).error?.kind).toBe('upstream');
    expect(openaiResponses.digestReply({ status: 'queued', output: [] }).complete).toBe(false);
  });
});

test("models have OpenAI's list shape", () => {
  expect(openaiResponses.encodeModels([{ id: 'm', provider: 'p', created: 1 }])).toEqual({
    object: 'list',
    data: [{ id: 'm', object: 'model', created: 1, owned_by: 'p' }],
  });
});

test('a digest ignores frames without data', () => {
  const silent: SseFrame = { event: '', data: undefined, bytes: new Uint8Array(), from: 0, to: 0 };
  expect(openaiResponses.digestStream([silent])).toEqual({ complete: false, semantic: false });
});
