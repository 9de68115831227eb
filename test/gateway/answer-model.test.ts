/** `answer_model: requested`: answers name the model as the client asked for it, and are otherwise what they were. */

import { describe, expect, test } from 'bun:test';
import { CODECS } from '../../src/app/codecs.ts';
import { withText } from '../../src/gateway/tries/edit-answer.ts';
import type { JsonObject } from '../../src/lib/json/json.ts';
import type { SuiteProtocol } from '../support/suite-protocols.ts';
import { type Scripted, scriptedGateway } from './scripted.ts';

const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
const chat = (more: object) => ({ id: 'c', object: 'chat.completion.chunk', created: 1, ...more });
/** The text quotes the member, which is none of its own. */
const TEXT = 'The "model":"vendor-1" says \\"model\\":\\"vendor-1\\".';
const message = { id: 'm', type: 'message', role: 'assistant' };
const part = { type: 'output_text', text: TEXT, annotations: [] };
const item = { ...message, status: 'completed', content: [part] };
const response = (status: string, output: object[]) => ({
  id: 'r',
  object: 'response',
  created_at: 1,
  status,
  model: 'vendor-1',
  output,
  usage: { input_tokens: 3, output_tokens: 2, total_tokens: 5 },
});

const WHOLE: Readonly<Record<SuiteProtocol, JsonObject>> = {
  'openai-chat': {
    id: 'c',
    object: 'chat.completion',
    created: 1,
    model: 'vendor-1',
    choices: [{ index: 0, message: { role: 'assistant', content: TEXT }, finish_reason: 'stop' }],
    usage,
  },
  'openai-responses': response('completed', [item]) as unknown as JsonObject,
  'anthropic-messages': {
    ...message,
    model: 'vendor-1',
    content: [{ type: 'text', text: TEXT }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: 3, output_tokens: 2 },
  },
};

const frames = (list: readonly (JsonObject | '[DONE]')[]) =>
  list.map((one) =>
    one === '[DONE]'
      ? 'data: [DONE]\n\n'
      : `${typeof one.type === 'string' ? `event: ${one.type}\n` : ''}data: ${JSON.stringify(one)}\n\n`,
  );
const at = { output_index: 0, content_index: 0, item_id: 'm' };
const STREAMS: Readonly<Record<SuiteProtocol, readonly string[]>> = {
  'openai-chat': frames([
    chat({
      model: 'vendor-1',
      choices: [{ index: 0, delta: { role: 'assistant', content: TEXT } }],
    }),
    chat({ model: 'vendor-1', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }),
    '[DONE]',
  ] as JsonObject[]),
  'openai-responses': frames([
    { type: 'response.created', sequence_number: 0, response: response('in_progress', []) },
    {
      type: 'response.output_item.added',
      sequence_number: 1,
      output_index: 0,
      item: { ...item, content: [] },
    },
    { type: 'response.content_part.added', sequence_number: 2, ...at, part: { ...part, text: '' } },
    { type: 'response.output_text.delta', sequence_number: 3, ...at, delta: TEXT },
    { type: 'response.output_text.done', sequence_number: 4, ...at, text: TEXT },
    { type: 'response.content_part.done', sequence_number: 5, ...at, part },
    { type: 'response.output_item.done', sequence_number: 6, output_index: 0, item },
    { type: 'response.completed', sequence_number: 7, response: response('completed', [item]) },
  ] as unknown as JsonObject[]),
  'anthropic-messages': frames([
    {
      type: 'message_start',
      message: { ...WHOLE['anthropic-messages'], content: [], stop_reason: null },
    },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: TEXT } },
    { type: 'content_block_stop', index: 0 },
    {
      type: 'message_delta',
      delta: { stop_reason: 'end_turn', stop_sequence: null },
      usage: { output_tokens: 2 },
    },
    { type: 'message_stop' },
  ] as JsonObject[]),
};
const PROTOCOLS = Object.keys(WHOLE) as SuiteProtocol[];
const turns = [{ role: 'user', content: 'x' }];
const asked = (client: SuiteProtocol, stream: boolean): JsonObject => ({
  model: 'asked-9',
  stream,
  max_tokens: 9,
  ...(client === 'openai-responses' ? { input: 'x' } : { messages: turns }),
});

async function answered(
  client: SuiteProtocol,
  vendor: SuiteProtocol,
  stream: boolean,
  answer: Scripted,
  setting = 'answer_model: requested\n',
) {
  const gateway = scriptedGateway(vendor, [answer], [], setting);
  const { status, text } = await gateway.ask(client, asked(client, stream));
  expect([status, (gateway.sent[0] as JsonObject).model]).toEqual([200, 'asked-9']);
  return text;
}

describe.each(PROTOCOLS)('a client of %s', (client) => {
  test.each(PROTOCOLS)('vendor of %s: whole and streamed', async (vendor) => {
    const whole: Scripted = { json: WHOLE[vendor] };
    const streamed: Scripted = { sse: STREAMS[vendor] };
    for (const [stream, answer] of [
      [false, whole],
      [true, streamed],
      // A vendor that answers otherwise than it was asked.
      [true, whole],
    ] as const) {
      const usual = await answered(client, vendor, stream, answer, '');
      const echoed = await answered(client, vendor, stream, answer);
      const own = '"model":"vendor-1"';
      expect(usual).toContain(own);
      expect(echoed).toContain('"model":"asked-9"');
      expect(echoed).not.toContain(own);
      // Ids of the gateway's own making, and the second, differ from one exchange to the next.
      const plain = (text: string) =>
        text.replace(/[a-z]+_[0-9a-z_-]{12,}/g, 'ID').replace(/\b\d{10}\b/g, 'TIME');
      expect(plain(echoed)).toBe(plain(usual.replaceAll(own, '"model":"asked-9"')));
    }
  });
});

test('only the member at its place, and only a text', () => {
  const gemini = CODECS['google-gemini'].modelAt;
  expect(withText('{"modelVersion":"v","x":1.0}', gemini.frame, 'a"b')).toBe(
    '{"modelVersion":"a\\"b","x":1.0}',
  );
  const { frame } = CODECS['anthropic-messages'].modelAt;
  for (const same of [
    '{"type":"ping"}',
    '{"delta":{"text":"\\"model\\""},"model":"v"}',
    '{"message":{"content":[{"model":"v"}]}}',
    '{"message":{"model":null}}',
    '{"message":"model"}',
    'model" {',
  ]) {
    expect(withText(same, frame, 'a')).toBe(same);
  }
});

// llama.cpp and others leave it out, or send ''; Google's `modelVersion` is not in every answer.
test.each(['openai-responses', 'anthropic-messages', 'google-gemini'] as const)(
  'an answer whose vendor names no model has the one that was asked for, in a client of %s',
  async (client) => {
    const { model: _, ...bare } = WHOLE['openai-chat'];
    for (const json of [bare, { ...bare, model: '' }]) {
      const { ask } = scriptedGateway('openai-chat', [{ json }]);
      const asked = { messages: [{ role: 'user', content: 'Hi' }], input: 'Hi', max_tokens: 9 };
      const contents = [{ role: 'user', parts: [{ text: 'Hi' }] }];
      const { text } = await ask(client, { model: 'asked-1', stream: false, ...asked, contents });
      const answer = JSON.parse(text) as JsonObject;
      expect(answer.model ?? answer.modelVersion).toBe('asked-1');
    }
  },
);
