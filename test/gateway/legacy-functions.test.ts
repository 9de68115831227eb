/** Clients that know `functions` and `function_call` alone, at vendors that have tools. */

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test';
import type { JsonObject } from '../../src/lib/json/json.ts';
import { providersOf } from '../support/binary.ts';
import { call, type FakeUpstream, say, startFakeUpstream } from '../support/fake-upstream/index.ts';
import { type InProcess, startInProcess } from '../support/in-process.ts';

const VENDORS = ['anthropic-messages', 'openai-responses', 'google-gemini'] as const;

let upstream: FakeUpstream;
let gateway: InProcess;

beforeAll(async () => {
  upstream = await startFakeUpstream();
  gateway = await startInProcess(providersOf(upstream, VENDORS));
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
    upstream.answerWith(() => call({ name: 'read', arguments: { path: 'a' } }));
    const response = await post(model, { function_call: { name: 'read' } });
    expect(upstream.refusals).toEqual([]);
    const { choices } = (await response.json()) as { choices: JsonObject[] };
    expect(choices[0]).toMatchObject({
      message: { function_call: { name: 'read', arguments: '{"path":"a"}' } },
      finish_reason: 'function_call',
    });
  });

  test('so it does in a stream', async () => {
    upstream.answerWith(() => call({ name: 'read', arguments: { path: 'a' } }));
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
  });
});
