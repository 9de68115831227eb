/** Several answers to one request (`n`): all of them reach the client where one of them is written anew, and where the vendor did not stream. */

import { describe, expect, test } from 'bun:test';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { scriptedGateway } from '../scripted.ts';
import { WAYS } from './ways.ts';

const call = (n: number, more: JsonObject = {}): JsonObject => ({
  role: 'assistant',
  content: null,
  tool_calls: [{ id: `c${n}`, function: { name: 'run', arguments: `{"n":${n}}` }, ...more }],
});
const parts = (text: string): JsonObject => ({
  role: 'assistant',
  content: [{ type: 'text', text }],
});
const answer = (...messages: readonly JsonObject[]) => ({
  id: 'x',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: messages.map((message, index) => ({
    index,
    message,
    finish_reason: message.tool_calls === undefined ? 'stop' : 'tool_calls',
  })),
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
});
const ASKED = {
  model: 'm',
  n: 2,
  messages: [{ role: 'user', content: 'hi' }],
  tools: [{ type: 'function', function: { name: 'run', parameters: { type: 'object' } } }],
};
const TYPED = { type: 'function' };

describe.each(WAYS)('%s', (_, features) => {
  test.each([
    // Mistral says no type of its calls, and content in parts.
    ['calls without a type', answer(call(0), call(1)), [call(0, TYPED), call(1, TYPED)]],
    [
      'content in parts',
      answer(parts('A'), { role: 'assistant', content: 'B' }),
      [{ content: 'A' }, { content: 'B' }],
    ],
    [
      'a wrong end',
      {
        ...answer(call(0, TYPED), call(1, TYPED)),
        choices: answer(call(0, TYPED), call(1, TYPED)).choices.map((choice) => ({
          ...choice,
          finish_reason: 'stop',
        })),
      },
      [call(0, TYPED), call(1, TYPED)],
    ],
  ])('whole, with %s', async (_, json, messages) => {
    const gateway = scriptedGateway('openai-chat', [{ json }], features);
    const got = JSON.parse((await gateway.ask('openai-chat', ASKED)).text);
    expect(got.choices).toMatchObject(messages.map((message, index) => ({ index, message })));
    expect(gateway.summaries[0]!.notes).not.toEqual([]);
  });

  test('whole, as a vendor answers that was asked for a stream', async () => {
    const json = answer(call(0, TYPED), call(1, TYPED));
    const gateway = scriptedGateway('openai-chat', [{ json }], features);
    const { text } = await gateway.ask('openai-chat', { ...ASKED, stream: true });
    const chunks: { choices: { index: number; delta: JsonObject }[] }[] = text
      .split('\n\n')
      .filter((frame) => frame.startsWith('data: {'))
      .map((frame) => JSON.parse(frame.slice('data: '.length)));
    const ids = [0, 1].map((index) =>
      chunks
        .flatMap(({ choices }) => choices)
        .filter((choice) => choice.index === index)
        .flatMap(({ delta }) => (delta.tool_calls as JsonObject[] | undefined) ?? [])
        .flatMap(({ index, id }) => (id === undefined ? [] : [[index, id]])),
    );
    expect(ids).toEqual([[[0, 'c0']], [[0, 'c1']]]);
  });
});
