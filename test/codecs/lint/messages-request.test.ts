/** The rules of the Messages request linter: one failing body for each rule, and valid bodies without findings. */

import { describe, expect, test } from 'bun:test';
import { lintRequest } from '../../../src/codecs/anthropic-messages/lint/lint-request.ts';
import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import { rulesIn, rulesOf } from './rules.ts';

const tools = [{ name: 'look', input_schema: { type: 'object' } }];
const body = (more: JsonObject = {}): JsonObject => ({
  model: 'claude-haiku-4-5',
  max_tokens: 4096,
  messages: [{ role: 'user', content: 'Hi' }],
  ...more,
});
const use = (id = 't1', more: JsonObject = {}) => ({
  type: 'tool_use',
  id,
  name: 'look',
  input: {},
  ...more,
});
const result = (id = 't1', more: JsonObject = {}) => ({
  type: 'tool_result',
  tool_use_id: id,
  content: 'x',
  ...more,
});
const user = (...content: Json[]) => ({ role: 'user', content });
const assistant = (...content: Json[]) => ({ role: 'assistant', content });
const text = (message = 'x') => ({ type: 'text', text: message });
const thinking = (more: JsonObject = {}) => ({
  type: 'thinking',
  thinking: 'hm',
  signature: 'EqQB',
  ...more,
});
const openChat = (...messages: Json[]) => body({ tools, messages: [user(text()), ...messages] });
const mark = { cache_control: { type: 'ephemeral' } };
const think = { thinking: { type: 'enabled', budget_tokens: 2048 } };
const search = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} };

const CASES: readonly (readonly [rule: string, body: Json, words: string])[] = [
  ['body-object', [], 'valid dictionary'],
  ['field-required', { model: 'm', messages: [] }, 'max_tokens: Field required'],
  [
    'field-required',
    openChat(assistant(thinking({ signature: undefined }), use()), user(result())),
    'signature: Field required',
  ],
  ['extra-input', body({ strict: null }), 'strict: Extra inputs are not permitted'],
  [
    'extra-input',
    openChat({ role: 'assistant', content: 'x', reasoning_content: 'y' }, user(text())),
    'messages.1.reasoning_content: Extra inputs',
  ],
  [
    'extra-input',
    openChat(assistant(thinking(mark), text()), user(text())),
    'cache_control: Extra inputs',
  ],
  [
    'cache-marks',
    body({ system: Array.from({ length: 5 }, () => ({ ...text(), ...mark })) }),
    'Found 5.',
  ],
  ['max-tokens', body({ max_tokens: 1.5 }), 'valid integer'],
  ['temperature', body({ temperature: 1.5 }), 'temperature'],
  ['top-p', body({ top_p: 2 }), 'top_p'],
  ['stop-blank', body({ stop_sequences: ['\n'] }), 'non-whitespace'],
  [
    'thinking-budget',
    body({ thinking: { type: 'enabled', budget_tokens: 1000 } }),
    'greater than or equal to 1024',
  ],
  ['thinking-budget', body({ max_tokens: 2048, ...think }), 'must be greater than'],
  ['thinking-temperature', body({ ...think, temperature: 0.5 }), 'temperature'],
  [
    'thinking-forced-tool',
    body({ ...think, tools, tool_choice: { type: 'any' } }),
    'Thinking may not be enabled when tool_choice forces tool use.',
  ],
  ['tool-object', body({ tools: ['look'] }), 'valid dictionary'],
  [
    'tool-name',
    body({ tools: [{ ...tools[0]!, name: 'a.b' }] }),
    "pattern '^[a-zA-Z0-9_-]{1,128}$'",
  ],
  ['tool-schema', body({ tools: [{ name: 'a' }] }), 'input_schema: Field required'],
  ['tool-names-unique', body({ tools: [...tools, ...tools] }), 'unique'],
  ['tool-choice-without-tools', body({ tool_choice: { type: 'any' } }), 'providing tools'],
  [
    'tool-choice-unknown',
    body({ tools, tool_choice: { type: 'tool', name: 'x' } }),
    "Tool 'x' not found",
  ],
  ['unknown-block', body({ system: [{ type: 'image' }] }), "Input tag 'image'"],
  [
    'unknown-block',
    openChat(assistant({ type: 'reasoning' }), user(text())),
    "Input tag 'reasoning'",
  ],
  [
    'unknown-block',
    openChat(assistant(use()), user(result('t1', { content: [use()] }))),
    "'document', 'image', 'search_result', 'text', 'tool_reference'",
  ],
  ['messages-empty', body({ messages: [] }), 'at least one message'],
  [
    'prefill',
    { ...openChat(assistant(text())), model: 'claude-opus-4-7' },
    'does not support assistant message prefill',
  ],
  ['message-object', body({ messages: ['Hi'] }), 'valid dictionary'],
  ['role', body({ messages: [{ role: 'tool', content: 'x' }] }), 'Unexpected role "tool"'],
  [
    'empty-message',
    openChat(assistant(), user(text())),
    'all messages must have non-empty content',
  ],
  ['blank-text', body({ messages: [{ role: 'user', content: ' \n' }] }), 'non-whitespace'],
  [
    'empty-text',
    openChat(assistant(text('')), user(text())),
    'text content blocks must be non-empty',
  ],
  [
    'cache-on-empty-text',
    openChat(assistant({ ...text(''), ...mark }), user(text())),
    'cache_control cannot be set',
  ],
  ['trailing-whitespace', openChat(assistant(text('So '))), 'trailing whitespace'],
  ['block-object', body({ messages: [user('Hi')] }), 'valid dictionary'],
  [
    'block-role',
    body({ messages: [assistant(result())] }),
    '`tool_result` blocks can only be in `user` messages',
  ],
  [
    'block-role',
    body({ messages: [user(use())] }),
    '`tool_use` blocks can only be in `assistant` messages',
  ],
  [
    'input-object',
    openChat(assistant(use('t1', { input: '{}' })), user(result())),
    'tool_use.input: Input should be a valid dictionary',
  ],
  [
    'empty-error-result',
    openChat(assistant(use()), user(result('t1', { content: '', is_error: true }))),
    'content cannot be empty if `is_error` is true',
  ],
  ['result-content', openChat(assistant(use()), user(result('t1', { content: {} }))), 'valid list'],
  [
    'signature',
    openChat(assistant(thinking({ signature: 'hopgate1.cs.x.y' }), text()), user(text())),
    'Invalid `signature` in `thinking` block',
  ],
  [
    'id-pattern',
    openChat(assistant(use('functions.x:0')), user(result('functions.x:0'))),
    "pattern '^[a-zA-Z0-9_-]+$'",
  ],
  [
    'duplicate-call-id',
    openChat(assistant(use('a'), use('a')), user(result('a'))),
    '`tool_use` ids must be unique',
  ],
  [
    'duplicate-call-id',
    openChat(assistant(use()), user(result()), assistant(use()), user(result())),
    'must be unique',
  ],
  [
    'stray-result',
    openChat(user(result('zz'))),
    'unexpected `tool_use_id` found in `tool_result` blocks: zz',
  ],
  [
    'duplicate-result',
    openChat(assistant(use()), user(result(), result())),
    'each tool_use must have a single result',
  ],
  [
    'unanswered-call',
    openChat(assistant(use('a'), use('b')), user(result('a'))),
    'immediately after: b.',
  ],
  ['unanswered-call', openChat(assistant(use())), 'immediately after: t1.'],
  ['unanswered-call', openChat(assistant(use(), text()), user(result())), 'immediately after: t1.'],
  ['unanswered-call', openChat(assistant(use()), user(text(), result())), 'immediately after: t1.'],
  [
    'stray-server-result',
    openChat(
      assistant({ type: 'web_search_tool_result', tool_use_id: 'srvtoolu_9', content: [] }),
      user(text()),
    ),
    'unexpected `tool_use_id` found in `web_search_tool_result` blocks',
  ],
  [
    'unanswered-server-call',
    openChat(assistant(search), user(text())),
    '`web_search` tool use with id `srvtoolu_1` was found without',
  ],
  [
    'thinking-last',
    openChat(assistant(text(), thinking()), user(text())),
    'The final block in an assistant message cannot be `thinking`.',
  ],
  ['thinking-disabled', openChat(assistant(thinking(), text())), 'When thinking is disabled'],
  [
    'thinking-first',
    { ...openChat(assistant(use()), user(result())), ...think },
    'Expected `thinking` or `redacted_thinking`, but found `tool_use`',
  ],
];

describe('refused bodies', () => {
  for (const [rule, sent, text] of CASES) {
    test(`${rule}: ${text}`, () => {
      const found = lintRequest(sent).filter((finding) => finding.rule === rule);
      expect(rulesOf(lintRequest(sent))).toContain(rule);
      expect(found.map(({ message }) => message).join('\n')).toContain(text);
      for (const { at } of found) expect(at).toMatch(/^(\/[^/]+)*$/);
    });
  }

  test('every rule has an example here', () => {
    const known = rulesIn('anthropic-messages', /^lint-(request|blocks|history)/);
    expect(known.filter((rule) => !CASES.some(([name]) => name === rule))).toEqual([]);
    expect(known.length).toBeGreaterThan(35);
  });
});

describe('accepted bodies', () => {
  const fine: readonly (readonly [what: string, body: Json])[] = [
    ['a plain question', body()],
    [
      'calls and their results, then words',
      openChat(assistant(text(), use('a'), use('b')), user(result('b'), result('a'), text())),
    ],
    ['a server tool in flight', openChat(assistant(search))],
    [
      'results in neighbouring user messages',
      openChat(assistant(use('a'), use('b')), user(result('a')), user(result('b'))),
    ],
    [
      'thinking before a call',
      { ...openChat(assistant(thinking(), use()), user(result())), ...think },
    ],
    [
      'adaptive thinking with a forced tool',
      body({ thinking: { type: 'adaptive' }, tools, tool_choice: { type: 'any' } }),
    ],
    [
      'an empty result that is no error',
      openChat(assistant(use()), user(result('t1', { content: '' }))),
    ],
    [
      'the body of Vertex',
      { ...body({ anthropic_version: 'vertex-2023-10-16' }), model: undefined },
    ],
    [
      'an effort from a system message on',
      openChat({ role: 'system', content: 'x', output_config: { effort: 'low' } }),
    ],
    ['a prefill of an older model', openChat(assistant(text('So')))],
  ];
  for (const [what, sent] of fine) test(what, () => expect(lintRequest(sent)).toEqual([]));

  test('no parsable body makes the linter throw', () => {
    for (const odd of [
      null,
      1,
      'x',
      [],
      {},
      { messages: 1 },
      { messages: [null, { role: 'user' }, { role: 'user', content: [1, null, {}] }] },
      { tools: {}, system: 3, messages: {} },
    ]) {
      expect(lintRequest(odd as Json).length).toBeGreaterThan(0);
    }
  });
});
