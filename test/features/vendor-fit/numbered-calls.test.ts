/** Kimi's models behind servers that put ids of calls into the prompt as they come: a session begun elsewhere goes on. */

import { expect, test } from 'bun:test';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { targetOf, vendorRequest } from './vendor.ts';

const KIMI = targetOf('vllm', 'moonshotai/Kimi-K2.6', 'openai-chat');

/** Each call with its result, as Chat has them. */
const history = (...ids: readonly string[]): JsonObject => ({
  model: 'm',
  messages: [
    { role: 'user', content: 'go' },
    ...ids.flatMap((id) => [
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id, type: 'function', function: { name: 'read', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: id, content: `of ${id}` },
    ]),
  ],
});

test.each([
  [
    ['call_a', 'toolu_b'],
    ['functions.read:0', 'functions.read:1'],
  ],
  [
    ['call_a', 'functions.read:1'],
    ['functions.read:0', 'functions.read:1'],
  ],
  [
    ['functions.read:1', 'call_b'],
    ['functions.read:1', 'functions.read:2'],
  ],
  [
    ['functions.read:7', 'call_b'],
    ['functions.read:7', 'functions.read:1'],
  ],
])('%j become %j', (given, expected) => {
  const { body } = vendorRequest(KIMI, history(...given));
  const messages = body.messages as readonly JsonObject[];
  const calls = messages.flatMap(({ tool_calls }) => (tool_calls ?? []) as readonly JsonObject[]);
  expect(calls.map(({ id }) => id)).toEqual(expected);
  const results = messages.filter(({ role }) => role === 'tool');
  expect(results.map(({ tool_call_id, content }) => [tool_call_id, content])).toEqual(
    given.map((id, i) => [expected[i], `of ${id}`]),
  );
});

test('ids of its own go on as they are', () => {
  const request = history('functions.read:0', 'functions.read:1');
  expect(vendorRequest(KIMI, request).same).toBe(true);
});
