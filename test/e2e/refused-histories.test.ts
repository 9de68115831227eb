/** A refusal that every later turn of an agent would meet ends no session: every client, whole and streamed, through the binary. */

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import type { Json, JsonObject } from '../../src/lib/json/json.ts';
import { allProviders, type Gateway, startGateway } from '../support/binary.ts';
import {
  type FakeProtocol,
  type FakeUpstream,
  refuse,
  say,
  startFakeUpstream,
} from '../support/fake-upstream/index.ts';
import { ALL_PROTOCOLS, VIA } from './clients.ts';

let upstream: FakeUpstream;
let gateway: Gateway;

/** A gateway that has learnt nothing yet. */
function withGateway(): void {
  beforeAll(async () => {
    upstream = await startFakeUpstream({
      models: ['m1', 'gemini-3-m1'],
      anySeal: true,
      lenientFields: true,
    });
    gateway = await startGateway(allProviders(upstream));
  }, 120_000);
  afterEach(() => upstream.clear());
  afterAll(async () => {
    await gateway?.stop();
    await upstream?.stop();
  });
}

/** What was said, called and found: a text, and a call in a message of its own. */
const SESSIONS: Readonly<Record<FakeProtocol, JsonObject>> = {
  'openai-chat': {
    messages: [
      { role: 'user', content: 'go' },
      { role: 'assistant', content: 'I look.' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [
          { id: 'call_1', type: 'function', function: { name: 'look', arguments: '{}' } },
        ],
      },
      { role: 'tool', tool_call_id: 'call_1', content: 'found' },
    ],
    tools: [{ type: 'function', function: { name: 'look', parameters: { type: 'object' } } }],
  },
  'openai-responses': {
    input: [
      { role: 'user', content: 'go' },
      { role: 'assistant', content: 'I look.' },
      { type: 'function_call', call_id: 'call_1', name: 'look', arguments: '{}' },
      { type: 'function_call_output', call_id: 'call_1', output: 'found' },
    ],
    tools: [{ type: 'function', name: 'look', parameters: { type: 'object' }, strict: false }],
  },
  'anthropic-messages': {
    max_tokens: 100,
    messages: [
      { role: 'user', content: 'go' },
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'I look.' },
          { type: 'tool_use', id: 'toolu_1', name: 'look', input: {} },
        ],
      },
      {
        role: 'user',
        content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'found' }],
      },
    ],
    tools: [{ name: 'look', input_schema: { type: 'object' } }],
  },
  'google-gemini': {
    contents: [
      { role: 'user', parts: [{ text: 'go' }] },
      { role: 'model', parts: [{ text: 'I look.' }, { functionCall: { name: 'look', args: {} } }] },
      {
        role: 'user',
        parts: [{ functionResponse: { name: 'look', response: { output: 'found' } } }],
      },
    ],
    tools: [{ functionDeclarations: [{ name: 'look', parametersJsonSchema: { type: 'object' } }] }],
  },
};

const PATHS: Readonly<Record<FakeProtocol, (model: string, stream: boolean) => string>> = {
  'openai-chat': () => '/v1/chat/completions',
  'openai-responses': () => '/v1/responses',
  'anthropic-messages': () => '/v1/messages',
  'google-gemini': (model, stream) =>
    `/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
};

function ask(client: FakeProtocol, model: string, stream: boolean, headers = {}) {
  const session = SESSIONS[client];
  const body = client === 'google-gemini' ? session : { ...session, model, stream };
  return fetch(gateway.url + PATHS[client](model, stream), {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
}

const spoken = ({ messages }: JsonObject): JsonObject[] =>
  (messages as JsonObject[]).filter(({ role }) => role === 'assistant');

/** Each refuses the first kind of history until it is mended, in the vendor's own form. */
interface Refusal {
  readonly who: string;
  readonly source: string;
  readonly vendor: FakeProtocol;
  readonly error: JsonObject;
  readonly isFaulty: (body: JsonObject) => boolean;
}

const mimo = 'The reasoning_content in the thinking mode must be passed back to the API.';
const REFUSALS: readonly Refusal[] = [
  {
    who: 'MiMo, which says what is wrong in `param`',
    source: 'https://github.com/chatboxai/chatbox/issues/3716',
    vendor: 'openai-chat',
    error: { error: { code: '400', message: 'Param Incorrect', param: mimo, type: '' } },
    isFaulty: (body) => spoken(body).some(({ reasoning_content: text }) => !text),
  },
  {
    who: 'MiMo, over Messages',
    source: 'https://github.com/agentscope-ai/QwenPaw/issues/4314',
    vendor: 'anthropic-messages',
    error: { error: { code: '400', message: 'Param Incorrect', param: mimo, type: '' } },
    isFaulty: (body) =>
      spoken(body).some(({ content }) => (content as JsonObject[])[0]?.type !== 'thinking'),
  },
  {
    who: 'DeepSeek, of a text before the calls of a turn',
    source: 'https://github.com/experientiallabs/experiential/pull/890',
    vendor: 'openai-chat',
    error: {
      error: {
        message: 'The `reasoning_content` in the thinking mode must be passed back to the API.',
        type: 'invalid_request_error',
        param: null,
        code: 'invalid_request_error',
      },
    },
    isFaulty: (body) => spoken(body).some(({ reasoning_content: text }) => !text),
  },
];

describe.each(REFUSALS)('$who', ({ vendor, error, isFaulty }) => {
  withGateway();
  for (const client of ALL_PROTOCOLS) {
    test.each([true, false])(`a ${client} client goes on, streamed: %p`, async (stream) => {
      upstream.answerWith(({ body }) =>
        isFaulty(body as JsonObject) ? refuse(400, {}, error as Json) : say('On we go.'),
      );
      const answer = await ask(client, VIA[vendor], stream);
      expect(answer.status).toBe(200);
      expect(await answer.text()).toContain('On we go.');
    });
  }

  test('and is not refused again', async () => {
    let refused = 0;
    upstream.answerWith(({ body }) => {
      if (!isFaulty(body as JsonObject)) return say('On we go.');
      refused++;
      return refuse(400, {}, error as Json);
    });
    expect((await ask('anthropic-messages', VIA[vendor], false)).status).toBe(200);
    expect(refused).toBe(0);
  });
});

describe('betas that a relay does not take', () => {
  withGateway();
  const BOTH = 'prompt-caching-scope-2026-01-05,interleaved-thinking-2025-05-14';
  test.each([
    [
      'named, https://github.com/QuantumNous/new-api/issues/2975',
      'Unexpected value(s) `prompt-caching-scope-2026-01-05`, `structured-outputs-2025-12-15` for the `anthropic-beta` header. Please consult our documentation at docs.anthropic.com or try again without the header.',
    ],
    ['not named, https://github.com/anthropics/claude-code/issues/49370', 'invalid beta flag'],
  ])('%s: the others are sent again', async (_, message) => {
    const asked: (string | null)[] = [];
    upstream.answerWith(({ headers }) => {
      const flags = new Headers(headers).get('anthropic-beta');
      asked.push(flags);
      return flags?.includes('prompt-caching-scope')
        ? refuse(400, {}, { type: 'error', error: { type: 'invalid_request_error', message } })
        : say('On we go.');
    });
    const headers = { 'anthropic-beta': BOTH };
    const answer = await ask('anthropic-messages', VIA['anthropic-messages'], true, headers);
    expect(answer.status).toBe(200);
    expect(await answer.text()).toContain('On we go.');
    expect(asked.at(-1)).toBe('interleaved-thinking-2025-05-14');
  });
});
