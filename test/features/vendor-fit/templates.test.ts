/** Histories at servers with a model's chat template: content that such templates refuse is not sent. */

import { describe, expect, test } from 'bun:test';
import { isObject, type Json, type JsonObject } from '../../../src/lib/json/json.ts';
import type { SuiteProtocol as ProtocolName } from '../../support/suite-protocols.ts';
import { targetOf, vendorRequest } from './vendor.ts';

const SERVERS = ['llamacpp', 'vllm', 'sglang', 'ollama', 'lmstudio', 'together'];
const MISTRAL = 'Mistral-Small-3.2-24B-Instruct-2506';
const LLAMA = 'meta-llama/Llama-3.1-8B-Instruct';

/** The rules of the real templates, with their error messages. */
function refusal(body: JsonObject, model: string): string | undefined {
  const messages = (body.messages as JsonObject[]).filter(isObject);
  const spoken = messages.filter(({ role }) => role !== 'system');
  if (messages.some(({ role }, at) => role === 'system' && at > 0)) {
    return 'System message must be at the beginning.';
  }
  const counted = spoken.filter(
    ({ role, tool_calls }) => role !== 'tool' && tool_calls === undefined,
  );
  const alternates = counted.every(({ role }, at) => (role === 'user') === (at % 2 === 0));
  const neighbours = spoken.some(
    ({ role }, at) => role !== 'tool' && at > 0 && spoken[at - 1]!.role === role && role === 'user',
  );
  if (neighbours || (model === MISTRAL && !alternates)) return 'Conversation roles must alternate';
  const calls = messages.flatMap(({ tool_calls: list }) =>
    Array.isArray(list) ? [list as JsonObject[]] : [],
  );
  if (model === LLAMA && calls.some((list) => list.length > 1)) {
    return 'This model only supports single tool-calls at once!';
  }
  if (model === MISTRAL) {
    if (calls.flat().some(({ id }) => !/^[a-zA-Z0-9]{9}$/.test(String(id)))) return 'Tool call IDs';
    if (messages.some(({ role }, at) => role === 'user' && messages[at - 1]?.role === 'tool')) {
      return "Unexpected role 'user' after role 'tool'";
    }
  }
  return undefined;
}

const call = (id: string) => ({
  id,
  type: 'function',
  function: { name: 'look', arguments: '{}' },
});
const answer = (id: string) => ({ role: 'tool', tool_call_id: id, content: `found ${id}` });
const tools = [{ type: 'function', function: { name: 'look', parameters: { type: 'object' } } }];

const CHAT: Readonly<Record<string, JsonObject>> = {
  'two user messages in a row': {
    messages: [
      { role: 'user', content: 'environment' },
      { role: 'user', content: [{ type: 'text', text: 'prompt' }] },
    ],
  },
  'instructions in the middle': {
    messages: [
      { role: 'system', content: 'a' },
      { role: 'user', content: 'b' },
      { role: 'assistant', content: 'c' },
      { role: 'developer', content: 'd' },
      { role: 'user', content: 'e' },
    ],
  },
  'several instructions at the beginning': {
    messages: [
      { role: 'system', content: 'a' },
      { role: 'developer', content: 'b' },
      { role: 'user', content: 'c' },
    ],
  },
  'parallel calls, and a reminder behind their results': {
    messages: [
      { role: 'user', content: 'a' },
      { role: 'assistant', content: 'let me see', tool_calls: [call('call_1'), call('call_2')] },
      answer('call_1'),
      answer('call_2'),
      { role: 'user', content: 'reminder' },
    ],
    tools,
  },
  'an answer in two messages': {
    messages: [
      { role: 'user', content: 'a' },
      { role: 'assistant', content: 'b' },
      { role: 'assistant', content: 'c', tool_calls: [call('call_1')] },
      answer('call_1'),
      { role: 'assistant', content: 'd' },
      { role: 'user', content: 'e' },
    ],
    tools,
  },
};

const MESSAGES: JsonObject = {
  max_tokens: 9,
  system: 's',
  messages: [
    { role: 'user', content: 'a' },
    { role: 'system', content: 'late' },
    {
      role: 'assistant',
      content: [
        { type: 'text', text: 'let me see' },
        { type: 'tool_use', id: 'toolu_1', name: 'look', input: {} },
        { type: 'tool_use', id: 'toolu_2', name: 'look', input: {} },
      ],
    },
    {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 'toolu_1', content: 'found toolu_1' },
        { type: 'tool_result', tool_use_id: 'toolu_2', content: 'found toolu_2' },
        { type: 'text', text: 'reminder' },
      ],
    },
  ],
  tools: [{ name: 'look', input_schema: { type: 'object' } }],
};

// As Codex sends it: no instructions, a developer item, the environment, the prompt.
const item = (role: string, text: string) => ({
  type: 'message',
  role,
  content: [{ type: 'input_text', text }],
});
const RESPONSES: JsonObject = {
  input: [
    item('developer', 'base prompt'),
    item('user', 'environment'),
    item('user', 'prompt'),
    { type: 'function_call', call_id: 'call_1', name: 'look', arguments: '{}' },
    { type: 'function_call', call_id: 'call_2', name: 'look', arguments: '{}' },
    { type: 'function_call_output', call_id: 'call_1', output: 'found call_1' },
    { type: 'function_call_output', call_id: 'call_2', output: 'found call_2' },
    item('developer', 'note'),
    item('user', 'go on'),
  ],
  tools: [{ type: 'function', name: 'look', parameters: { type: 'object' } }],
};

/** An answer that was cut off before its first word: codecs of Chat do not write it. */
const emptyOf = (content: Json) => ({
  max_tokens: 9,
  messages: [
    { role: 'user', content: 'environment' },
    { role: 'assistant', content },
    { role: 'user', content: 'prompt' },
  ],
});
const EMPTY: readonly (readonly [string, ProtocolName, JsonObject])[] = [
  ...[
    '',
    [],
    [{ type: 'text', text: '' }],
    [{ type: 'thinking', thinking: '', signature: 'c2VhbGVk' }],
  ].map((content) => ['anthropic-messages', emptyOf(content)] as const),
  ...[
    { role: 'assistant', content: '' },
    { role: 'assistant', content: [] },
    { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'c2VhbGVk' },
  ].map(
    (one) =>
      [
        'openai-responses',
        { input: [item('user', 'environment'), one, item('user', 'prompt')] },
      ] as const,
  ),
].map(([client, body]) => [`${client}, an empty answer: ${JSON.stringify(body)}`, client, body]);

const ASKED: readonly (readonly [string, ProtocolName, JsonObject])[] = [
  ...Object.entries(CHAT).map(([what, body]) => [what, 'openai-chat', body] as const),
  ['a Messages client', 'anthropic-messages', MESSAGES],
  ['a Responses client', 'openai-responses', RESPONSES],
  ...EMPTY,
];

for (const model of [MISTRAL, LLAMA, 'qwen3.5-4b']) {
  describe(model, () => {
    for (const server of SERVERS) {
      for (const [what, client, request] of ASKED) {
        test(`${server}: ${what}`, () => {
          const result = vendorRequest(targetOf(server, model), { model, ...request }, client);
          expect(refusal(result.body, model)).toBeUndefined();
          expect(result.again).toBe(true);
          if (client === 'openai-chat' && refusal(request, model) !== undefined) {
            expect(result.same).toBe(false);
          }
          expect(result.idle).toBe(result.idle && result.same);
          // No text gets lost.
          const sent = JSON.stringify(result.body);
          for (const text of JSON.stringify(request).match(
            /found call_\d|found toolu_\d|reminder|environment|prompt|late|let me see/g,
          ) ?? []) {
            expect(sent).toContain(text);
          }
        });
      }
    }
  });
}

test('each result follows its own call where calls go out one by one', () => {
  const body = { model: LLAMA, ...CHAT['parallel calls, and a reminder behind their results'] };
  const { body: sent } = vendorRequest(targetOf('llamacpp', LLAMA), body as JsonObject);
  expect((sent.messages as JsonObject[]).map(({ role, tool_call_id: id }) => [role, id])).toEqual([
    ['user', undefined],
    ['assistant', undefined],
    ['tool', 'call_1'],
    ['assistant', undefined],
    ['tool', 'call_2'],
    ['user', undefined],
  ]);
});

test('adjacent messages become one text with a blank line between', () => {
  const { body, notes } = vendorRequest(targetOf('llamacpp', 'm'), {
    model: 'm',
    ...CHAT['two user messages in a row'],
  });
  expect(body.messages).toEqual([{ role: 'user', content: 'environment\n\nprompt' }]);
  expect(notes.join()).toContain('message_shape_repaired');
});

test('a choice of a named tool becomes a choice of any tool', () => {
  const request = {
    model: 'm',
    messages: [{ role: 'user', content: 'a' }],
    tools,
    tool_choice: { type: 'function', function: { name: 'look' } },
  };
  const { body, notes } = vendorRequest(targetOf('llamacpp', 'm'), request);
  expect(body.tool_choice).toBe('required');
  expect(notes.join()).toContain('parameter_mapped');
});

test('a dialogue in turns passes unchanged, without a decode', () => {
  const request = {
    model: 'm',
    messages: [
      { role: 'system', content: 's' },
      { role: 'user', content: 'a' },
      { role: 'assistant', content: 'b' },
      { role: 'user', content: 'c' },
    ],
  };
  for (const server of SERVERS) {
    const result = vendorRequest(targetOf(server, 'm'), request);
    expect([server, result.same, result.idle]).toEqual([server, true, true]);
  }
});
