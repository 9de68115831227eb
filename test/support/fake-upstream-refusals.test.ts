/** The fake vendor refuses what the real ones refuse, with their status and message. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { Json, JsonObject } from '../../src/lib/json/json.ts';
import {
  type FakeUpstream,
  type Protocol,
  signatureFor,
  startFakeUpstream,
} from './fake-upstream/index.ts';

let upstream: FakeUpstream;
let strict: FakeUpstream;
beforeAll(async () => {
  upstream = await startFakeUpstream({ keys: ['sk-test'], models: ['m'] });
  strict = await startFakeUpstream({ noPrefill: true, alternate: true, noReasoningField: true });
});
afterAll(async () => {
  await upstream.stop();
  await strict.stop();
});

const PATHS: Readonly<Record<Protocol, string>> = {
  'openai-chat': '/v1/chat/completions',
  'openai-responses': '/v1/responses',
  'anthropic-messages': '/v1/messages',
};

async function ask(
  protocol: Protocol,
  body: JsonObject | string,
  headers: Record<string, string> = {},
  server = upstream,
) {
  const response = await fetch(server.origin + PATHS[protocol], {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: 'Bearer sk-test',
      'anthropic-version': '2023-06-01',
      ...headers,
    },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  const answer = (await response.json()) as { error?: { message: string; type: string } };
  return { status: response.status, message: answer.error?.message ?? '' };
}

const user = (content: Json) => ({ role: 'user', content });
const assistant = (content: Json, more: JsonObject = {}) => ({
  role: 'assistant',
  content,
  ...more,
});

describe('Messages', () => {
  const tools = [{ name: 'get', input_schema: { type: 'object' } }];
  const use = (id: string, more: JsonObject = {}) => ({
    type: 'tool_use',
    id,
    name: 'get',
    input: {},
    ...more,
  });
  const result = (tool_use_id: string, content: Json = 'ok', more: JsonObject = {}) => ({
    type: 'tool_result',
    tool_use_id,
    content,
    ...more,
  });
  const text = (message: string) => ({ type: 'text', text: message });
  const openChat = (...messages: Json[]): JsonObject => ({
    model: 'm',
    max_tokens: 2000,
    tools,
    messages: messages as JsonObject[],
  });
  const thinking = { type: 'enabled', budget_tokens: 1024 };
  const think = { type: 'thinking', thinking: 'hm', signature: signatureFor('hm') };

  const cases: [string, JsonObject, RegExp][] = [
    [
      'a call without a result',
      openChat(user('x'), assistant([use('a')]), user('y')),
      /^messages\.1: `tool_use` ids were found without `tool_result` blocks immediately after: a\. /,
    ],
    [
      'a result behind the text',
      openChat(user('x'), assistant([use('a')]), user([text('y'), result('a')])),
      /without `tool_result` blocks immediately after: a/,
    ],
    [
      'words after the last call',
      openChat(user('x'), assistant([use('a'), text('and')]), user([result('a')])),
      /without `tool_result` blocks immediately after: a/,
    ],
    [
      'a stray result',
      openChat(user('x'), assistant('y'), user([result('b')])),
      /^messages\.2\.content\.0: unexpected `tool_use_id` found in `tool_result` blocks: b\./,
    ],
    [
      'two results for a call',
      openChat(user('x'), assistant([use('a')]), user([result('a'), result('a')])),
      /each tool_use must have a single result\. Found multiple `tool_result` blocks with id: a/,
    ],
    [
      'an id twice',
      openChat(user('x'), assistant([use('a'), use('a')]), user([result('a')])),
      /messages\.1\.content\.1: `tool_use` ids must be unique/,
    ],
    [
      'characters in an id',
      openChat(user('x'), assistant([use('functions.get:0')]), user([result('functions.get:0')])),
      /tool_use\.id: String should match pattern '\^\[a-zA-Z0-9_-\]\+\$'/,
    ],
    [
      'a result in the assistant’s turn',
      openChat(user('x'), assistant([use('a'), result('a')])),
      /`tool_result` blocks can only be in `user` messages/,
    ],
    [
      'an empty error result',
      openChat(user('x'), assistant([use('a')]), user([result('a', '', { is_error: true })])),
      /tool_result: content cannot be empty if `is_error` is true/,
    ],
    [
      'input that is no object',
      openChat(user('x'), assistant([use('a', { input: '{}' })]), user([result('a')])),
      /tool_use\.input: Input should be a valid dictionary/,
    ],
    [
      'an unknown block',
      openChat(user([{ type: 'server_tool_use_delta', x: 1 }])),
      /^messages\.0\.content\.0: Input tag 'server_tool_use_delta' found using 'type'/,
    ],
    [
      'an unknown block in a result',
      openChat(user('x'), assistant([use('a')]), user([result('a', [{ type: 'thinking' }])])),
      /'document', 'image', 'search_result', 'text', 'tool_reference'/,
    ],
    [
      'an unknown field',
      { ...openChat(user('x')), hopgate: {} },
      /^hopgate: Extra inputs are not permitted/,
    ],
    [
      'an unknown field of a block',
      openChat(user([{ ...text('x'), index: 0 }])),
      /^messages\.0\.content\.0\.text\.index: Extra inputs are not permitted/,
    ],
    [
      'a beta field without its beta',
      { ...openChat(user('x')), context_management: {} },
      /^context_management: Extra inputs are not permitted/,
    ],
    ['no max_tokens', { model: 'm', messages: [user('x')] }, /^max_tokens: Field required/],
    ['empty text', openChat(user([text('')])), /^messages: text content blocks must be non-empty/],
    ['blank text', openChat(user([text(' ')])), /must contain non-whitespace text/],
    [
      'an empty message',
      openChat(user(''), assistant('x'), user('y')),
      /^messages\.0: all messages must have non-empty content/,
    ],
    [
      'a trailing blank',
      openChat(user('x'), assistant('y ')),
      /final assistant content cannot end with trailing whitespace/,
    ],
    [
      'a foreign signature',
      openChat(
        user('x'),
        assistant([{ ...think, signature: 'hopgate1.cs..' }, text('y')]),
        user('z'),
      ),
      /^messages\.1\.content\.0: Invalid `signature` in `thinking` block/,
    ],
    [
      'a missing signature',
      openChat(user('x'), assistant([{ type: 'thinking', thinking: 'hm' }, text('y')]), user('z')),
      /thinking\.signature: Field required/,
    ],
    [
      'a loop that lacks its thinking',
      { ...openChat(user('x'), assistant([use('a')]), user([result('a')])), thinking },
      /Expected `thinking` or `redacted_thinking`, but found `tool_use`/,
    ],
    [
      'thinking last in a message',
      openChat(user('x'), assistant([think]), user('y')),
      /The final block in an assistant message cannot be `thinking`/,
    ],
    [
      'thinking with a forced tool',
      { ...openChat(user('x')), thinking, tool_choice: { type: 'any' } },
      /Thinking may not be enabled when tool_choice forces tool use/,
    ],
    [
      'a budget beyond max_tokens',
      { ...openChat(user('x')), thinking: { type: 'enabled', budget_tokens: 5000 } },
      /`max_tokens` must be greater than `thinking\.budget_tokens`/,
    ],
    ['too hot', { ...openChat(user('x')), temperature: 1.5 }, /less than or equal to 1/],
    [
      'five cache marks',
      openChat(
        user(
          Array.from({ length: 5 }, () => ({ ...text('x'), cache_control: { type: 'ephemeral' } })),
        ),
      ),
      /A maximum of 4 blocks with cache_control may be provided\. Found 5\./,
    ],
    [
      'a history of calls without tools',
      { ...openChat(user('x'), assistant([use('a')]), user([result('a')])), tools: [] },
      /must define tools/,
    ],
    [
      'a chat tool',
      { ...openChat(user('x')), tools: [{ type: 'function', function: { name: 'get' } }] },
      /^tools\.0: Input tag 'function'/,
    ],
    [
      'a server call without its result',
      openChat(
        user('x'),
        assistant([
          { type: 'server_tool_use', id: 'srvtoolu_a', name: 'web_search', input: {} },
          text('y'),
        ]),
        user('z'),
      ),
      /`web_search` tool use with id `srvtoolu_a` was found without a corresponding `web_search_tool_result`/,
    ],
  ];
  test.each(cases)('%s is refused', async (_name, body, textPart) => {
    const answer = await ask('anthropic-messages', body);
    expect(answer.message).toMatch(textPart);
    expect(answer.status).toBe(400);
  });

  test('the first-party deployment accepts what a strict deployment refuses', async () => {
    const prefill = openChat(user('x'), assistant('y'));
    expect((await ask('anthropic-messages', prefill)).status).toBe(200);
    expect((await ask('anthropic-messages', prefill, {}, strict)).message).toMatch(/prefill/);
    const twice = openChat(user('x'), user('y'));
    expect((await ask('anthropic-messages', twice)).status).toBe(200);
    expect((await ask('anthropic-messages', twice, {}, strict)).message).toMatch(/alternate/);
  });

  test('a valid history with thinking, calls and server tools is accepted', async () => {
    const body = {
      ...openChat(
        user('x'),
        assistant([think, text('first'), use('a'), use('b')]),
        user([result('a'), result('b'), text('go on')]),
      ),
      thinking,
    };
    expect(await ask('anthropic-messages', body)).toEqual({ status: 200, message: '' });
  });
});

describe('Chat', () => {
  const call = (id: string, more: JsonObject = {}) => ({
    id,
    type: 'function',
    function: { name: 'get', arguments: '{}', ...more },
  });
  const tool = (tool_call_id: string, content: Json = 'ok') => ({
    role: 'tool',
    tool_call_id,
    content,
  });
  const calls = (...tool_calls: Json[]) => assistant(null, { tool_calls });
  const openChat = (...messages: Json[]): JsonObject => ({ model: 'm', messages });
  const cases: [string, JsonObject, RegExp][] = [
    [
      'a call without a tool message',
      openChat(user('x'), calls(call('a'), call('b')), tool('a'), user('y')),
      /did not have response messages: b$/,
    ],
    [
      'a tool message without a call',
      openChat(user('x'), tool('a')),
      /messages with role 'tool' must be a response to a preceeding message with 'tool_calls'/,
    ],
    [
      'a tool message for another call',
      openChat(user('x'), calls(call('a')), tool('b')),
      /'tool_call_id' of 'b' not found/,
    ],
    [
      'a message between call and result',
      openChat(user('x'), calls(call('a')), user('y'), tool('a')),
      /did not have response messages: a$/,
    ],
    ['no calls in tool_calls', openChat(user('x'), calls(), user('y')), /empty array/],
    [
      'arguments that are no string',
      openChat(user('x'), calls(call('a', { arguments: {} })), tool('a')),
      /arguments': expected a string, but got an object/,
    ],
    [
      'content null',
      openChat(user(null)),
      /Invalid value for 'content': expected a string, got null/,
    ],
    [
      'an unknown argument',
      { ...openChat(user('x')), hopgate: {} },
      /Unrecognized request argument/,
    ],
    ['a long id', openChat(user('x'), calls(call('a'.repeat(65))), tool('a')), /maximum length 64/],
    [
      'a Messages part',
      openChat(user([{ type: 'tool_result', tool_use_id: 'a' }])),
      /Supported values are: 'text', 'image_url'/,
    ],
    [
      'an image in a tool message',
      openChat(
        user('x'),
        calls(call('a')),
        tool('a', [{ type: 'image_url', image_url: { url: 'https://e.com/a.png' } }]),
      ),
      /Supported values are: 'text'/,
    ],
    [
      'a tool choice without tools',
      { ...openChat(user('x')), tool_choice: 'auto' },
      /'tool_choice' is only allowed when 'tools' are specified/,
    ],
    [
      'stream options without a stream',
      { ...openChat(user('x')), stream_options: { include_usage: true } },
      /only allowed when 'stream' is enabled/,
    ],
    [
      'a flat tool',
      { ...openChat(user('x')), tools: [{ type: 'function', name: 'get' }] },
      /Unknown parameter: 'tools\[0\]\.name'/,
    ],
    [
      'a schema that is no object',
      {
        ...openChat(user('x')),
        tools: [{ type: 'function', function: { name: 'get', parameters: {} } }],
      },
      /schema must be a JSON Schema of 'type: "object"'/,
    ],
    ['a temperature as text', { ...openChat(user('x')), temperature: '1' }, /expected a decimal/],
  ];
  test.each(cases)('%s is refused', async (_name, body, textPart) => {
    const answer = await ask('openai-chat', body);
    expect(answer.message).toMatch(textPart);
    expect(answer.status).toBe(400);
  });

  test('reasoning in the history is accepted or refused by vendor', async () => {
    const body = openChat(user('x'), assistant('y', { reasoning_content: 'hm' }), user('z'));
    expect((await ask('openai-chat', body)).status).toBe(200);
    expect((await ask('openai-chat', body, {}, strict)).status).toBe(400);
  });
});

describe('Responses', () => {
  const call = (call_id: string, more: JsonObject = {}) => ({
    type: 'function_call',
    call_id,
    name: 'get',
    arguments: '{}',
    ...more,
  });
  const output = (call_id: string) => ({ type: 'function_call_output', call_id, output: 'ok' });
  const openChat = (...input: Json[]): JsonObject => ({ model: 'm', input, store: false });
  const cases: [string, JsonObject, RegExp][] = [
    [
      'a call without output',
      openChat(user('x'), call('a')),
      /^No tool output found for function call a/,
    ],
    [
      'an output without call',
      openChat(user('x'), output('a')),
      /^No tool call found for function call output with call_id a/,
    ],
    [
      'a foreign item id',
      openChat(user('x'), call('a', { id: 'call_a' }), output('a')),
      /Invalid 'input\[1\]\.id': 'call_a'\. Expected an ID that begins with 'fc'/,
    ],
    ['a long call id', openChat(call('a'.repeat(65)), output('a')), /maximum length 64/],
    [
      'input_text from the assistant',
      openChat(assistant([{ type: 'input_text', text: 'x' }])),
      /Supported values are: 'output_text', and 'refusal'/,
    ],
    [
      'output_text from the user',
      openChat(user([{ type: 'output_text', text: 'x' }])),
      /Invalid value: 'output_text'/,
    ],
    [
      'reasoning that leads nowhere',
      openChat(user('x'), { type: 'reasoning', summary: [] }, user('y')),
      /of type 'reasoning' was provided without its required following item/,
    ],
    [
      'a seal of another vendor',
      openChat(
        { type: 'reasoning', summary: [], encrypted_content: 'hopgate1.me..' },
        assistant('y'),
      ),
      /could not be verified/,
    ],
    [
      'reasoning that was not stored',
      openChat({ type: 'reasoning', id: 'rs_1', summary: [] }, { ...assistant('y'), id: 'msg_1' }),
      /Items are not persisted when `store` is set to false/,
    ],
    [
      'an item twice',
      openChat({ ...user('x'), id: 'msg_1' }, { ...user('x'), id: 'msg_1' }),
      /Duplicate item found with id msg_1/,
    ],
    ['an unknown field', { ...openChat(user('x')), messages: [] }, /Unknown parameter: 'messages'/],
    [
      'an unknown field of a part',
      openChat(user([{ type: 'input_text', text: 'x', cache_control: {} }])),
      /Unknown parameter: 'input\[0\]\.content\[0\]\.cache_control'/,
    ],
    [
      'a nested tool',
      { ...openChat(user('x')), tools: [{ type: 'function', function: { name: 'get' } }] },
      /Unknown parameter: 'tools\[0\]\.function'/,
    ],
    ['no input', { model: 'm' }, /must be provided/],
    ['a tiny cap', { ...openChat(user('x')), max_output_tokens: 5 }, /Expected a value >= 16/],
  ];
  test.each(cases)('%s is refused', async (_name, body, textPart) => {
    const answer = await ask('openai-responses', body);
    expect(answer.message).toMatch(textPart);
    expect(answer.status).toBe(400);
  });
});

describe('every protocol', () => {
  const bodies: Readonly<Record<Protocol, JsonObject>> = {
    'openai-chat': { model: 'm', messages: [user('x')] },
    'openai-responses': { model: 'm', input: 'x' },
    'anthropic-messages': { model: 'm', max_tokens: 5, messages: [user('x')] },
  };
  for (const protocol of Object.keys(bodies) as Protocol[]) {
    test(`${protocol}: keys, models, JSON and content type are checked`, async () => {
      const body = bodies[protocol];
      expect((await ask(protocol, body)).status).toBe(200);
      expect((await ask(protocol, body, { authorization: 'Bearer no' })).status).toBe(401);
      expect((await ask(protocol, body, { authorization: '' })).status).toBe(401);
      expect((await ask(protocol, '{"model":')).status).toBe(400);
      const unknown = await ask(protocol, { ...body, model: 'other' });
      expect(unknown.status).toBe(protocol === 'openai-responses' ? 400 : 404);
      expect(unknown.message).toContain('other');
      const plain = await ask(protocol, body, { 'content-type': 'text/plain' });
      expect([400, 415]).toContain(plain.status);
    });
  }

  test('Messages without a version is refused', async () => {
    const answer = await ask('anthropic-messages', bodies['anthropic-messages'], {
      'anthropic-version': '',
    });
    expect(answer.message).toMatch(/anthropic-version/);
  });
});

// https://protobuf.dev/programming-guides/json/: parsers take both spellings. Google's client for Python writes the second one.
test('Gemini takes names in both spellings, and those of the client as they are', async () => {
  const post = (body: JsonObject) =>
    fetch(`${upstream.origin}/v1beta/models/m:generateContent`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-goog-api-key': 'sk-test' },
      body: JSON.stringify(body),
    });
  const body = {
    system_instruction: { parts: [{ text: 's' }] },
    contents: [
      { role: 'user', parts: [{ inline_data: { mime_type: 'image/png', data: 'AAAA' } }] },
      { role: 'model', parts: [{ function_call: { name: 'look_up', args: { my_name: 1 } } }] },
      {
        role: 'user',
        parts: [{ function_response: { name: 'look_up', response: { a_b: 1 } } }],
      },
    ],
    tools: [
      {
        function_declarations: [
          {
            name: 'look_up',
            parameters: {
              type: 'object',
              properties: { my_name: { any_of: [{ type: 'string' }] } },
            },
          },
        ],
      },
    ],
    tool_config: { function_calling_config: { mode: 'ANY', allowed_function_names: ['look_up'] } },
    generation_config: { max_output_tokens: 9, thinking_config: { include_thoughts: true } },
  };
  expect((await post(body)).status).toBe(200);
  const refused = await post({ ...body, max_output_tokens: 9 });
  expect([refused.status, await refused.text()]).toEqual([
    400,
    expect.stringContaining('Cannot find field'),
  ]);
});
