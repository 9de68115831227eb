/** Azure's filters say their results in choices without a message or a delta, at which clients of Chat throw. */

import { expect, test } from 'bun:test';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { type Scripted, scriptedGateway } from '../scripted.ts';

// https://learn.microsoft.com/azure/ai-foundry/openai/concepts/content-streaming
const results = { hate: { filtered: false, severity: 'safe' } };
const annotated = { index: 0, finish_reason: null, content_filter_results: results };
const chunk = (...choices: readonly JsonObject[]) =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices })}\n\n`;

const ask = async (answer: Scripted, more: object) => {
  const gateway = scriptedGateway('openai-chat', [answer], [], '', { profile: 'azure' });
  const asked = { model: 'm', messages: [{ role: 'user', content: 'a' }], ...more };
  return gateway.ask('openai-chat', asked);
};

test('in a stream, each choice has a delta', async () => {
  const sse = [
    chunk(annotated),
    chunk({ index: 0, delta: { role: 'assistant', content: 'Hello' }, finish_reason: null }),
    chunk({ ...annotated, content_filter_offsets: { start_offset: 5, end_offset: 9 } }),
    chunk({ index: 0, delta: {}, finish_reason: 'stop' }),
    'data: [DONE]\n\n',
  ];
  const tools = [{ type: 'function', function: { name: 'f', parameters: { type: 'object' } } }];
  const { status, text } = await ask({ sse }, { stream: true, tools });
  expect([status, text.includes('Hello')]).toEqual([200, true]);
  const chunks = text.split('\n\n').filter((line) => line.startsWith('data: {'));
  for (const line of chunks) {
    for (const choice of JSON.parse(line.slice(6)).choices) {
      expect(choice.delta).toBeObject();
    }
  }
});

test('in a whole answer, the choice has a message', async () => {
  const choices = [{ index: 0, finish_reason: 'content_filter', content_filter_results: results }];
  const json = { id: 'c', object: 'chat.completion', created: 1, model: 'm', choices };
  const { status, text } = await ask({ json }, {});
  const [choice] = JSON.parse(text).choices;
  expect([status, choice.message.role, choice.finish_reason]).toEqual([
    200,
    'assistant',
    'content_filter',
  ]);
});
