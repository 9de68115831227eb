/** Everything that goes wrong with Gemini, as client and as vendor, through the program itself. */

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import { ApiError, GoogleGenAI } from '@google/genai';
import type { Json } from '../../src/lib/json/json.ts';
import { allProviders, type Gateway, startGateway } from '../support/binary.ts';
import {
  contextOverflow,
  type FakeProtocol,
  type FakeUpstream,
  refuse,
  type Step,
  say,
  startFakeUpstream,
} from '../support/fake-upstream/index.ts';
import { type RawAnswer, rawPost } from '../support/raw-http.ts';
import { ALL_PROTOCOLS, PROTOCOLS, plainRequest, VIA } from './clients.ts';

const KEY = 'sk-door-0123456789';
const SLOW_KEY = 'sk-door-9876543210';

let upstream: FakeUpstream;
let gateway: Gateway;
let locked: Gateway;

beforeAll(async () => {
  upstream = await startFakeUpstream({ keys: ['sk-upstream'], models: ['m1', 'gemini-3-m1'] });
  gateway = await startGateway(
    allProviders(upstream, { retry: { attempts: 1, base_delay: 0.02, max_delay: 2 } }),
  );
  locked = await startGateway(
    allProviders(upstream, {
      limits: { body_bytes: 20_000 },
      auth: {
        keys: [
          { key: KEY, name: 'open' },
          { key: SLOW_KEY, name: 'slow', limits: { requests_per_minute: 1 } },
        ],
      },
    }),
  );
}, 120_000);
afterEach(() => upstream.clear());
afterAll(async () => {
  await gateway?.stop();
  await locked?.stop();
  await upstream?.stop();
});

/** How a client asks for its answer: whole, as SSE, or (Gemini) as a JSON array. */
type Form = 'whole' | 'sse' | 'array';
const METHODS: Readonly<Record<Form, string>> = {
  whole: 'generateContent',
  sse: 'streamGenerateContent?alt=sse',
  array: 'streamGenerateContent',
};
const FORMS: readonly Form[] = ['whole', 'sse', 'array'];
const formsOf = (client: FakeProtocol): readonly Form[] =>
  client === 'google-gemini' ? FORMS : ['whole', 'sse'];
const HI = JSON.stringify({ contents: [{ role: 'user', parts: [{ text: 'hi' }] }] });

const send = (
  url: string,
  body: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<RawAnswer> =>
  rawPost(url, body, {
    'content-type': 'application/json',
    'anthropic-version': '2023-06-01',
    ...headers,
  });

function ask(client: FakeProtocol, vendor: FakeProtocol, form: Form): Promise<RawAnswer> {
  if (client === 'google-gemini') {
    return send(`${gateway.url}/v1beta/models/${VIA[vendor]}:${METHODS[form]}`, HI);
  }
  const { path, body } = plainRequest(client, VIA[vendor], form === 'sse');
  return send(gateway.url + path, JSON.stringify(body));
}

interface GoogleError {
  readonly code: number;
  readonly message: string;
  readonly status: string;
  readonly details?: readonly Record<string, unknown>[];
}

/** The error of a whole answer, whose shape is that of the client's protocol. */
function errorOf(client: FakeProtocol, { text, status }: RawAnswer): { message: string } {
  const body = JSON.parse(text) as { type?: string; error: Record<string, unknown> };
  const { error } = body;
  expect(typeof error.message).toBe('string');
  if (client === 'google-gemini') {
    expect(error.code).toBe(status);
    expect(error.status).toMatch(/^[A-Z_]+$/);
  } else expect(error.type).toMatch(/^[a-z_]+$/);
  if (client === 'anthropic-messages') {
    expect(body.type).toBe('error');
    expect(error.code).toBeUndefined();
  }
  // Google's names are in capitals, the codes of the other protocols are not.
  if (client !== 'google-gemini') expect(text).not.toMatch(/"(?:code|type)":"[^"]*[A-Z]/);
  return { message: String(error.message) };
}

/** The error event in a stream of this protocol. */
const ERROR_EVENT: Readonly<Record<FakeProtocol, RegExp>> = {
  'openai-chat': /data: \{"error":\{"message":"/,
  'openai-responses': /"type":"response\.failed"/,
  'anthropic-messages': /event: error\ndata: \{"type":"error"/,
  'google-gemini': /\{"error":\{"code":\d{3},"message":"/,
};
/** What a stream ends with that came to its natural end. */
const TERMINAL: Readonly<Record<FakeProtocol, RegExp>> = {
  'openai-chat': /data: \[DONE\]|"finish_reason":"/,
  'openai-responses': /response\.(?:completed|incomplete)/,
  'anthropic-messages': /message_stop|"stop_reason":"/,
  'google-gemini': /"finishReason":"(?:STOP|MAX_TOKENS|SAFETY)"/,
};

const google = (code: number, status: string, message: string, details?: Json): Step =>
  refuse(code, undefined, {
    error: { code, message, status, ...(details === undefined ? {} : { details }) },
  });
const detail = (type: string, more: Record<string, Json>) => ({
  '@type': `type.googleapis.com/google.rpc.${type}`,
  ...more,
});

/** What Google answers, and the status for clients of OpenAI's protocols; of Messages, where it is another one. */
const REFUSALS: readonly [name: string, step: Step, status: number, messages?: number][] = [
  ['400', google(400, 'INVALID_ARGUMENT', 'Bad thing.'), 400],
  [
    '400 for its key',
    google(400, 'INVALID_ARGUMENT', 'API key not valid.', [
      detail('ErrorInfo', { reason: 'API_KEY_INVALID', domain: 'googleapis.com' }),
    ]),
    502,
  ],
  ['401', google(401, 'UNAUTHENTICATED', 'Invalid credentials.'), 502],
  ['403', google(403, 'PERMISSION_DENIED', 'Not allowed.'), 502],
  ['404', google(404, 'NOT_FOUND', 'models/x is not found for API version v1beta.'), 404],
  [
    '429 with RetryInfo',
    google(429, 'RESOURCE_EXHAUSTED', 'Slow down.', [detail('RetryInfo', { retryDelay: '34.4s' })]),
    429,
  ],
  ['500', google(500, 'INTERNAL', 'An internal error has occurred.'), 500],
  ['503', google(503, 'UNAVAILABLE', 'The model is overloaded.'), 503, 529],
  ['a page of HTML', refuse(502, { 'content-type': 'text/html' }, '<html>Bad</html>'), 502],
  ['a full context', contextOverflow('google-gemini'), 400],
];

describe('a refusal of Google', () => {
  for (const client of ALL_PROTOCOLS) {
    for (const form of formsOf(client)) {
      test.each(REFUSALS)(`%s, for ${client} (${form})`, async (...refusal) => {
        const [name, step, status, messages] = refusal;
        upstream.answerWith(() => step);
        const seen = await ask(client, 'google-gemini', form);
        expect(seen.broken).toBe(false);
        expect(seen.headers.get('content-type')).toContain('application/json');
        expect(seen.status).toBe((client === 'anthropic-messages' && messages) || status);
        const { message } = errorOf(client, seen);
        expect(seen.text).not.toContain('sk-upstream');
        if (name.startsWith('429')) expect(seen.headers.get('retry-after')).toBe('35');
        if (name === '404') expect(message).toContain('models/x is not found');
        if (name === 'a full context' && client === 'anthropic-messages') {
          expect(message).toStartWith('prompt is too long');
        }
      });
    }
  }

  test('the name of a status always is that of the HTTP status', async () => {
    const NAMED: Readonly<Record<number, string>> = {
      400: 'INVALID_ARGUMENT',
      404: 'NOT_FOUND',
      429: 'RESOURCE_EXHAUSTED',
      500: 'INTERNAL',
      502: 'INTERNAL',
      503: 'UNAVAILABLE',
    };
    for (const [, step, status] of REFUSALS) {
      upstream.answerWith(() => step);
      const seen = await ask('google-gemini', 'google-gemini', 'whole');
      const { error } = JSON.parse(seen.text) as { error: GoogleError };
      expect(seen.status).toBe(status);
      expect(error).toMatchObject({ code: status, status: NAMED[status] });
    }
    const key = { error: { message: 'Bad key.', type: 'authentication_error' } };
    upstream.answerWith(() => refuse(401, {}, JSON.stringify(key)));
    const seen = await ask('google-gemini', 'openai-chat', 'whole');
    expect(JSON.parse(seen.text)).toMatchObject({ error: { code: 502, status: 'INTERNAL' } });
  });

  test('the wait of RetryInfo stays for a client of Google', async () => {
    upstream.answerWith(() => REFUSALS[5]![1]);
    const { text } = await ask('google-gemini', 'google-gemini', 'whole');
    const { error } = JSON.parse(text) as { error: GoogleError };
    expect(error.details).toEqual([detail('RetryInfo', { retryDelay: '34.4s' })]);
  });
});

describe('a refusal of another vendor is in Google’s shape', () => {
  for (const vendor of PROTOCOLS) {
    for (const form of FORMS) {
      test.each([
        [400, 400, 'INVALID_ARGUMENT'],
        [404, 404, 'NOT_FOUND'],
        [429, 429, 'RESOURCE_EXHAUSTED'],
        [500, 500, 'INTERNAL'],
        [503, 503, 'UNAVAILABLE'],
      ])(`%d of ${vendor} (${form})`, async (given, status, name) => {
        upstream.answerWith(() => refuse(given, given === 429 ? { 'retry-after': '3600' } : {}));
        const seen = await ask('google-gemini', vendor, form);
        expect(seen.status).toBe(status);
        errorOf('google-gemini', seen);
        const { error } = JSON.parse(seen.text) as { error: GoogleError };
        expect(error.status).toBe(name);
        if (given !== 429) return;
        const [info] = (error.details ?? []).filter(({ retryDelay }) => retryDelay !== undefined);
        expect(Number.parseFloat(String(info?.retryDelay))).toBeGreaterThan(3000);
      });
    }

    test(`a context too long for ${vendor} is said in the words that Google’s clients know`, async () => {
      upstream.answerWith(() => contextOverflow(vendor));
      const seen = await ask('google-gemini', vendor, 'sse');
      expect(seen.status).toBe(400);
      expect(errorOf('google-gemini', seen).message).toMatch(
        /input token count.*exceeds the maximum number of tokens/,
      );
    });
  }
});

const TEXT = 'A text that is long enough to be cut somewhere in its middle.';

describe('a stream that breaks off never ends cleanly', () => {
  const pairs = [
    ...ALL_PROTOCOLS.map((client) => [client, 'google-gemini'] as const),
    ...PROTOCOLS.map((vendor) => ['google-gemini', vendor] as const),
  ];
  for (const [client, vendor] of pairs) {
    for (const form of formsOf(client).filter((one) => one !== 'whole')) {
      test.each(['reset', 'truncate', 'end', 'error'] as const)(
        `${client} on ${vendor}, cut by %s (${form})`,
        async (by) => {
          upstream.enqueue(say(TEXT, { delivery: { piece: 4, cut: { at: 0.7, by } } }));
          const seen = await ask(client, vendor, form);
          expect(seen.text).toContain('A te');
          expect(seen.text).not.toMatch(TERMINAL[client]);
          expect(seen.text).toMatch(ERROR_EVENT[client]);
          // A vendor's own error event ends its stream; anything else is reset.
          if (by !== 'error') expect(seen.broken).toBe(true);
          if (form === 'array' && seen.broken) expect(() => JSON.parse(seen.text)).toThrow();
        },
      );
    }
  }
});

/** One chunk, or a whole answer: some text, and how it ended. */
const ended = (
  finishReason: string,
  text: string | undefined,
  more: Record<string, Json> = {},
) => ({
  candidates: [
    {
      content: { role: 'model', parts: text === undefined ? [] : [{ text }] },
      finishReason,
      index: 0,
      ...more,
    },
  ],
  usageMetadata: { promptTokenCount: 5, totalTokenCount: 5 },
  modelVersion: 'gemini-3-m1',
  responseId: 'r1',
});
const answer = (body: Json, form: Form): Step =>
  form === 'whole'
    ? { raw: JSON.stringify(body), contentType: 'application/json' }
    : { raw: `data: ${JSON.stringify(body)}\r\n\r\n` };

/** Google's reason, and what clients of the other protocols are told. */
const REASONS: readonly [reason: string, chat: string, messages: string, gemini: string][] = [
  ['STOP', 'stop', 'end_turn', 'STOP'],
  ['MAX_TOKENS', 'length', 'max_tokens', 'MAX_TOKENS'],
  ...[
    'SAFETY',
    'RECITATION',
    'LANGUAGE',
    'BLOCKLIST',
    'PROHIBITED_CONTENT',
    'SPII',
    'MODEL_ARMOR',
    'IMAGE_SAFETY',
    'IMAGE_PROHIBITED_CONTENT',
    'IMAGE_RECITATION',
  ].map(
    (reason) => [reason, 'content_filter', 'refusal', reason] as [string, string, string, string],
  ),
  ['NO_IMAGE', 'stop', 'end_turn', 'NO_IMAGE'],
  ['A_NEW_REASON', 'stop', 'end_turn', 'A_NEW_REASON'],
];
const FAILURES = [
  'OTHER',
  'MALFORMED_FUNCTION_CALL',
  'UNEXPECTED_TOOL_CALL',
  'TOO_MANY_TOOL_CALLS',
  'MALFORMED_RESPONSE',
  'IMAGE_OTHER',
  'MISSING_THOUGHT_SIGNATURE',
];

describe('how Google’s answer ended', () => {
  for (const form of ['whole', 'sse'] as const) {
    test.each(REASONS)(`%s (${form})`, async (reason, chat, messages, gemini) => {
      upstream.answerWith(() => answer(ended(reason, 'Some'), form));
      const [forChat, forResponses, forMessages, forGemini] = await Promise.all(
        ALL_PROTOCOLS.map((client) => ask(client, 'google-gemini', form)),
      );
      expect(forChat!.text).toContain(`"finish_reason":"${chat}"`);
      expect(forMessages!.text).toContain(`"stop_reason":"${messages}"`);
      const incomplete = { length: 'max_output_tokens', content_filter: 'content_filter' }[chat];
      expect(forResponses!.text).toContain(
        incomplete === undefined
          ? '"status":"completed"'
          : `"incomplete_details":{"reason":"${incomplete}"}`,
      );
      expect(forGemini!.text).toContain(`"finishReason":"${gemini}"`);
      // Messages has a form of its own for why it refused; no other protocol's members are in it.
      expect(forMessages!.text).not.toContain('finishReason"');
      if (messages === 'refusal') {
        expect(forMessages!.text).toContain(
          `"stop_details":{"type":"refusal","category":null,"explanation":"The answer ended with finishReason ${reason}."}`,
        );
      }
    });

    // https://github.com/minimaxir/gemimg/issues/5: an image was asked for, and none came.
    test.each([
      ['NO_IMAGE', 'The model did not generate an image.'],
      ['NO_IMAGE', undefined],
      ['STOP', 'The model produced no output.'],
    ])(
      `nothing at all, with %s and %s, is an error that says why (${form})`,
      async (reason, said) => {
        for (const client of ALL_PROTOCOLS) {
          upstream.answerWith(() =>
            answer(ended(reason, undefined, said ? { finishMessage: said } : {}), form),
          );
          const seen = await ask(client, 'google-gemini', form);
          expect([client, seen.status]).toEqual([client, 502]);
          expect(seen.text).toContain(said ?? reason);
        }
      },
    );

    for (const text of ['Some', undefined]) {
      const how = text === undefined ? 'without text' : 'after text';
      test.each(FAILURES)(`%s ${how} is an error (${form})`, async (reason) => {
        for (const client of ALL_PROTOCOLS) {
          upstream.answerWith(() => answer(ended(reason, text), form));
          const seen = await ask(client, 'google-gemini', form);
          if (seen.status !== 200) {
            errorOf(client, seen);
            continue;
          }
          // The text was on its way when the reason came.
          expect([form, text]).toEqual(['sse', 'Some']);
          if (client === 'google-gemini') {
            // Its own clients get what Google sent.
            expect(seen.text).toContain(`"finishReason":"${reason}"`);
            continue;
          }
          expect(seen.text).toContain('Some');
          expect(seen.text).toMatch(ERROR_EVENT[client]);
          expect(seen.text).not.toMatch(TERMINAL[client]);
          expect(seen.broken).toBe(true);
        }
      });
    }

    test(`a blocked prompt (${form})`, async () => {
      const blocked = {
        promptFeedback: { blockReason: 'PROHIBITED_CONTENT' },
        usageMetadata: { promptTokenCount: 5, totalTokenCount: 5 },
      };
      upstream.answerWith(() => answer(blocked, form));
      const [forChat, forResponses, forMessages, forGemini] = await Promise.all(
        ALL_PROTOCOLS.map((client) => ask(client, 'google-gemini', form)),
      );
      expect(forChat!.text).toContain('"finish_reason":"content_filter"');
      expect(forResponses!.text).toContain('"incomplete_details":{"reason":"content_filter"}');
      expect(forMessages!.text).toContain(
        '"explanation":"The prompt was blocked with blockReason PROHIBITED_CONTENT."',
      );
      expect(forGemini!.text).toContain('"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"}');
      expect(forGemini!.text).not.toContain('finishReason');
    });
  }

  test('a refusal of Claude has Google’s reason, with the words', async () => {
    const delta = {
      stop_reason: 'refusal',
      stop_sequence: null,
      stop_details: { type: 'refusal', category: 'cyber', explanation: 'Not this.' },
    };
    const message = {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'm1',
      content: [{ type: 'text', text: 'No' }],
      ...delta,
      usage: { input_tokens: 1, output_tokens: 1 },
    };
    upstream.enqueue({ raw: JSON.stringify(message), contentType: 'application/json' });
    const { text } = await ask('google-gemini', 'anthropic-messages', 'whole');
    expect(text).toContain('"finishReason":"SAFETY","finishMessage":"Not this."');
  });
});

const partOf = (part: object) => JSON.stringify({ contents: [{ parts: [part] }] });
const TWO_CONTENTS = partOf({ text: 'Look.', functionCall: { name: 'look', args: {} } });
const BAD_SIGNATURE = partOf({ text: 'Look.', thoughtSignature: '*' });
const DEEP = `{"contents":${'['.repeat(8000)}`;

describe('what the gateway itself refuses is in Google’s shape', () => {
  const url = (method: string, model = 'via-gemini') =>
    `${locked.url}/v1beta/models/${model}:${method}`;
  const own = { 'x-goog-api-key': KEY };
  const big = JSON.stringify({ contents: [{ parts: [{ text: 'x'.repeat(30_000) }] }] });

  for (const method of [...Object.values(METHODS), 'countTokens']) {
    test.each<[string, string, Record<string, string>, string, number, string]>([
      ['a wrong key', HI, { 'x-goog-api-key': 'sk-wrong' }, 'via-gemini', 401, 'UNAUTHENTICATED'],
      ['no key', HI, {}, 'via-gemini', 401, 'UNAUTHENTICATED'],
      ['bad JSON', '{"contents": [', own, 'via-gemini', 400, 'INVALID_ARGUMENT'],
      ['no body', '', own, 'via-gemini', 400, 'INVALID_ARGUMENT'],
      ['a wrong field', '{"contents":7}', own, 'via-chat', 400, 'INVALID_ARGUMENT'],
      ['a list', '[]', own, 'via-chat', 400, 'INVALID_ARGUMENT'],
      ['nesting without end', DEEP, own, 'via-chat', 400, 'INVALID_ARGUMENT'],
      ['two contents in one part', TWO_CONTENTS, own, 'via-chat', 400, 'INVALID_ARGUMENT'],
      ['a signature that is none', BAD_SIGNATURE, own, 'via-gemini', 400, 'INVALID_ARGUMENT'],
      ['a large body', big, own, 'via-gemini', 413, 'INVALID_ARGUMENT'],
      ['an unknown model', HI, own, 'nowhere', 404, 'NOT_FOUND'],
    ])(`%s (${method})`, async (_name, body, headers, model, status, name) => {
      const seen = await send(url(method, model), body, headers);
      expect(seen.status).toBe(status);
      expect(seen.headers.get('content-type')).toContain('application/json');
      errorOf('google-gemini', seen);
      expect((JSON.parse(seen.text) as { error: GoogleError }).error.status).toBe(name);
      expect(upstream.received).toHaveLength(0);
    });
  }

  test('a limit of the key, with the wait', async () => {
    const slow = { 'x-goog-api-key': SLOW_KEY };
    expect((await send(url(METHODS.sse), HI, slow)).status).toBe(200);
    for (const form of FORMS) {
      const seen = await send(url(METHODS[form]), HI, slow);
      expect(seen.status).toBe(429);
      errorOf('google-gemini', seen);
      const { error } = JSON.parse(seen.text) as { error: GoogleError };
      expect(error.status).toBe('RESOURCE_EXHAUSTED');
      const wait = (error.details ?? []).find(({ retryDelay }) => retryDelay !== undefined);
      expect(`${seen.headers.get('retry-after')}s`).toBe(String(wait?.retryDelay));
    }
  });

  test('no key names the header of Google’s clients', async () => {
    expect((await send(url('generateContent'), HI)).text).toContain('x-goog-api-key');
  });
});

describe('the official SDK', () => {
  const sdk = (apiKey: string) =>
    new GoogleGenAI({
      apiKey,
      httpOptions: { baseUrl: locked.url, retryOptions: { attempts: 1 } },
    });
  const request = (model: string) => ({ model, contents: 'hi' });
  const caught = async (run: () => Promise<unknown>): Promise<ApiError> => {
    const thrown = await run().then(
      () => undefined,
      (error: unknown) => error,
    );
    expect(thrown).toBeInstanceOf(ApiError);
    return thrown as ApiError;
  };

  for (const vendor of ALL_PROTOCOLS) {
    test(`reads answers and errors of ${vendor}`, async () => {
      const { models } = sdk(KEY);
      upstream.answerWith(() => say('Hello.'));
      const whole = await models.generateContent(request(VIA[vendor]));
      expect(whole.text).toBe('Hello.');
      const chunks = await Array.fromAsync(
        await models.generateContentStream(request(VIA[vendor])),
      );
      expect(chunks.map(({ text }) => text ?? '').join('')).toBe('Hello.');
      upstream.answerWith(() => refuse(400, {}, undefined));
      const refused = await caught(() => models.generateContent(request(VIA[vendor])));
      expect(refused.status).toBe(400);
      const early = await caught(() => models.generateContentStream(request(VIA[vendor])));
      expect(early.status).toBe(400);
      const cut = { at: 0.7, by: 'end' } as const;
      upstream.answerWith(() => say(TEXT, { delivery: { piece: 4, cut } }));
      const read = async () =>
        Array.fromAsync(await models.generateContentStream(request(VIA[vendor])));
      await expect(read()).rejects.toThrow();
    });
  }

  test('reads the gateway’s own errors', async () => {
    const wrong = await caught(() => sdk('sk-wrong').models.generateContent(request('via-gemini')));
    expect(wrong.status).toBe(401);
    const unknown = await caught(() => sdk(KEY).models.generateContentStream(request('nowhere')));
    expect(unknown.status).toBe(404);
    expect(unknown.message).toContain('nowhere');
  });
});
