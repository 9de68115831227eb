/** Calls of functions in a history whose client has learnt tools since: vendors that know tools alone refuse the role. */

import { expect, test } from 'bun:test';
import { legacyHistory } from '../../src/features/legacy-functions/index.ts';
import { refusalRetry } from '../../src/features/refusal-retry/index.ts';
import { toolPairing } from '../../src/features/tool-pairing/index.ts';
import { vendorFit } from '../../src/features/vendor-fit/index.ts';
import type { JsonObject } from '../../src/lib/json/json.ts';
import { FINE, type Scripted, scriptedGateway } from './scripted.ts';

const read = (path: string) => ({ name: 'read', arguments: JSON.stringify({ path }) });
const tools = [{ type: 'function', function: { name: 'read', parameters: { type: 'object' } } }];
const user = { role: 'user', content: 'Read.' };
const said = (more: JsonObject): JsonObject => ({ role: 'assistant', content: null, ...more });
const legacyCall = (path: string) => said({ function_call: read(path) });
const legacyResult = (content: string): JsonObject => ({ role: 'function', name: 'read', content });
const call = (id: string, path: string) => ({ id, type: 'function', function: read(path) });
const calls = (...all: JsonObject[]) => said({ tool_calls: all });
const result = (tool_call_id: string, content: string): JsonObject => ({
  role: 'tool',
  tool_call_id,
  content,
});

const FEATURES = [legacyHistory, refusalRetry(), toolPairing, vendorFit()];
const gateway = (script: Scripted[], profile = 'none') =>
  scriptedGateway('openai-chat', script, FEATURES, '', { profile });
const refused = (message: string, status = 400): Scripted => ({
  status,
  json: { error: { message } },
});
const DEEPSEEK =
  'Failed to deserialize the JSON body into the target type: messages[2].role: unknown variant `function`, expected one of `system`, `user`, `assistant`, `tool`';
const OLD = [user, legacyCall('a'), legacyResult('A')];

const HISTORIES: readonly (readonly [string, readonly JsonObject[], readonly JsonObject[]])[] = [
  ['a call of a function', OLD, [user, calls(call('call_0', 'a')), result('call_0', 'A')]],
  [
    'functions, then tools',
    [...OLD, calls(call('call_0', 'b')), result('call_0', 'B')],
    [
      user,
      calls(call('call_1', 'a')),
      result('call_1', 'A'),
      calls(call('call_0', 'b')),
      result('call_0', 'B'),
    ],
  ],
  [
    'calls of tools that are answered as functions are, in their order',
    [user, calls(call('x', 'a'), call('y', 'b')), legacyResult('A'), legacyResult('B')],
    [user, calls(call('x', 'a'), call('y', 'b')), result('x', 'A'), result('y', 'B')],
  ],
  [
    'a call of a function that is answered as tools are',
    [user, legacyCall('a'), { ...result('call_9', 'A'), name: 'read' }],
    [user, calls(call('call_0', 'a')), result('call_0', 'A')],
  ],
  [
    'one under the name of the function',
    [user, legacyCall('a'), result('read', 'A')],
    [user, calls(call('call_0', 'a')), result('call_0', 'A')],
  ],
  [
    'both forms in one message',
    [user, said({ function_call: read('a'), tool_calls: [call('x', 'a')] }), legacyResult('A')],
    [user, calls(call('x', 'a')), result('x', 'A')],
  ],
];

test.each(HISTORIES)(
  '%s: each call has its result once the vendor refuses functions',
  async (_, messages, wanted) => {
    const { ask, sent } = gateway([refused(DEEPSEEK, 422), FINE['openai-chat']]);
    expect((await ask('openai-chat', { model: 'm', messages, tools })).status).toBe(200);
    expect(sent[1]).toEqual({ model: 'm', messages: wanted, tools });
  },
);

test.each([
  [DEEPSEEK, 422],
  // https://lmstudio.ai, in the words of github.com/MangoLion/plotbunni/issues/5
  [
    "'messages' array must only contain objects with a 'role' field that is in [user, assistant, system, tool]. Got 'function'.",
    400,
  ],
  // pydantic's tagged unions
  [
    "Input tag 'function' found using 'role' does not match any of the expected tags: 'system', 'user', 'assistant', 'tool'",
    422,
  ],
])('the refusal %s is understood', async (message, status) => {
  const { ask, sent } = gateway([refused(message, status), FINE['openai-chat']]);
  expect((await ask('openai-chat', { model: 'm', messages: OLD, tools })).status).toBe(200);
  expect(JSON.stringify(sent[1])).not.toMatch(/"function_call"|"role":"function"/);
});

test('what nobody refuses goes out as it came', async () => {
  const { ask, sent, summaries } = gateway([FINE['openai-chat']]);
  await ask('openai-chat', { model: 'm', messages: OLD, tools });
  expect(sent).toEqual([{ model: 'm', messages: OLD, tools }]);
  expect(summaries[0]!.notes).toEqual([]);
});
