/** Clients that know `functions` and `function_call` alone, at vendors that have tools alone. */

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test';
import type { JsonObject } from '../../src/lib/json/json.ts';
import { providersOf } from '../support/binary.ts';
import { call, type FakeUpstream, say, startFakeUpstream } from '../support/fake-upstream/index.ts';
import { type InProcess, startInProcess } from '../support/in-process.ts';

const VENDORS = ['openai-chat', 'anthropic-messages', 'openai-responses', 'google-gemini'] as const;

let upstream: FakeUpstream;
let gateway: InProcess;

beforeAll(async () => {
  upstream = await startFakeUpstream();
  const config = providersOf(upstream, VENDORS) as { providers: JsonObject };
  const knowing = {
    protocol: 'openai-chat',
    base_url: upstream.baseUrl('openai-chat'),
    keys: ['sk-upstream'],
    profile: 'openai-chat',
    models: ['m-knowing'],
  };
  gateway = await startInProcess({ ...config, providers: { ...config.providers, knowing } });
});
afterAll(async () => {
  await gateway.stop();
  await upstream.stop();
});
beforeEach(() => upstream.clear());

const functions = [
  { name: 'read', parameters: { type: 'object', properties: { path: { type: 'string' } } } },
];
const called = (path: string) => ({
  role: 'assistant',
  content: null,
  function_call: { name: 'read', arguments: JSON.stringify({ path }) },
});
const answered = (content: string) => ({ role: 'function', name: 'read', content });

const READ = call({ name: 'read', arguments: { path: 'a' } });

const post = (model: string, more: JsonObject) =>
  fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    body: JSON.stringify({
      model,
      messages: [{ role: 'user', content: 'Read.' }],
      functions,
      ...more,
    }),
  });

describe.each(VENDORS)('%s', (vendor) => {
  const model = `m-${vendor}`;

  test('a call comes back as function_call', async () => {
    upstream.answerWith(() => READ);
    const response = await post(model, { function_call: { name: 'read' } });
    expect(upstream.refusals).toEqual([]);
    const { choices } = (await response.json()) as { choices: JsonObject[] };
    expect(choices[0]).toMatchObject({
      message: { function_call: { name: 'read', arguments: '{"path":"a"}' } },
      finish_reason: 'function_call',
    });
  });

  test('so it does in a stream', async () => {
    upstream.answerWith(() => READ);
    const text = await (await post(model, { stream: true })).text();
    expect(text).toContain('"function_call":{"name":"read"');
    expect(text).not.toContain('"tool_calls"');
    expect(text).toContain('"finish_reason":"function_call"');
  });

  test('a history that calls a function twice is one that the vendor takes', async () => {
    upstream.answerWith(() => say('Done.'));
    const messages = [
      { role: 'user', content: 'Read both.' },
      called('a'),
      answered('AAA'),
      called('b'),
      answered('BBB'),
    ];
    const response = await post(model, { messages });
    expect([response.status, upstream.refusals]).toEqual([200, []]);
    const sent = JSON.stringify(upstream.modelRequests.at(-1)!.body);
    expect(sent).toContain('AAA');
    expect(sent.indexOf('AAA')).toBeLessThan(sent.indexOf('BBB'));
    expect(sent).not.toMatch(/"functions"|"function_call":|"role":"function"/);
  });
});

const HISTORY = [
  { role: 'user', content: 'Read both.' },
  called('a'),
  answered('AAA'),
  { role: 'assistant', content: null, function_call: { name: 'read', arguments: '' } },
  answered('BBB'),
];

const sentBody = () => upstream.modelRequests.at(-1)!.body as JsonObject;

test('a vendor of Chat that has tools alone gets each call with its result', async () => {
  upstream.answerWith(() => say('Done.'));
  const response = await post('m-openai-chat', {
    messages: HISTORY,
    function_call: { name: 'read' },
  });
  const call = (id: string, args: string) => ({
    role: 'assistant',
    content: null,
    tool_calls: [{ id, type: 'function', function: { name: 'read', arguments: args } }],
  });
  expect(sentBody()).toEqual({
    model: 'm-openai-chat',
    messages: [
      HISTORY[0]!,
      call('call_0', '{"path":"a"}'),
      { role: 'tool', tool_call_id: 'call_0', content: 'AAA' },
      call('call_1', '{}'),
      { role: 'tool', tool_call_id: 'call_1', content: 'BBB' },
    ],
    tools: [{ type: 'function', function: functions[0]! }],
    tool_choice: { type: 'function', function: { name: 'read' } },
  });
  expect(response.headers.get('x-hopgate-notes')).toContain('parameter_mapped');
});

test.each<[string, JsonObject]>([
  ['none declared', { functions: undefined }],
  ['an empty list', { functions: [] }],
  ['none to be called', { function_call: 'none' }],
])('so it does with %s', async (_, more) => {
  upstream.answerWith(() => say('Done.'));
  const response = await post('m-openai-chat', { messages: HISTORY, ...more });
  expect([response.status, upstream.refusals]).toEqual([200, []]);
  expect(JSON.stringify(sentBody())).not.toMatch(/"functions"|"function_call":|"role":"function"/);
});

test('a text before the call stays, in a stream', async () => {
  upstream.answerWith(() => ({ parts: [...say('I read.').parts, ...READ.parts] }));
  const text = await (await post('m-openai-chat', { stream: true })).text();
  expect(text).toContain('I read.');
  expect(text).toContain('"function_call":{"name":"read"');
  expect(text).not.toContain('"tool_calls"');
});

test('a large body is looked at, too', async () => {
  upstream.answerWith(() => say('Done.'));
  const messages = [...HISTORY, { role: 'user', content: 'x'.repeat(300_000) }];
  await (await post('m-openai-chat', { messages })).text();
  expect(JSON.stringify(sentBody())).not.toMatch(/"functions"|"function_call":|"role":"function"/);
});

test.each([false, true])(
  'a vendor that knows functions gets what came, and so does the client: stream %j',
  async (stream) => {
    upstream.answerWith(() => say('Done.'));
    const response = await post('m-knowing', { messages: HISTORY, stream });
    await response.text();
    expect(sentBody()).toEqual({ model: 'm-knowing', messages: HISTORY, functions, stream });
    expect(response.headers.get('x-hopgate-notes') ?? '').toBe('');
  },
);

test('tools and functions in one request: the calls are those of tools', async () => {
  upstream.answerWith(() => READ);
  const tools = [
    { type: 'function', function: { name: 'write', parameters: functions[0]!.parameters } },
  ];
  const response = await post('m-openai-chat', { tools });
  expect(JSON.stringify(sentBody().tools)).toContain('"read"');
  expect(await response.text()).toContain('"tool_calls"');
});
