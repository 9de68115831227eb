/** The rules of the Chat request linter: one failing body for each rule, and valid bodies without findings. */

import { describe, expect, test } from 'bun:test';
import { lintRequest } from '../../../src/codecs/openai-chat/lint/lint-request.ts';
import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import { rulesIn, rulesOf } from './rules.ts';

const tool = (name = 'look'): JsonObject => ({ type: 'function', function: { name } });
const body = (more: JsonObject = {}): JsonObject => ({
  model: 'gpt-5',
  messages: [{ role: 'user', content: 'Hi' }],
  ...more,
});
const call = (id: Json = 'c1', more: JsonObject = {}): JsonObject => ({
  id,
  type: 'function',
  function: { name: 'look', arguments: '{}' },
  ...more,
});
const calls = (...list: Json[]): JsonObject => ({
  role: 'assistant',
  content: null,
  tool_calls: list,
});
const answer = (id: Json = 'c1'): JsonObject => ({ role: 'tool', tool_call_id: id, content: 'x' });
const openChat = (...messages: Json[]) =>
  body({ tools: [tool()], messages: [{ role: 'user', content: 'Hi' }, ...messages] });

const CASES: readonly (readonly [rule: string, body: Json, words: string])[] = [
  ['body-object', 'x', 'could not parse'],
  ['model', { messages: body().messages }, 'model parameter'],
  ['messages', { model: 'm' }, "Missing required parameter: 'messages'."],
  ['messages', body({ messages: [] }), 'empty array'],
  ['stream', body({ stream: 'yes' }), 'expected a boolean'],
  [
    'stream-options',
    body({ stream_options: { include_usage: true } }),
    "only allowed when 'stream' is enabled",
  ],
  ['range', body({ temperature: 3 }), "Invalid 'temperature'"],
  ['stop', body({ stop: [...'abcde'] }), 'maximum length 4'],
  ['json-word', body({ response_format: { type: 'json_object' } }), "must contain the word 'json'"],
  ['tools-empty', body({ tools: [] }), "Invalid 'tools': empty array"],
  [
    'tools-many',
    body({ tools: Array.from({ length: 129 }, (_, i) => tool(`t${i}`)) }),
    'maximum length 128',
  ],
  ['tool-type', body({ tools: [{ function: { name: 'x' } }] }), "'tools[0].type'"],
  [
    'tool-type',
    body({ tools: [{ type: 'web_search' }] }),
    "Supported values are: 'function' and 'custom'",
  ],
  ['tool-name', body({ tools: [tool('a.b')] }), "'tools[0].function.name'"],
  [
    'tool-choice-without-tools',
    body({ tool_choice: 'auto' }),
    "'tool_choice' is only allowed when 'tools' are specified",
  ],
  [
    'parallel-without-tools',
    body({ parallel_tool_calls: true }),
    "'parallel_tool_calls' is only allowed",
  ],
  ['tool-choice', body({ tools: [tool()], tool_choice: 'any' }), "Invalid value: 'any'"],
  ['tool-choice', body({ tools: [tool()], tool_choice: tool('x') }), "'x' not found"],
  ['message-object', body({ messages: ['Hi'] }), "'messages[0]'"],
  ['role', body({ messages: [{ role: 'model', content: 'x' }] }), "Invalid value: 'model'"],
  ['content-null', openChat({ role: 'user', content: null }), 'expected a string, got null'],
  ['content-null', openChat({ role: 'assistant', content: null }), 'expected a string, got null'],
  ['content-type', openChat({ role: 'user', content: {} }), 'string or array'],
  ['content-empty', openChat({ role: 'user', content: [] }), 'empty array'],
  [
    'part-type',
    openChat(calls(call()), {
      ...answer(),
      content: [{ type: 'image_url', image_url: { url: 'x' } }],
    }),
    "Supported values are: 'text'",
  ],
  [
    'part-text',
    openChat({ role: 'user', content: [{ type: 'text' }] }),
    "'messages[1].content[0].text'",
  ],
  [
    'tool-call-id',
    openChat(calls(call()), answer(), { role: 'tool', content: 'x' }),
    "'messages[3].tool_call_id'",
  ],
  [
    'stray-tool-message',
    openChat(answer()),
    "must be a response to a preceeding message with 'tool_calls'",
  ],
  [
    'unknown-call',
    openChat(calls(call()), answer(), answer('zz')),
    "'zz' not found in 'tool_calls' of previous message",
  ],
  [
    'unanswered-call',
    openChat(calls(call('a'), call('b')), answer('a')),
    'did not have response messages: b',
  ],
  [
    'unanswered-call',
    openChat(calls(call('a')), { role: 'user', content: 'x' }, answer('a')),
    'did not have response messages: a',
  ],
  ['tool-calls', openChat({ role: 'assistant', content: 'x', tool_calls: {} }), 'array of objects'],
  [
    'tool-calls-empty',
    openChat({ role: 'assistant', content: 'x', tool_calls: [] }),
    'empty array',
  ],
  ['call-id', openChat(calls(call(null))), "'messages[1].tool_calls[0].id'"],
  [
    'call-id-long',
    openChat(calls(call('x'.repeat(65))), answer('x'.repeat(65))),
    'got a string with length 65',
  ],
  ['call-id-twice', openChat(calls(call(), call()), answer()), 'Duplicate'],
  [
    'call-type',
    openChat(calls(call('c1', { type: undefined })), answer()),
    "'messages[1].tool_calls[0].type'",
  ],
  [
    'call-name',
    openChat(calls(call('c1', { function: {} })), answer()),
    "'messages[1].tool_calls[0].function.name'",
  ],
  [
    'call-arguments',
    openChat(calls(call('c1', { function: { name: 'look', arguments: {} } })), answer()),
    'expected a string',
  ],
];

describe('refused bodies', () => {
  for (const [rule, sent, text] of CASES) {
    test(`${rule}: ${text}`, () => {
      const found = lintRequest(sent).filter((finding) => finding.rule === rule);
      expect(rulesOf(lintRequest(sent))).toContain(rule);
      expect(found.map(({ message }) => message).join('\n')).toContain(text);
    });
  }

  test('every rule has an example here', () => {
    const known = rulesIn('openai-chat', /^lint-(request|messages)/);
    expect(known.filter((rule) => !CASES.some(([name]) => name === rule))).toEqual([]);
    expect(known.length).toBeGreaterThan(28);
  });
});

describe('accepted bodies', () => {
  const fine: readonly (readonly [what: string, body: Json])[] = [
    ['a plain question', body()],
    [
      'parallel calls, answered in any order',
      openChat(calls(call('a'), call('b')), answer('b'), answer('a'), {
        role: 'user',
        content: 'So?',
      }),
    ],
    [
      'a freeform call',
      openChat(
        calls({ id: 'a', type: 'custom', custom: { name: 'patch', input: 'x' } }),
        answer('a'),
      ),
    ],
    [
      'JSON mode with its word',
      body({
        messages: [{ role: 'user', content: 'As JSON' }],
        response_format: { type: 'json_object' },
      }),
    ],
    [
      'pictures and files of the user',
      openChat({
        role: 'user',
        content: [
          { type: 'image_url', image_url: { url: 'x' } },
          { type: 'file', file: {} },
        ],
      }),
    ],
    [
      'the legacy function role',
      openChat(
        { role: 'assistant', content: null, function_call: { name: 'look', arguments: '{}' } },
        { role: 'function', name: 'look', content: 'x' },
      ),
    ],
  ];
  for (const [what, sent] of fine) test(what, () => expect(lintRequest(sent)).toEqual([]));

  test('no parsable body makes the linter throw', () => {
    for (const odd of [
      null,
      1,
      [],
      {},
      { messages: 1 },
      {
        model: 'm',
        messages: [null, {}, { role: 'assistant', content: [1], tool_calls: [1, {}] }],
        tools: [1, {}],
      },
    ]) {
      expect(lintRequest(odd as Json).length).toBeGreaterThan(0);
    }
  });
});
