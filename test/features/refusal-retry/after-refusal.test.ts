/** A request whose history the vendor refused is retried once, without the part that the refusal named. */

import { describe, expect, test } from 'bun:test';
import { refusalRetry } from '../../../src/features/refusal-retry/index.ts';
import { toolPairing } from '../../../src/features/tool-pairing/index.ts';
import { vendorFit } from '../../../src/features/vendor-fit/index.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { FINE, type Scripted, scriptedGateway } from '../../gateway/scripted.ts';

const FEATURES = [refusalRetry(), toolPairing];

/** Base64 of random-looking bytes, as genuine signatures are; shorter or plainer ones are never sent. */
const SEAL = (n: number) =>
  Buffer.from(Array.from({ length: 60 }, (_, i) => (i * 97 + n * 31 + 130) % 256)).toString(
    'base64',
  );

const refuse = (message: string, more: JsonObject = {}): Scripted => ({
  status: 400,
  json: { type: 'error', error: { type: 'invalid_request_error', message, ...more } },
});

const messagesAnswer: Scripted = {
  json: {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: [{ type: 'text', text: 'fine' }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: 1, output_tokens: 1 },
  },
};

const chatAnswer: Scripted = {
  json: {
    id: 'c',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', content: 'fine' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  },
};

const thinking = (n: number) => ({
  type: 'thinking',
  thinking: `thought ${n}`,
  signature: SEAL(n),
});
const use = (id: string) => ({ type: 'tool_use', id, name: 'read', input: {} });
const result = (id: string) => ({ type: 'tool_result', tool_use_id: id, content: `found ${id}` });

const loop = (more: JsonObject = {}) => ({
  model: 'm',
  max_tokens: 4000,
  tools: [{ name: 'read', input_schema: { type: 'object' } }],
  messages: [
    { role: 'user', content: 'go' },
    { role: 'assistant', content: [thinking(1), use('toolu_01')] },
    { role: 'user', content: [result('toolu_01')] },
    { role: 'assistant', content: [thinking(2), use('toolu_02')] },
    { role: 'user', content: [result('toolu_02')] },
  ],
  ...more,
});

interface Sent {
  readonly messages: readonly { readonly role: string; readonly content: unknown }[];
  readonly thinking?: unknown;
}

const types = (message: Sent['messages'][number] | undefined) =>
  ((message?.content ?? []) as { type: string }[]).map(({ type }) => type);

describe('calls without declared tools', () => {
  const REFUSALS = [
    'Requests which have `tool_use` or `tool_result` blocks in `messages` must define tools.',
    'The toolConfig field must be defined when using toolUse and toolResult content blocks.',
  ];

  test.each(REFUSALS)('are declared, and the model may not call them: %s', async (message) => {
    const gateway = scriptedGateway(
      'anthropic-messages',
      [refuse(message), messagesAnswer],
      FEATURES,
    );
    const { tools: _, ...body } = loop();
    const { status } = await gateway.ask('anthropic-messages', body);
    expect(status).toBe(200);
    expect(gateway.sent).toEqual([
      body,
      {
        ...body,
        tools: [{ name: 'read', input_schema: { type: 'object', properties: {} } }],
        tool_choice: { type: 'none' },
      },
    ]);
    expect(gateway.summaries[0]?.notes).toEqual([
      { name: 'tools_declared', where: '/tools', what: 'read' },
    ]);
  });
});

describe('signatures of thinking', () => {
  test('only the named block is removed, with a note that names its place', async () => {
    const gateway = scriptedGateway(
      'anthropic-messages',
      [refuse('messages.1.content.0: Invalid `signature` in `thinking` block'), messagesAnswer],
      FEATURES,
    );
    const answer = await gateway.ask('anthropic-messages', loop());
    expect(answer.status).toBe(200);
    const [first, second] = gateway.sent as Sent[];
    expect(first).toEqual(loop() as unknown as Sent);
    expect(types(second?.messages[1])).toEqual(['tool_use']);
    expect(types(second?.messages[3])).toEqual(['thinking', 'tool_use']);
    expect(gateway.summaries[0]?.notes).toContainEqual({
      name: 'stripped_after_refusal',
      where: '/messages/1/content/0',
      what: '1 reasoning block',
    });
  });

  test('a block bound to another prefix is removed with all reasoning after it', async () => {
    const message =
      'messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block.';
    const gateway = scriptedGateway(
      'anthropic-messages',
      [refuse(message), messagesAnswer],
      FEATURES,
    );
    await gateway.ask('anthropic-messages', loop());
    expect(JSON.stringify(gateway.sent[1])).not.toContain('"thinking"');
  });

  test('an error that names no block removes all reasoning and the thinking parameter', async () => {
    const message =
      '`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response.';
    const gateway = scriptedGateway(
      'anthropic-messages',
      [refuse(message), messagesAnswer],
      FEATURES,
    );
    const body = loop({ thinking: { type: 'enabled', budget_tokens: 1024 } });
    expect((await gateway.ask('anthropic-messages', body)).status).toBe(200);
    const second = gateway.sent[1] as Sent;
    expect(JSON.stringify(second.messages)).not.toContain('thinking');
    expect(second.thinking).toEqual({ type: 'disabled' });
  });

  test('a loop that does not begin with thinking goes out with thinking off', async () => {
    const message =
      'messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is enabled, a final `assistant` message must start with a thinking block';
    const gateway = scriptedGateway(
      'anthropic-messages',
      [refuse(message), messagesAnswer],
      FEATURES,
    );
    await gateway.ask('anthropic-messages', loop({ thinking: { type: 'adaptive' } }));
    const second = gateway.sent[1] as Sent;
    expect(second.thinking).toEqual({ type: 'disabled' });
    expect(JSON.stringify(second.messages)).not.toContain('thinking');
  });

  test.each([
    ['The encrypted content gAAA... could not be verified.', 'invalid_encrypted_content'],
    // https://github.com/anomalyco/opencode/issues/49116
    [
      'Error from provider (Console): Upstream request failed: [invalid_request_error] reasoning `encrypted_content` was not issued to this caller',
      null,
    ],
  ])('encrypted reasoning that cannot be verified is removed: %s', async (message, code) => {
    const call = { type: 'function_call', call_id: 'call_1', name: 'read', arguments: '{}' };
    const body = {
      model: 'm',
      input: [
        { role: 'user', content: 'go' },
        { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'gAAAAA' },
        call,
        { type: 'function_call_output', call_id: 'call_1', output: 'found' },
      ],
    };
    const refusal: Scripted = {
      status: 400,
      json: {
        error: {
          message,
          type: 'invalid_request_error',
          param: null,
          code,
        },
      },
    };
    const gateway = scriptedGateway(
      'openai-responses',
      [refusal, FINE['openai-responses']],
      FEATURES,
    );
    expect((await gateway.ask('openai-responses', body)).status).toBe(200);
    expect((gateway.sent[1] as { input: unknown[] }).input).toEqual([
      body.input[0],
      call,
      body.input[3],
    ]);
  });
});

const chatCall = (id: string, more: JsonObject = {}) => ({
  id,
  type: 'function',
  function: { name: 'read', arguments: '{}' },
  ...more,
});

const chatLoop = (more: JsonObject = {}) => ({
  model: 'm',
  messages: [
    { role: 'user', content: 'go' },
    { role: 'assistant', content: 'first', tool_calls: [chatCall('call_a', more)] },
    { role: 'tool', tool_call_id: 'call_a', content: 'found a' },
    { role: 'assistant', content: null, tool_calls: [chatCall('call_b'), chatCall('call_c')] },
    { role: 'tool', tool_call_id: 'call_b', content: 'found b' },
    { role: 'tool', tool_call_id: 'call_c', content: 'found c' },
  ],
});

describe('reasoning that a vendor wants back', () => {
  for (const message of [
    'The `reasoning_content` in the thinking mode must be passed back to the API.',
    'thinking is enabled but reasoning_content is missing in assistant tool call message at index 1',
  ]) {
    test(`every answer with calls gets a placeholder: ${message.slice(0, 30)}`, async () => {
      const gateway = scriptedGateway('openai-chat', [refuse(message), chatAnswer], FEATURES);
      expect((await gateway.ask('openai-chat', chatLoop())).status).toBe(200);
      const { messages } = gateway.sent[1] as { messages: JsonObject[] };
      expect(messages[1]).toEqual({ ...chatLoop().messages[1]!, reasoning_content: ' ' });
      expect(messages[3]).toMatchObject({ reasoning_content: ' ' });
      expect(messages[4]).toEqual(chatLoop().messages[4]!);
    });
  }

  test('each call gets a reasoning item before it, where Responses wants it', async () => {
    const item = (id: string) => ({
      type: 'function_call',
      call_id: id,
      name: 'read',
      arguments: '{}',
    });
    const found = (id: string) => ({ type: 'function_call_output', call_id: id, output: 'x' });
    const message = 'The `reasoning_text` in the thinking mode must be passed back to the API.';
    const gateway = scriptedGateway(
      'openai-responses',
      [refuse(message), refuse('enough')],
      FEATURES,
      '',
      { name: 'deepseek', profile: 'deepseek' },
    );
    await gateway.ask('openai-responses', {
      model: 'deepseek-v4',
      input: [{ role: 'user', content: 'go' }, item('a1'), item('b1'), found('a1'), found('b1')],
    });
    const { input } = gateway.sent[1] as { input: JsonObject[] };
    expect(input.map(({ type }) => type ?? 'message')).toEqual([
      'message',
      'reasoning',
      'function_call',
      'reasoning',
      'function_call',
      'function_call_output',
      'function_call_output',
    ]);
  });

  test('each answer with calls gets unsigned thinking, where DeepSeek speaks Messages', async () => {
    const message = 'The `content[].thinking` in the thinking mode must be passed back to the API.';
    const body = {
      ...loop(),
      messages: [
        { role: 'user', content: 'go' },
        { role: 'assistant', content: [use('toolu_01')] },
        { role: 'user', content: [result('toolu_01')] },
      ],
    };
    const gateway = scriptedGateway(
      'anthropic-messages',
      [refuse(message), messagesAnswer],
      [...FEATURES, vendorFit()],
    );
    expect((await gateway.ask('anthropic-messages', body)).status).toBe(200);
    const [first, second] = gateway.sent as { messages: JsonObject[] }[];
    expect(first!.messages).toEqual(body.messages);
    expect(second!.messages[1]!.content).toEqual([
      { type: 'thinking', thinking: ' ', signature: '' },
      use('toolu_01'),
    ]);
  });

  const UNSIGNED =
    'Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly.';
  const inRaw = (raw: string) => ({
    status: 400,
    json: {
      error: {
        message: 'Provider returned error',
        code: 400,
        metadata: { raw, provider_name: 'Google AI Studio' },
      },
    },
  });
  const google = { error: { code: 400, message: UNSIGNED, status: 'INVALID_ARGUMENT' } };
  test.each([
    ['as it is', refuse(UNSIGNED)],
    ['as JSON within metadata.raw', inRaw(JSON.stringify(google))],
    ['as a list of JSON within metadata.raw', inRaw(JSON.stringify([google]))],
    ['as text within metadata.raw', inRaw(UNSIGNED)],
  ])(
    'a call without a thought signature gets the unchecked one: refused %s',
    async (_, refused) => {
      const gateway = scriptedGateway('openai-chat', [refused, chatAnswer], FEATURES);
      const body = chatLoop({
        extra_content: { google: { thought_signature: 'of-another-model' } },
      });
      expect((await gateway.ask('openai-chat', body)).status).toBe(200);
      const { messages } = gateway.sent[1] as { messages: { tool_calls: JsonObject[] }[] };
      const unchecked = { google: { thought_signature: 'skip_thought_signature_validator' } };
      expect(messages[1]?.tool_calls[0]?.extra_content).toEqual(unchecked);
      expect(messages[3]?.tool_calls.map((call) => call.extra_content)).toEqual([
        unchecked,
        undefined,
      ]);
    },
  );
});

describe('pairs', () => {
  test('only the named calls are removed; their results become text', async () => {
    const message =
      "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: call_b";
    const gateway = scriptedGateway('openai-chat', [refuse(message), chatAnswer], FEATURES);
    expect((await gateway.ask('openai-chat', chatLoop())).status).toBe(200);
    const { messages } = gateway.sent[1] as { messages: JsonObject[] };
    expect(messages.slice(0, 3)).toEqual(chatLoop().messages.slice(0, 3) as JsonObject[]);
    const rest = JSON.stringify(messages.slice(3));
    expect(rest).not.toContain('call_b');
    expect(rest).toContain('Result of an earlier tool call: found b');
    expect(messages.find((m) => m.role === 'tool' && m.tool_call_id === 'call_c')).toBeDefined();
  });

  test('an error without an id removes all calls and keeps texts and results', async () => {
    const message =
      'Please ensure that function call turn comes immediately after a user turn or after a function response turn.';
    const gateway = scriptedGateway('openai-chat', [refuse(message), chatAnswer], FEATURES);
    expect((await gateway.ask('openai-chat', chatLoop())).status).toBe(200);
    const text = JSON.stringify(gateway.sent[1]);
    expect(text).not.toContain('tool_call');
    for (const word of ['first', 'found a', 'found b', 'found c']) expect(text).toContain(word);
  });

  test('a Messages refusal by id leaves the other rounds alone', async () => {
    const message =
      'messages.3: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_02. Each `tool_use` block must have a corresponding `tool_result` block in the next message.';
    const gateway = scriptedGateway(
      'anthropic-messages',
      [refuse(message), messagesAnswer],
      FEATURES,
    );
    expect((await gateway.ask('anthropic-messages', loop())).status).toBe(200);
    const { messages } = gateway.sent[1] as Sent;
    expect(messages.slice(0, 2)).toEqual(loop().messages.slice(0, 2));
    expect(types(messages[2])).toEqual(['tool_result', 'text']);
    expect(JSON.stringify(messages)).not.toContain('"toolu_02"');
    expect(JSON.stringify(messages.at(-1))).toContain('found toolu_02');
  });
});

describe('each refusal once', () => {
  const message = 'messages.1.content.0: Invalid `signature` in `thinking` block';

  test('a refusal in the same words again goes to the client', async () => {
    const gateway = scriptedGateway(
      'anthropic-messages',
      [refuse(message), refuse(message), messagesAnswer],
      FEATURES,
    );
    const answer = await gateway.ask('anthropic-messages', loop());
    expect(answer.status).toBe(400);
    expect(answer.text).toContain('messages.1.content.0');
    expect(gateway.sent).toHaveLength(2);
  });

  test('what the vendor names next is removed, too, and what it named first stays removed', async () => {
    const gateway = scriptedGateway(
      'anthropic-messages',
      [
        refuse(message),
        refuse('messages.3.content.0: Invalid `signature` in `thinking` block'),
        messagesAnswer,
      ],
      FEATURES,
    );
    expect((await gateway.ask('anthropic-messages', loop())).status).toBe(200);
    const [, , third] = gateway.sent as Sent[];
    expect(types(third?.messages[1])).toEqual(['tool_use']);
    expect(types(third?.messages[3])).toEqual(['tool_use']);
  });

  test('a vendor that names another place each time is asked five times at most', async () => {
    const refused = (n: number) =>
      refuse(`messages.${n}.content.0: Invalid \`signature\` in \`thinking\` block`);
    const gateway = scriptedGateway(
      'anthropic-messages',
      [1, 3, 5, 7, 9, 11, 13].map(refused),
      FEATURES,
    );
    expect((await gateway.ask('anthropic-messages', loop())).status).toBe(400);
    expect(gateway.sent).toHaveLength(5);
  });

  test('a transient fault after the repair is retried with the repaired history', async () => {
    const busy: Scripted = { status: 503, json: { error: { message: 'busy' } } };
    const gateway = scriptedGateway(
      'anthropic-messages',
      [refuse(message), busy, messagesAnswer],
      FEATURES,
    );
    expect((await gateway.ask('anthropic-messages', loop())).status).toBe(200);
    expect(gateway.sent).toHaveLength(3);
    expect(gateway.sent[2]).toEqual(gateway.sent[1]);
  });

  for (const unrelated of [
    'max_tokens: must be greater than `thinking.budget_tokens`',
    'messages: text content blocks must be non-empty',
    'Invalid model name',
    "Invalid 'messages[2].tool_calls[0].id': string too long.",
    'prompt is too long: 250000 tokens > 200000 maximum',
    'tools.0.input_schema: Field required',
  ]) {
    test(`not retried: ${unrelated}`, async () => {
      const gateway = scriptedGateway('anthropic-messages', [refuse(unrelated)], FEATURES);
      const answer = await gateway.ask('anthropic-messages', loop());
      expect(answer.status).toBe(400);
      expect(gateway.sent).toHaveLength(1);
    });
  }

  test('the same message in a 500 or a 403 is not a refusal of the history', async () => {
    const denied: Scripted = { status: 403, json: { error: { message: message } } };
    const gateway = scriptedGateway('anthropic-messages', [denied], FEATURES);
    expect((await gateway.ask('anthropic-messages', loop())).status).toBe(502);
    expect(gateway.sent).toHaveLength(1);
  });
});
