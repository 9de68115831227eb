/** Decoding of vendors' error answers, and encoding of errors as OpenAI writes them. */

import { describe, expect, test } from 'bun:test';
import OpenAI from 'openai';
import { openaiChat } from '../../../../src/codecs/openai-chat/index.ts';
import { type ErrorKind, GatewayError } from '../../../../src/conversation/errors.ts';
import { upstream } from '../recorded.ts';

type Case = readonly [
  vendor: string,
  status: number,
  body: unknown,
  kind: ErrorKind,
  message: string,
];

const e = (message: string, more: object = {}) => ({ error: { message, ...more } });

const OVERFLOWS: readonly (readonly [vendor: string, status: number, body: unknown])[] = [
  ['OpenAI', 400, e('Your input is too big', { code: 'context_length_exceeded' })],
  [
    'DeepSeek',
    400,
    e("This model's maximum context length is 65536 tokens. However, you requested 70000 tokens"),
  ],
  [
    'vLLM',
    400,
    { object: 'error', message: "This model's maximum context length is 4096 tokens.", code: 400 },
  ],
  [
    'Anthropic',
    400,
    {
      type: 'error',
      error: {
        type: 'invalid_request_error',
        message: 'prompt is too long: 210000 tokens > 200000 maximum',
      },
    },
  ],
  [
    'Gemini',
    400,
    [
      {
        error: {
          code: 400,
          message:
            'The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).',
          status: 'INVALID_ARGUMENT',
        },
      },
    ],
  ],
  [
    'xAI',
    400,
    {
      code: 'invalid-argument',
      error: "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
    },
  ],
  ['Zhipu', 400, { error: { code: '1261', message: 'Prompt 超长' } }],
  [
    'Mistral',
    400,
    {
      object: 'error',
      message:
        'Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length',
      type: 'invalid_request_error',
      code: '3051',
    },
  ],
  [
    'Moonshot',
    400,
    e('Invalid request: Your request exceeded model token limit: 262144', {
      type: 'invalid_request_error',
    }),
  ],
  [
    'llama.cpp',
    400,
    e('the request exceeds the available context size, try increasing it', {
      type: 'exceed_context_size_error',
      code: 400,
    }),
  ],
  ['Ollama cloud', 400, { error: 'prompt too long; exceeded max context length by 5 tokens' }],
  [
    'DashScope',
    400,
    e('<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]', {
      code: 'invalid_parameter_error',
    }),
  ],
  [
    'Groq',
    400,
    e('Please reduce the length of the messages or completion.', {
      code: 'context_length_exceeded',
    }),
  ],
  [
    'OpenRouter',
    400,
    e(
      "This endpoint's maximum context length is 32768 tokens. However, you requested about 50000 tokens",
      { code: 400 },
    ),
  ],
  ['LM Studio', 400, { error: 'Trying to keep the first 5000 tokens when context the overflows.' }],
];

const CASES: readonly Case[] = [
  [
    'OpenAI key',
    401,
    e('Incorrect API key provided', { code: 'invalid_api_key', type: 'invalid_request_error' }),
    'authentication',
    'Incorrect API key provided',
  ],
  [
    'OpenAI quota',
    429,
    e('You exceeded your current quota', {
      type: 'insufficient_quota',
      code: 'insufficient_quota',
    }),
    'quota',
    'You exceeded your current quota',
  ],
  [
    'OpenAI rate',
    429,
    e('Rate limit reached for gpt-5', { code: 'rate_limit_exceeded' }),
    'rate_limit',
    'Rate limit reached for gpt-5',
  ],
  [
    'OpenAI model',
    404,
    e('The model `x` does not exist', { code: 'model_not_found' }),
    'not_found',
    'The model `x` does not exist',
  ],
  [
    'OpenAI server',
    500,
    e('The server had an error', { type: 'server_error' }),
    'upstream',
    'The server had an error',
  ],
  [
    'OpenRouter number code',
    429,
    {
      error: { message: 'Rate limit exceeded', code: 429, metadata: { provider_name: null } },
      user_id: 'u',
    },
    'rate_limit',
    'Rate limit exceeded',
  ],
  [
    'Zhipu rate',
    429,
    { error: { code: '1302', message: '您的账户已达到速率限制' } },
    'rate_limit',
    '您的账户已达到速率限制',
  ],
  [
    'Zhipu overload',
    429,
    { error: { code: '1305', message: '当前模型访问量过大' } },
    'overloaded',
    '当前模型访问量过大',
  ],
  [
    'Zhipu balance',
    429,
    { error: { code: '1113', message: '余额不足或无可用资源包' } },
    'billing',
    '余额不足或无可用资源包',
  ],
  [
    'Zhipu plan',
    429,
    { error: { code: '1308', message: '已达到使用上限' } },
    'quota',
    '已达到使用上限',
  ],
  [
    'Zhipu sensitive',
    400,
    { error: { code: '1301', message: '不安全或敏感内容' } },
    'content_filter',
    '不安全或敏感内容',
  ],
  [
    'Zhipu messages',
    400,
    { error: { code: '1214', message: 'messages 参数非法' } },
    'invalid_request',
    'messages 参数非法',
  ],
  [
    'DeepSeek balance',
    402,
    e('Insufficient Balance', { type: 'unknown_error' }),
    'billing',
    'Insufficient Balance',
  ],
  ['Mistral detail', 401, { detail: 'Invalid API Key' }, 'authentication', 'Invalid API Key'],
  [
    'Mistral validation',
    422,
    { detail: [{ loc: ['body', 'messages'], msg: 'Field required' }] },
    'invalid_request',
    'body.messages: Field required',
  ],
  [
    'Mistral in the message, https://github.com/editor-code-assistant/eca/issues/231',
    422,
    {
      object: 'error',
      message: {
        detail: [
          { type: 'extra_forbidden', loc: ['body', 'n'], msg: 'Extra inputs are not permitted' },
        ],
      },
      type: 'invalid_request_error',
      param: null,
      code: null,
    },
    'invalid_request',
    'body.n: Extra inputs are not permitted',
  ],
  [
    'Mistral, a list, https://github.com/partITech/php-mistral/issues/76',
    422,
    {
      object: 'Error',
      message: [
        { type: 'extra_forbidden', loc: ['body', 'n'], msg: 'Extra inputs are not permitted' },
      ],
      type: 'invalid_request_error',
      code: 3001,
    },
    'invalid_request',
    'body.n: Extra inputs are not permitted',
  ],
  [
    'Mistral, as text, https://github.com/mistralai/platform-docs-public/issues/7',
    422,
    {
      object: 'error',
      message:
        '{"detail":[{"type":"extra_forbidden","loc":["body","n"],"msg":"Extra inputs are not permitted","input":0.0}]}',
      type: 'internal_error_proxy',
      param: null,
      code: '1000',
    },
    'invalid_request',
    'body.n: Extra inputs are not permitted',
  ],
  [
    'a relay of it',
    422,
    e({ detail: 'The model n does not exist' } as never),
    'not_found',
    'The model n does not exist',
  ],
  ['xAI', 400, { code: 'invalid-argument', error: 'Bad tool' }, 'invalid_request', 'Bad tool'],
  ['Ollama', 404, { error: 'model "x" not found' }, 'not_found', 'model "x" not found'],
  [
    'DashScope',
    400,
    { code: 'DataInspectionFailed', message: 'Input data may contain inappropriate content.' },
    'content_filter',
    'Input data may contain inappropriate content.',
  ],
  [
    'Azure filter',
    400,
    e('The response was filtered', { code: 'content_filter', status: 400 }),
    'content_filter',
    'The response was filtered',
  ],
  [
    'Azure string code',
    401,
    { error: { code: '401', message: 'Access denied' } },
    'authentication',
    'Access denied',
  ],
  [
    'Anthropic overloaded',
    529,
    { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } },
    'overloaded',
    'Overloaded',
  ],
  ['too large', 413, e('Request too large'), 'too_large', 'Request too large'],
  ['plain text', 503, 'upstream connect error', 'overloaded', 'upstream connect error'],
  [
    'an HTML page',
    502,
    '<html><body>Bad Gateway</body></html>',
    'upstream',
    'The upstream answered with HTTP 502.',
  ],
  ['nothing', 500, '', 'upstream', 'The upstream answered with HTTP 500.'],
  ['a permission', 403, e('Country not supported'), 'permission', 'Country not supported'],
  ['a gateway timeout', 504, '', 'timeout', 'The upstream answered with HTTP 504.'],
];

const decode = (status: number, body: unknown, headers: Record<string, string> = {}) =>
  openaiChat.decodeError(
    status,
    typeof body === 'string' ? body : JSON.stringify(body),
    new Headers(headers),
  );

describe('vendor errors', () => {
  for (const [vendor, status, body] of OVERFLOWS) {
    test(`${vendor}: a prompt that does not fit is context_overflow, never retryable`, () => {
      const error = decode(status, body);
      expect(error.kind).toBe('context_overflow');
      expect(error.retryable).toBe(false);
      const { body: message } = openaiChat.encodeError(error, 'req_1');
      expect((message.error as { code: string }).code).toBe('context_length_exceeded');
    });
  }
  for (const [vendor, status, body, kind, message] of CASES) {
    test(`${vendor}: HTTP ${status} is ${kind}`, () => {
      const error = decode(status, body);
      expect({ kind: error.kind, message: error.message, status: error.status }).toEqual({
        kind,
        message,
        status,
      });
      expect(error.fromUpstream).toBe(true);
    });
  }

  test('the wait is read from headers and bodies, in seconds', () => {
    expect(decode(429, e('x'), { 'retry-after': '12' }).retryAfter).toBe(12);
    expect(decode(429, e('x'), { 'retry-after-ms': '1500', 'retry-after': '9' }).retryAfter).toBe(
      1.5,
    );
    const date = new Date(Date.now() + 30_000).toUTCString();
    const wait = decode(429, e('x'), { 'retry-after': date }).retryAfter!;
    expect(wait).toBeGreaterThan(27);
    expect(wait).toBeLessThanOrEqual(30);
    const gemini = e('x', { details: [{ '@type': 'RetryInfo', retryDelay: '34.4s' }] });
    expect(decode(429, gemini).retryAfter).toBe(34.4);
    expect(decode(429, e('Please try again in 1m2.5s.')).retryAfter).toBe(62.5);
    expect(decode(429, e('Please try again in 120ms.')).retryAfter).toBe(0.12);
    for (const [words, seconds] of [
      // Azure, Kimi, LiteLLM, StepFun
      ['Please retry after 23 seconds.', 23],
      ['please try again after 1 seconds', 1],
      ['No deployments available for selected model, Try again in 5 seconds.', 5],
      ['request reached max RPM: 10, please try again after 60s', 60],
      ['please try again after 5 minutes', undefined],
    ] as const) {
      expect(decode(429, e(words)).retryAfter).toBe(seconds);
    }
    expect(decode(429, e('Please try again in a while')).retryAfter).toBeUndefined();
    expect(decode(429, e('x'), { 'retry-after': 'soon' }).retryAfter).toBeUndefined();
  });

  test('x-should-retry of the vendor is kept', () => {
    expect(decode(500, e('x'), { 'x-should-retry': 'false' }).retryable).toBe(false);
    expect(decode(400, e('x'), { 'x-should-retry': 'true' }).retryable).toBe(true);
  });

  test('an error with HTTP 200 is thrown, not taken for an answer', () => {
    const CASES200: readonly (readonly [unknown, ErrorKind])[] = [
      [{ error: { message: 'Provider returned error', code: 502 } }, 'upstream'],
      [{ error: { message: 'no', code: 429 } }, 'rate_limit'],
      [{ base_resp: { status_code: 1002, status_msg: 'rate limit' }, choices: null }, 'rate_limit'],
      [{ base_resp: { status_code: 1008, status_msg: 'insufficient balance' } }, 'billing'],
      [
        { base_resp: { status_code: 2013, status_msg: 'context window exceeds limit' } },
        'context_overflow',
      ],
      [
        { choices: [{ error: { code: 502, message: 'cut' }, message: { role: 'assistant' } }] },
        'upstream',
      ],
      [{ object: 'error', message: 'boom', type: 'InternalServerError', code: 500 }, 'upstream'],
    ];
    for (const [body, kind] of CASES200) {
      let thrown: unknown;
      try {
        openaiChat.decodeReply(body as never, upstream());
      } catch (error) {
        thrown = error;
      }
      expect(thrown).toBeInstanceOf(GatewayError);
      expect({ body, kind: (thrown as GatewayError).kind }).toEqual({ body, kind });
      expect((thrown as GatewayError).status).toBeGreaterThanOrEqual(400);
    }
    const fine = { base_resp: { status_code: 0, status_msg: '' }, error: null, choices: [] };
    expect(openaiChat.decodeReply(fine, upstream()).blocks).toEqual([]);
  });
});

describe('errors for clients', () => {
  test('headers hold the request id, the wait and whether to retry', () => {
    const error = new GatewayError('rate_limit', 'slow down', {
      retryAfter: 1.2,
      retryable: false,
    });
    expect(openaiChat.encodeError(error, 'req_9')).toEqual({
      status: 429,
      headers: { 'x-request-id': 'req_9', 'retry-after': '2', 'x-should-retry': 'false' },
      body: {
        error: {
          message: 'slow down',
          type: 'rate_limit_error',
          param: null,
          code: 'rate_limit_exceeded',
        },
      },
    });
  });

  test('an overload never has the code server_is_overloaded', () => {
    const { body, status } = openaiChat.encodeError(new GatewayError('overloaded', 'busy'), 'r');
    expect(status).toBe(503);
    expect(body.error).toEqual({
      message: 'busy',
      type: 'server_error',
      param: null,
      code: 'server_error',
    });
  });

  test('the official SDK throws the right error class for every kind', () => {
    const CLASSES: readonly (readonly [ErrorKind, unknown])[] = [
      ['invalid_request', OpenAI.BadRequestError],
      ['context_overflow', OpenAI.BadRequestError],
      ['authentication', OpenAI.AuthenticationError],
      ['permission', OpenAI.PermissionDeniedError],
      ['not_found', OpenAI.NotFoundError],
      ['conflict', OpenAI.ConflictError],
      ['rate_limit', OpenAI.RateLimitError],
      ['quota', OpenAI.RateLimitError],
      ['upstream', OpenAI.InternalServerError],
      ['overloaded', OpenAI.InternalServerError],
      ['timeout', OpenAI.InternalServerError],
    ];
    for (const [kind, type] of CLASSES) {
      const { status, body, headers } = openaiChat.encodeError(
        new GatewayError(kind, 'words'),
        'r',
      );
      const error = OpenAI.APIError.generate(status, body, undefined, new Headers(headers));
      expect(error).toBeInstanceOf(type as new () => Error);
      expect(error.message).toContain('words');
      expect(error.requestID).toBe('r');
    }
  });
});

test('models are listed in OpenAI form', () => {
  expect(openaiChat.encodeModels([{ id: 'm', provider: 'p', created: 3 }])).toEqual({
    object: 'list',
    data: [{ id: 'm', object: 'model', created: 3, owned_by: 'p' }],
  });
});
