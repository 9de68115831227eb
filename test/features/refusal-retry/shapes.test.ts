/** A refusal that names a position or a shape is retried once: that part is repaired with a note, the rest stays. */

import { describe, expect, test } from 'bun:test';
import { GatewayError } from '../../../src/conversation/errors.ts';
import { historyRefusal } from '../../../src/conversation/refusal/refusal.ts';
import { refusalRetry } from '../../../src/features/refusal-retry/index.ts';
import { toolPairing } from '../../../src/features/tool-pairing/index.ts';
import { vendorFit } from '../../../src/features/vendor-fit/index.ts';
import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import { FINE, type Scripted, scriptedGateway } from '../../gateway/scripted.ts';
import { checkMessages } from '../../support/fake-upstream/check-messages.ts';
import type { Strictness } from '../../support/fake-upstream/check-schema.ts';
import type { SuiteProtocol as ProtocolName } from '../../support/suite-protocols.ts';

const FEATURES = [refusalRetry(), toolPairing, vendorFit()];

const error = (protocol: ProtocolName, message: string): Json =>
  protocol === 'anthropic-messages'
    ? { type: 'error', error: { type: 'invalid_request_error', message } }
    : { error: { message, type: 'invalid_request_error', param: null, code: null } };

/** The vendor's second request after a refusal with this message, and the notes of the answer. */
async function afterWords(
  protocol: ProtocolName,
  body: JsonObject,
  message: string,
  status = 400,
): Promise<{ first: JsonObject; second: JsonObject; notes: readonly string[]; count: number }> {
  const refused = { status, json: error(protocol, message) } as Scripted;
  const gateway = scriptedGateway(protocol, [refused, FINE[protocol]], FEATURES);
  const answer = await gateway.ask(protocol, body);
  expect(answer.status).toBe(200);
  const [first, second] = gateway.sent as JsonObject[];
  const notes = gateway.summaries[0]!.notes.map(({ name }) => name);
  return { first: first!, second: second!, notes, count: gateway.sent.length };
}

const history: JsonObject = {
  model: 'm',
  max_tokens: 9,
  messages: [
    { role: 'user', content: [{ type: 'text', text: 'a', status: 'done', new_in_2031: 1 }] },
    {
      role: 'assistant',
      content: [{ type: 'text', text: 'b', index: 0, status: 'done' }],
      reasoning_content: 'hm',
      new_in_2031: 2,
    },
    { role: 'user', content: 'c' },
  ],
};

describe('unknown fields', () => {
  test('unknown fields go out unchanged at first', async () => {
    const { first } = await afterWords(
      'anthropic-messages',
      history,
      'messages.0.content.0.text.status: Extra inputs are not permitted',
    );
    expect(first).toEqual(history);
  });

  test('the named field is removed everywhere, leftovers of other vendors with it, and a possibly new field stays', async () => {
    const { second, notes } = await afterWords(
      'anthropic-messages',
      history,
      'messages.0.content.0.text.status: Extra inputs are not permitted',
    );
    expect(second).toEqual({
      model: 'm',
      max_tokens: 9,
      messages: [
        { role: 'user', content: [{ type: 'text', text: 'a', new_in_2031: 1 }] },
        { role: 'assistant', content: [{ type: 'text', text: 'b' }], new_in_2031: 2 },
        { role: 'user', content: 'c' },
      ],
    });
    expect(notes).toContain('stripped_after_refusal');
    expect(notes).toContain('unknown_field_dropped');
  });

  test('a new field is removed when it is named', async () => {
    const { second } = await afterWords(
      'anthropic-messages',
      history,
      'messages.1.new_in_2031: Extra inputs are not permitted',
    );
    const [first, answer] = second.messages as JsonObject[];
    expect(answer).toEqual({ role: 'assistant', content: [{ type: 'text', text: 'b' }] });
    expect(JSON.stringify(first)).toContain('new_in_2031');
  });

  const rows: readonly (readonly [string, ProtocolName, JsonObject, string, JsonObject])[] = [
    [
      "OpenAI's path",
      'openai-responses',
      {
        model: 'm',
        input: [
          { role: 'user', content: 'a', status: 'x' },
          { role: 'user', content: 'b', status: 'y' },
        ],
      },
      "Unknown parameter: 'input[0].status'.",
      {
        model: 'm',
        input: [
          { role: 'user', content: 'a' },
          { role: 'user', content: 'b' },
        ],
      },
    ],
    [
      'an argument at the top',
      'openai-chat',
      { model: 'm', messages: [{ role: 'user', content: 'a' }], top_k: 4 },
      'Unrecognized request argument supplied: top_k',
      { model: 'm', messages: [{ role: 'user', content: 'a' }] },
    ],
    [
      // https://github.com/anomalyco/opencode/issues/24696
      "Fireworks' words",
      'openai-chat',
      {
        model: 'm',
        messages: [{ role: 'user', content: 'a' }],
        tools: [
          { type: 'function', function: { name: 'f' }, eager_input_streaming: true },
          { type: 'function', function: { name: 'g' }, eager_input_streaming: true },
        ],
      },
      "2 request validation errors: Extra inputs are not permitted, field: 'tools[0].eager_input_streaming', value: True; Extra inputs are not permitted, field: 'tools[1].eager_input_streaming', value: True",
      {
        model: 'm',
        messages: [{ role: 'user', content: 'a' }],
        tools: [
          { type: 'function', function: { name: 'f' } },
          { type: 'function', function: { name: 'g' } },
        ],
      },
    ],
    [
      "Groq's words",
      'openai-chat',
      {
        model: 'm',
        messages: [
          { role: 'user', content: 'a' },
          { role: 'assistant', content: 'b', reasoning_content: 'hm' },
          { role: 'user', content: 'c' },
        ],
      },
      "'messages.1' : for 'role:assistant' the following must be satisfied[('messages.1' : property 'reasoning_content' is unsupported)]",
      {
        model: 'm',
        messages: [
          { role: 'user', content: 'a' },
          { role: 'assistant', content: 'b' },
          { role: 'user', content: 'c' },
        ],
      },
    ],
    [
      "Mistral's path with the body and the role in it",
      'openai-chat',
      {
        model: 'm',
        messages: [
          { role: 'user', content: 'a' },
          { role: 'assistant', content: 'b', reasoning_content: 'hm' },
          { role: 'user', content: 'c' },
        ],
      },
      'body.messages.1.assistant.reasoning_content: Extra inputs are not permitted',
      {
        model: 'm',
        messages: [
          { role: 'user', content: 'a' },
          { role: 'assistant', content: 'b' },
          { role: 'user', content: 'c' },
        ],
      },
    ],
  ];
  for (const [what, protocol, body, message, expected] of rows) {
    test(what, async () => {
      const { first, second } = await afterWords(protocol, body, message);
      expect(first).toEqual(body);
      expect(second).toEqual(expected);
    });
  }

  test('a field that a request needs is never removed', () => {
    for (const name of ['messages', 'model', 'input', 'messages.0.role', 'messages.0.content']) {
      const message = `${name}: Extra inputs are not permitted`;
      const refused = new GatewayError('invalid_request', message, {
        status: 400,
        fromUpstream: true,
      });
      expect([name, historyRefusal(refused)]).toEqual([name, undefined]);
    }
  });
});

test('the words of an error whose message is no text: the field goes, and the client reads them', async () => {
  const { messages } = said('user');
  const loc = ['body', 'messages', 0, 'user', 'name'];
  const detail = [{ type: 'extra_forbidden', loc, msg: 'Extra inputs are not permitted' }];
  // https://github.com/Gage-Technologies/mistral-go/issues/3
  const json = { object: 'error', message: { detail }, type: 'invalid_request_error', code: null };
  const refused: Scripted = { status: 422, json };
  const gateway = scriptedGateway('openai-chat', [refused, refused], FEATURES);
  const named = { model: 'm', messages: [{ ...messages[0], name: 'x' }] };
  const { text } = await gateway.ask('openai-chat', named);
  expect(gateway.sent).toEqual([named, said('user')]);
  expect(JSON.parse(text).error.message).toBe(
    'body.messages.0.user.name: Extra inputs are not permitted',
  );
});

describe('shapes that a Messages vendor refuses are repaired in one retry', () => {
  const turns = (messages: readonly Json[]): JsonObject => ({
    model: 'm',
    max_tokens: 9,
    tools: [{ name: 'f', input_schema: { type: 'object' } }],
    messages,
  });
  const rows: readonly (readonly [string, JsonObject, Strictness])[] = [
    [
      'instructions amid the dialogue',
      turns([
        { role: 'user', content: 'a' },
        { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'f', input: {} }] },
        { role: 'system', content: 'brief' },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'x' }] },
      ]),
      { noSystemRole: true },
    ],
    [
      'a prefill',
      turns([
        { role: 'user', content: 'a' },
        { role: 'assistant', content: 'I' },
      ]),
      { noPrefill: true },
    ],
    [
      'the assistant begins',
      turns([
        { role: 'assistant', content: 'hi' },
        { role: 'user', content: 'a' },
      ]),
      { firstUser: true },
    ],
    [
      'neighbours of one role',
      turns([
        { role: 'user', content: 'a' },
        { role: 'user', content: 'b' },
        { role: 'assistant', content: 'c' },
        { role: 'user', content: 'd' },
      ]),
      { alternate: true },
    ],
  ];
  for (const [what, body, strictness] of rows) {
    test(what, async () => {
      const complaint = (sent: JsonObject) => {
        try {
          checkMessages(sent, {}, strictness);
          return undefined;
        } catch (thrown) {
          return thrown instanceof Error ? thrown.message : String(thrown);
        }
      };
      const message = complaint(body);
      expect(message).toBeDefined();
      const { first, second, notes, count } = await afterWords(
        'anthropic-messages',
        body,
        message!,
      );
      expect(first).toEqual(body);
      expect(complaint(second)).toBeUndefined();
      expect(notes.length).toBeGreaterThan(0);
      expect(count).toBe(2);
    });
  }
});

// https://github.com/anthropics/claude-code/issues/73821
test('instructions at a place that Claude does not take are words of the user', async () => {
  const roles = ['user', 'system', 'user', 'assistant', 'user'];
  const body = { ...said(...roles), max_tokens: 9 };
  const { second } = await afterWords(
    'anthropic-messages',
    body,
    "messages.1: role 'system' must precede an 'assistant' message or end the array",
  );
  expect(JSON.stringify(second)).toContain('"system"');
  expect((second.messages as readonly JsonObject[]).map(({ role }) => role)).not.toContain(
    'system',
  );
});

const said = (...roles: readonly string[]) => ({
  model: 'm',
  messages: roles.map((role) => ({ role, content: role })),
});

/** The words of servers and vendors of Chat, the history, and its last form. */
const CHAT_WORDS: readonly (readonly [string, JsonObject, readonly string[]])[] = [
  ...[
    'Last message must have role `user` or `tool`, but found `assistant`',
    'Cannot have 2 or more assistant messages at the end of the list.',
    'Assistant response prefill is incompatible with enable_thinking.',
    // https://github.com/BerriAI/litellm/issues/8090
    'The last message of deepseek-reasoner must be a user message, or an assistant message with prefix mode on (refer to https://api-docs.deepseek.com/guides/chat_prefix_completion).',
    // vLLM, https://github.com/mistralai/mistral-vibe/issues/114
    'Cannot set `add_generation_prompt` to True when the last message is from the assistant. Consider using `continue_final_message` instead.',
    // Antigravity, https://github.com/anthonyhaussman/opencode-agy-auth/pull/78
    'Requests ending with a model turn are not supported',
    // Copilot, https://github.com/ericc-ch/copilot-api/issues/273
    'The last message in a Gemini request must not be from the assistant',
    // Google, https://github.com/songquanpeng/one-api/issues/836
    'Please ensure that multiturn requests ends with a user role or a function response.',
  ].map((words) => [words, said('user', 'assistant'), ['user', 'assistant', 'user']] as const),
  [
    // https://github.com/open-webui/open-webui/issues/9266
    'deepseek-reasoner does not support successive user or assistant messages (messages[1] and messages[2] in your input). You should interleave the user/assistant messages in the message sequence.',
    said('user', 'assistant', 'assistant', 'user', 'user'),
    ['user', 'assistant', 'user'],
  ],
  ...[
    // https://github.com/ChatGPTNextWeb/NextChat/issues/6343
    'The first message (except the system message) of deepseek-reasoner must be a user message, but an assistant message detected.',
    // Bedrock
    'A conversation must start with a user message. Try again with a conversation that starts with a user message.',
  ].map(
    (words) =>
      [
        words,
        said('system', 'assistant', 'user'),
        ['system', 'user', 'assistant', 'user'],
      ] as const,
  ),
  [
    'No user query found in messages.',
    said('system', 'assistant'),
    ['system', 'user', 'assistant'],
  ],
  [
    "the message at position 1 with role 'assistant' must not be empty",
    {
      model: 'm',
      messages: [
        { role: 'user', content: 'a' },
        { role: 'assistant', content: '', reasoning_content: 'hm' },
        { role: 'user', content: 'b' },
      ],
    },
    ['user', 'user'],
  ],
];

test.each(CHAT_WORDS)('Chat: %s', async (message, body, roles) => {
  for (const status of message.includes('position') ? [400] : [400, 500]) {
    const { first, second, notes } = await afterWords('openai-chat', body, message, status);
    expect(first).toEqual(body);
    expect((second.messages as JsonObject[]).map(({ role }) => role)).toEqual([...roles]);
    expect(notes.length).toBeGreaterThan(0);
  }
});

test("a model's own template, which fails with 500", async () => {
  const body = {
    model: 'm',
    messages: [
      { role: 'user', content: 'a' },
      { role: 'system', content: 'b' },
      { role: 'user', content: 'c' },
    ],
  };
  const { second } = await afterWords(
    'openai-chat',
    body,
    'Jinja Exception: System message must be at the beginning.',
    500,
  );
  expect((second.messages as JsonObject[]).map(({ role }) => role)).not.toContain('system');
});

describe('images in results', () => {
  const call = (id: string) => ({
    id,
    type: 'function',
    function: { name: 'look', arguments: '{}' },
  });
  const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } };
  const seen: JsonObject = {
    model: 'm',
    tools: [{ type: 'function', function: { name: 'look', parameters: { type: 'object' } } }],
    messages: [
      { role: 'user', content: 'go' },
      { role: 'assistant', content: null, tool_calls: [call('a'), call('b')] },
      { role: 'tool', tool_call_id: 'a', content: [{ type: 'text', text: 'A picture.' }, image] },
      { role: 'tool', tool_call_id: 'b', content: 'nothing' },
    ],
  };

  test.each([
    "Invalid 'messages[2]'. Image URLs are only allowed for messages with role 'user', but this message with role 'tool' contains an image URL.",
    "Invalid value: 'image_url'. Supported values are: 'text'.",
  ])('are shown by the user behind all results: %s', async (message) => {
    const { first, second, notes } = await afterWords('openai-chat', seen, message);
    expect(first).toEqual(seen);
    const [, , a, b, user] = second.messages as JsonObject[];
    expect(JSON.stringify(a)).not.toContain('image_url');
    expect([a!.role, b!.role, user!.role]).toEqual(['tool', 'tool', 'user']);
    expect(JSON.stringify(a)).toContain('A picture.');
    expect(b).toEqual((seen.messages as JsonObject[])[3]!);
    expect(user!.content).toContainEqual(image);
    expect(notes).toContain('content_bridged');
  });

  test('OpenAI is known to refuse them', async () => {
    const gateway = scriptedGateway('openai-chat', [FINE['openai-chat']], FEATURES, '', {
      profile: 'openai-chat',
    });
    await gateway.ask('openai-chat', seen);
    expect(gateway.sent).toHaveLength(1);
    const [, , a, , user] = (gateway.sent[0] as { messages: JsonObject[] }).messages;
    expect(JSON.stringify(a)).not.toContain('image_url');
    expect(JSON.stringify(user)).toContain('image_url');
  });
});

test('an answer at the end, which Mistral refuses in Chat, too', async () => {
  const messages = [
    { role: 'user', content: 'go' },
    { role: 'assistant', content: 'I will' },
  ];
  const { first, second, notes } = await afterWords(
    'openai-chat',
    { model: 'm', messages },
    'Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant',
  );
  expect(first.messages).toEqual(messages);
  expect(second.messages).toEqual([...messages, { role: 'user', content: 'Continue.' }]);
  expect(notes).toContain('user_turn_added');
});

test.each([
  ['Kimi, with two spaces', 'Invalid request: tool_call_id  is not found'],
  ['a relay', 'tool_call_id "call_x" not found in the tool_calls of the previous message'],
  [
    'MiniMax, MiniMax-AI/MiniMax-M2#43',
    'invalid params, tool call result does not follow tool call (2013)',
  ],
  [
    'MiniMax, MiniMax-AI/MiniMax-M2#76',
    "invalid params, tool result's tool id(call_function_g094w5htkglv_1) not found (2013)",
  ],
  [
    'MiniMax, arguments, MiniMax-AI/MiniMax-M2#43',
    'invalid params, invalid function arguments json string, tool_call_id: call_function_9awue8x7z3tu_1 (2013)',
  ],
  ['Mistral', 'Not the same number of function calls and responses'],
  ['Mistral, one id', 'Unexpected tool call id call_x in tool results'],
  ['Bedrock', 'Expected toolResult blocks at messages.2.content for the following Ids: call_x'],
  [
    'Bedrock, too many',
    'The number of toolResult blocks at messages.4.content exceeds the number of toolUse blocks of previous turn.',
  ],
])('calls and results that do not pair, in the words of %s', (_, message) => {
  const refused = new GatewayError('invalid_request', message, { status: 400, fromUpstream: true });
  expect(historyRefusal(refused)).toEqual({ kind: 'pairing' });
});
