/** The rules of the Responses request linter: one failing body for each rule, and valid bodies without findings. */

import { describe, expect, test } from 'bun:test';
import { lintRequest } from '../../../src/codecs/openai-responses/lint/lint-request.ts';
import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import { rulesIn, rulesOf } from './rules.ts';

const body = (more: JsonObject = {}): JsonObject => ({ model: 'gpt-5', input: 'Hi', ...more });
const user = (content: Json = 'Hi'): JsonObject => ({ role: 'user', content });
const call = (id = 'call_1', more: JsonObject = {}): JsonObject => ({
  type: 'function_call',
  call_id: id,
  name: 'look',
  arguments: '{}',
  ...more,
});
const output = (id = 'call_1'): JsonObject => ({
  type: 'function_call_output',
  call_id: id,
  output: 'x',
});
const reasoning = (more: JsonObject = {}): JsonObject => ({
  type: 'reasoning',
  id: 'rs_1',
  summary: [],
  ...more,
});
const items = (...input: Json[]) => body({ input: [user(), ...input] });

const CASES: readonly (readonly [rule: string, body: Json, words: string])[] = [
  ['body-object', 1, 'could not parse'],
  ['model', { input: 'x' }, "'model'"],
  ['input', { model: 'm' }, "Missing required parameter: 'input'."],
  ['input', body({ input: [] }), 'empty array'],
  ['input', body({ input: 3 }), 'string or array'],
  ['max-output-tokens', body({ max_output_tokens: 5 }), 'Expected a value >= 16'],
  ['range', body({ temperature: -1 }), "Invalid 'temperature'"],
  ['moved-parameter', body({ max_tokens: 100 }), "has moved to 'max_output_tokens'"],
  ['tool-type', body({ tools: [{}] }), "'tools[0].type'"],
  [
    'tool-name',
    body({ tools: [{ type: 'function', function: { name: 'x' } }] }),
    "Missing required parameter: 'tools[0].name'.",
  ],
  ['tool-choice', body({ tool_choice: 'required' }), "'tools'"],
  ['item-object', items('x'), "'input[1]'"],
  [
    'item-id',
    items(call('call_1', { id: 'fc.1' }), output()),
    'letters, numbers, underscores, or dashes',
  ],
  [
    'item-id-prefix',
    items(call('call_1', { id: 'call_1' }), output()),
    "Expected an ID that begins with 'fc'.",
  ],
  [
    'duplicate-item',
    items(call('a', { id: 'fc_1' }), output('a'), call('b', { id: 'fc_1' }), output('b')),
    'Duplicate item found with id fc_1',
  ],
  ['call-id', items({ ...call(), call_id: '' }), "'input[1].call_id'"],
  ['call-id-long', items(call('x'.repeat(65)), output('x'.repeat(65))), 'maximum length 64'],
  ['call-name', items(call('call_1', { name: undefined }), output()), "'input[1].name'"],
  ['call-arguments', items(call('call_1', { arguments: {} }), output()), 'expected a string'],
  ['unanswered-call', items(call()), 'No tool output found for function call call_1.'],
  [
    'stray-output',
    items(output('call_9')),
    'No tool call found for function call output with call_id call_9.',
  ],
  ['role', items({ role: 'tool', content: 'x' }), "Invalid value: 'tool'"],
  ['content', items({ role: 'user' }), "'input[1].content'"],
  [
    'part-type',
    items({ role: 'assistant', content: [{ type: 'input_text', text: 'x' }] }),
    "'output_text', 'refusal'",
  ],
  ['summary', items(reasoning({ summary: undefined }), call(), output()), "'input[1].summary'"],
  ['lone-reasoning', items(reasoning()), 'was provided without its required following item'],
  ['lone-reasoning', items(reasoning(), user()), "Item 'rs_1' of type 'reasoning'"],
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
    const known = rulesIn('openai-responses', /^lint-(request|items)/);
    expect(known.filter((rule) => !CASES.some(([name]) => name === rule))).toEqual([]);
    expect(known.length).toBeGreaterThan(18);
  });
});

describe('accepted bodies', () => {
  const fine: readonly (readonly [what: string, body: Json])[] = [
    ['a plain question', body()],
    ['words between a call and its output', items(call(), user('wait'), output())],
    [
      'an output of a call that the vendor keeps',
      body({ previous_response_id: 'resp_1', input: [output('call_0')] }),
    ],
    ['reasoning before a call', items(reasoning(), call(), output())],
    ['hosted items', items({ type: 'web_search_call', id: 'ws_1', status: 'completed' }, user())],
  ];
  for (const [what, sent] of fine) test(what, () => expect(lintRequest(sent)).toEqual([]));

  test('no parsable body makes the linter throw', () => {
    for (const odd of [
      null,
      [],
      {},
      {
        model: 'm',
        input: [
          null,
          1,
          {},
          { type: 'reasoning' },
          { type: 'message', role: 'user', content: [1] },
        ],
      },
    ]) {
      expect(lintRequest(odd as Json).length).toBeGreaterThan(0);
    }
  });
});
