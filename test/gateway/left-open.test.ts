/** A vendor that leaves its connection open behind its last event: clients wait a moment for the end, not for minutes. */

import { beforeAll, describe, expect, test } from 'bun:test';
import type { ProtocolName } from '../../src/conversation/protocol-names.ts';
import type { JsonObject } from '../../src/lib/json/json.ts';
import { type Answered, scriptedGateway } from './scripted.ts';

const frames = (...values: readonly JsonObject[]) =>
  values.map(
    (value) =>
      `${typeof value.type === 'string' ? `event: ${value.type}\n` : ''}data: ${JSON.stringify(value)}\n\n`,
  );
const chunk = (delta: JsonObject, finish_reason: string | null) => ({
  id: 'c',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices: [{ index: 0, delta, finish_reason }],
});
const CHAT = frames(chunk({ role: 'assistant', content: 'Hello' }, null), chunk({}, 'stop'), {
  id: 'c',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices: [],
  usage: { prompt_tokens: 7, completion_tokens: 1, total_tokens: 8 },
});
const part = { type: 'output_text', text: 'Hello', annotations: [] };
const item = { id: 'i', type: 'message', role: 'assistant', status: 'completed', content: [part] };
const response = { id: 'r', object: 'response', created_at: 1, model: 'm' };

const ANSWERS: Readonly<Record<string, readonly [ProtocolName, readonly string[]]>> = {
  'Chat with [DONE]': ['openai-chat', [...CHAT, 'data: [DONE]\n\n']],
  'Chat without [DONE]': ['openai-chat', CHAT],
  Messages: [
    'anthropic-messages',
    frames(
      {
        type: 'message_start',
        message: {
          id: 'm',
          type: 'message',
          role: 'assistant',
          model: 'm',
          content: [],
          stop_reason: null,
          stop_sequence: null,
          usage: { input_tokens: 7, output_tokens: 1 },
        },
      },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hello' } },
      { type: 'content_block_stop', index: 0 },
      {
        type: 'message_delta',
        delta: { stop_reason: 'end_turn', stop_sequence: null },
        usage: { output_tokens: 1 },
      },
      { type: 'message_stop' },
    ),
  ],
  Responses: [
    'openai-responses',
    frames(
      { type: 'response.created', response: { ...response, status: 'in_progress', output: [] } },
      {
        type: 'response.output_item.added',
        output_index: 0,
        item: { ...item, status: 'in_progress', content: [] },
      },
      {
        type: 'response.content_part.added',
        item_id: 'i',
        output_index: 0,
        content_index: 0,
        part: { ...part, text: '' },
      },
      {
        type: 'response.output_text.delta',
        item_id: 'i',
        output_index: 0,
        content_index: 0,
        delta: 'Hello',
      },
      { type: 'response.output_item.done', output_index: 0, item },
      {
        type: 'response.completed',
        response: {
          ...response,
          status: 'completed',
          output: [item],
          usage: { input_tokens: 7, output_tokens: 1, total_tokens: 8 },
        },
      },
    ),
  ],
  Gemini: [
    'google-gemini',
    frames({
      candidates: [
        { index: 0, content: { role: 'model', parts: [{ text: 'Hello' }] }, finishReason: 'STOP' },
      ],
      usageMetadata: { promptTokenCount: 7, candidatesTokenCount: 1, totalTokenCount: 8 },
    }),
  ],
};

const hi = [{ role: 'user', content: 'hi' }];
const ASKED: Readonly<Record<ProtocolName, JsonObject>> = {
  'openai-chat': { messages: hi },
  'openai-responses': { input: 'hi' },
  'anthropic-messages': { max_tokens: 9, messages: hi },
  'google-gemini': { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] },
};
const CLIENTS = Object.keys(ASKED) as ProtocolName[];
const CASES = Object.keys(ANSWERS).flatMap((vendor) =>
  CLIENTS.flatMap((client) => [true, false].map((stream) => ({ vendor, client, stream }))),
);

const answered = new Map<string, Answered & { kept: string; input: number | undefined }>();
const keyOf = (one: (typeof CASES)[number]) => JSON.stringify(one);

// All at once: each waits for the same moment.
beforeAll(async () => {
  await Promise.all(
    CASES.map(async (one) => {
      const [protocol, sse] = ANSWERS[one.vendor]!;
      const gateway = scriptedGateway(
        protocol,
        [{ sse, open: true }],
        [],
        'timeouts: { idle: 60 }',
      );
      const body = { model: 'm', stream: one.stream, ...ASKED[one.client] };
      const answer = await gateway.ask(one.client, body);
      const [summary] = gateway.summaries;
      const kept = `${summary?.status} ${summary?.error?.message ?? 'no error'}`;
      answered.set(keyOf(one), { ...answer, kept, input: summary?.usage?.input });
    }),
  );
}, 40_000);

describe.each(CASES)('$vendor vendor, $client client, streamed: $stream', (one) => {
  test('the answer ends, whole and without an error', () => {
    const { status, text, reset, kept, input } = answered.get(keyOf(one))!;
    expect({ status, reset, kept, input }).toEqual({
      status: 200,
      reset: false,
      kept: '200 no error',
      input: 7,
    });
    expect(text).toContain('Hello');
    const END = {
      'openai-chat': one.vendor === 'Chat without [DONE]' ? '"usage"' : '[DONE]',
      'openai-responses': 'response.completed',
      'anthropic-messages': 'message_stop',
      'google-gemini': '"STOP"',
    };
    if (one.stream) expect(text).toContain(END[one.client]);
  });
});
