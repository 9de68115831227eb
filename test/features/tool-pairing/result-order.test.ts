/** Chat targets get results in the order of their calls, since templates without ids pair them by order. */

import { expect, test } from 'bun:test';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { run } from './support.ts';

const order = (body: JsonObject) =>
  (body.messages as JsonObject[]).flatMap(({ tool_call_id: id }) => (id === undefined ? [] : [id]));

test('results of Chat, Messages and Responses clients are in call order', () => {
  const call = (id: string) => ({ id, type: 'function', function: { name: 'f', arguments: '{}' } });
  const chat = {
    model: 'm',
    messages: [
      { role: 'user', content: 'a' },
      { role: 'assistant', content: null, tool_calls: [call('c1'), call('c2'), call('c3')] },
      ...['c3', 'c1', 'c2'].map((id) => ({ role: 'tool', tool_call_id: id, content: id })),
    ],
  };
  const messages = {
    model: 'm',
    max_tokens: 9,
    messages: [
      { role: 'user', content: 'a' },
      {
        role: 'assistant',
        content: ['c1', 'c2', 'c3'].map((id) => ({ type: 'tool_use', id, name: 'f', input: {} })),
      },
      {
        role: 'user',
        content: ['c3', 'c1', 'c2'].map((id) => ({
          type: 'tool_result',
          tool_use_id: id,
          content: id,
        })),
      },
    ],
  };
  const responses = {
    model: 'm',
    input: [
      { role: 'user', content: 'a' },
      ...['c1', 'c2', 'c3'].map((id) => ({
        type: 'function_call',
        call_id: id,
        name: 'f',
        arguments: '{}',
      })),
      ...['c3', 'c1', 'c2'].map((id) => ({
        type: 'function_call_output',
        call_id: id,
        output: id,
      })),
    ],
  };
  for (const [from, body] of [
    ['openai-chat', chat],
    ['anthropic-messages', messages],
    ['openai-responses', responses],
  ] as const) {
    const { body: sent, names } = run(body, from, { to: 'openai-chat' });
    expect([from, order(sent)]).toEqual([from, ['c1', 'c2', 'c3']]);
    expect(names).toContain('misplaced_tool_result_relocated');
    expect(run(sent, 'openai-chat').same).toBe(true);
  }
});
