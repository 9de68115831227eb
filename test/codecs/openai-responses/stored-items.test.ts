/** Expansion of `previous_response_id`: earlier items before a conversation. */

import { expect, test } from 'bun:test';
import { openaiResponses } from '../../../src/codecs/openai-responses/index.ts';
import {
  inputItems,
  outputItems,
  prependItems,
} from '../../../src/codecs/openai-responses/stored-items.ts';
import { Notes } from '../../../src/conversation/notes.ts';
import { client, conversation, target } from './material.ts';

const earlier = [
  { type: 'message', role: 'user', content: 'one' },
  { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'gAA' },
  { type: 'function_call', id: 'fc_1', call_id: 'c', name: 'f', arguments: '{}' },
];
const output = { type: 'function_call_output', call_id: 'c', output: 'ok' };

test('the expanded conversation goes out whole, without the id that it replaces', () => {
  const body = { model: 'm', input: [output], previous_response_id: 'resp_1', temperature: 1 };
  const expanded = prependItems(conversation(body), earlier);
  expect(expanded.turns.length).toBe(4);
  const notes = new Notes();
  expect(openaiResponses.encodeRequest(expanded, target('m'), notes)).toEqual({
    model: 'm',
    input: [...earlier, output],
    temperature: 1,
  });
  expect(notes.size).toBe(0);
});

test('the reply still names the id', () => {
  const expanded = prependItems(
    conversation({ model: 'm', input: 'x', previous_response_id: 'resp_1' }),
    earlier,
  );
  const reply = openaiResponses.encodeReply(
    { id: 'x', model: 'm', blocks: [], finish: 'stop' },
    client(expanded),
  );
  expect(reply.previous_response_id).toBe('resp_1');
});

test('a string input stays last, also after a changed setting', () => {
  const request = conversation({ model: 'm', input: 'two', previous_response_id: 'resp_1' });
  const expanded = prependItems(
    { ...request, settings: { ...request.settings, maxTokens: 9 } },
    earlier.slice(0, 1),
  );
  expect(openaiResponses.encodeRequest(expanded, target('m'), new Notes())).toEqual({
    model: 'm',
    input: [earlier[0]!, { type: 'message', role: 'user', content: 'two' }],
    max_output_tokens: 9,
  });
});

test('tools from earlier items are known again', () => {
  const items = [
    { type: 'additional_tools', role: 'developer', tools: [{ type: 'custom', name: 'exec' }] },
  ];
  const expanded = prependItems(
    conversation({ model: 'm', input: 'x', previous_response_id: 'resp_1' }),
    items,
  );
  expect(expanded.tools.map((tool) => tool.name)).toEqual(['exec']);
  expect(openaiResponses.encodeRequest(expanded, target('m'), new Notes()).tools).toBeUndefined();
});

test('bodies and replies become items', () => {
  expect(inputItems({ input: 'x' })).toEqual([{ type: 'message', role: 'user', content: 'x' }]);
  expect(inputItems({ input: [output] })).toEqual([output]);
  expect(inputItems({})).toEqual([]);
  expect(outputItems({ output: [output] })).toEqual([output]);
  expect(outputItems({})).toEqual([]);
});
