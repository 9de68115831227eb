/** What a vendor's failure is called, to the client and in the log: a success in form, JSON of another kind, nothing at all. */

import { afterEach, describe, expect, test } from 'bun:test';
import type { SuiteProtocol as ProtocolName } from '../support/suite-protocols.ts';
import { beginning, head, type RawUpstream, rawUpstream, rawWorld, whole } from './raw-upstream.ts';

const KEY = 'sk-vendor-0123456789abcdef';
const PROTOCOLS: readonly ProtocolName[] = [
  'openai-chat',
  'openai-responses',
  'anthropic-messages',
];

let upstream: RawUpstream | undefined;
afterEach(() => upstream?.stop());

/** A gateway before one vendor, which answers with these bytes. */
function before(protocol: ProtocolName, bytes: string) {
  const started = rawUpstream(async (wire) => {
    await wire.write(bytes);
    wire.end();
  });
  upstream = started;
  return rawWorld(`
providers:
  p: { protocol: ${protocol}, base_url: "${started.url}", keys: ["${KEY}"], models: ["*"] }
retry: { attempts: 1 }
`);
}

const ERRORS: Readonly<Record<ProtocolName, string>> = {
  'openai-chat': `data: {"error":{"message":"Broken, ${KEY}","type":"server_error"}}\n\n`,
  'openai-responses': `event: response.failed\ndata: ${JSON.stringify({
    type: 'response.failed',
    sequence_number: 4,
    response: {
      id: 'r',
      object: 'response',
      status: 'failed',
      output: [],
      error: { code: 'server_error', message: `Broken, ${KEY}` },
    },
  })}\n\n`,
  'anthropic-messages': `event: error\ndata: ${JSON.stringify({
    type: 'error',
    error: { type: 'api_error', message: `Broken, ${KEY}` },
  })}\n\n`,
};

describe.each(PROTOCOLS)('%s', (protocol) => {
  test.each(PROTOCOLS)(
    'a vendor’s error event in the middle of a stream is in the summary of a client of %s',
    async (client) => {
      const bytes = head('text/event-stream') + beginning(protocol, 'Hello') + ERRORS[protocol];
      const { ask, summaries } = before(protocol, bytes);
      const { text } = await ask(client, true);
      expect(text).toContain('Broken, ***');
      expect(text).not.toContain(KEY);
      expect(summaries).toHaveLength(1);
      expect(summaries[0]!.error?.message).toContain('Broken, ***');
      expect(summaries[0]!.error?.message).not.toContain(KEY);
    },
  );

  test.each([false, true])(
    'JSON that is no answer is quoted without secrets (stream: %p)',
    async (stream) => {
      const { ask, summaries } = before(protocol, whole(200, `{"ok":false,"hint":"${KEY}"}`));
      const { status, text } = await ask(protocol, stream);
      expect(status).toBe(502);
      const { message } = (JSON.parse(text) as { error: { message: string } }).error;
      expect(message).toContain(`Provider p answered with JSON that is no answer in its protocol`);
      expect(message).toContain('{"ok":false,"hint":"***');
      expect(message).not.toContain(KEY);
      expect(summaries[0]!.error?.message).toBe(message);
    },
  );

  test.each([
    ['', 'an empty body'],
    ['{"id":"c","choices":[{"mess', 'broken JSON (27 characters)'],
  ])('a body %j is called what it is', async (body, words) => {
    const { ask } = before(protocol, whole(200, body));
    const { status, text } = await ask(protocol, false);
    expect(status).toBe(502);
    expect(text).toContain(`Provider p answered with ${words}.`);
  });
});

describe.each(PROTOCOLS)('%s', (protocol) => {
  test.each([
    '404 page not found',
    '<html><h1>404 Not Found</h1></html>',
    '',
    // FastAPI (vLLM, SGLang, LiteLLM), Spring, Express' error handlers.
    '{"detail":"Not Found"}',
    '{"timestamp":"2026-11-29T10:00:00Z","status":404,"error":"Not Found","path":"/x"}',
    '{"message":"Route POST:/x/chat/completions not found","error":"Not Found","statusCode":404}',
    // OpenAI, Groq
    '{"error":{"message":"Invalid URL (POST /v1/v1/chat/completions)","type":"invalid_request_error","param":null,"code":null}}',
    '{"error":{"message":"Unknown request URL: POST /x/chat/completions. Please check the URL for typos, or see the docs at https://console.groq.com/docs/","type":"invalid_request_error","code":"unknown_url"}}',
  ])('a 404 that says %j is about base_url, not about the model', async (body) => {
    for (const client of PROTOCOLS) {
      const { ask, summaries } = before(protocol, whole(404, body));
      const { status, text } = await ask(client, false);
      expect(status).toBe(502);
      expect(text).toContain('Provider p answered 404 without an error of an API.');
      expect(text).toContain('base_url');
      expect(text).not.toContain('model_not_found');
      expect(summaries[0]!.error?.kind).toBe('upstream');
      upstream?.stop();
    }
  });
});

// https://github.com/NousResearch/hermes-agent/issues/70566
test.each(PROTOCOLS)(
  '%s: a page with a 403 is about what stands before the API, not about the key',
  async (protocol) => {
    const page = '<!DOCTYPE html><html><head><title>Just a moment...</title></head></html>';
    const { ask, summaries, refusedKeys, health } = before(protocol, whole(403, page));
    const { status, text } = await ask(protocol, false);
    expect([status, summaries[0]!.error?.kind]).toEqual([502, 'upstream']);
    expect(text).toContain('Provider p answered 403 with a web page.');
    expect(refusedKeys).toEqual([]);
    expect(JSON.stringify(health())).not.toContain('key_refused');
  },
);

test.each([
  [424, 502],
  [425, 503],
  [499, 502],
])(
  'a status %i of a vendor that passes by itself is %i for clients, who ask again',
  async (sent, got) => {
    const { ask } = before('openai-chat', whole(sent, '{"error":{"message":"cancelled"}}'));
    const { status, text } = await ask('openai-chat', false);
    expect([status, text.includes('cancelled')]).toEqual([got, true]);
  },
);

test.each([
  ['DeepInfra', '{"detail":{"error":"Model is busy"}}', 'Model is busy'],
  [
    'watsonx',
    '{"errors":[{"code":"x","message":"No such project"}],"status_code":400}',
    'No such project',
  ],
  [
    'Workers AI',
    '{"success":false,"errors":[{"message":"AiError: no","code":5021}]}',
    'AiError: no',
  ],
])('the words of %s reach the client', async (_, body, words) => {
  const { ask } = before('openai-chat', whole(400, body));
  expect((await ask('openai-chat', false)).text).toContain(words);
});

test('a 404 in JSON is the vendor’s word about the model', async () => {
  const { ask } = before('openai-chat', whole(404, '{"error":{"message":"No model m here."}}'));
  const { status, text } = await ask('openai-chat', false);
  expect(status).toBe(404);
  expect(text).toContain('No model m here.');
});

test('a relay’s own error with status 200 means what its words and codes mean', async () => {
  for (const body of [
    '{"code":1302,"msg":"rate limit reached"}',
    '{"error_code":18,"error_msg":"rate limit reached"}',
  ]) {
    const { ask } = before('openai-chat', whole(200, body));
    const { status, text } = await ask('openai-chat', false);
    expect(status).toBe(429);
    expect(text).toContain('rate limit reached');
    upstream?.stop();
  }
});
