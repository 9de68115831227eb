/** A vendor's JSON (RFC 8259, 8.1) and its streams (HTML, 9.2.6) behind a UTF-8 byte order mark are read, whatever the client speaks. */

import { afterEach, describe, expect, test } from 'bun:test';
import type { SuiteProtocol as ProtocolName } from '../support/suite-protocols.ts';
import { type RawUpstream, rawUpstream, rawWorld } from './raw-upstream.ts';

const PROTOCOLS: readonly ProtocolName[] = [
  'openai-chat',
  'openai-responses',
  'anthropic-messages',
];
const MARK = '\ufeff';

let upstream: RawUpstream | undefined;
afterEach(() => upstream?.stop());

const http = (status: string, type: string, body: string) =>
  `HTTP/1.1 ${status}\r\ncontent-type: ${type}\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`;

function before(protocol: ProtocolName, bytes: string) {
  const started = rawUpstream(async (wire) => {
    await wire.write(bytes);
    wire.end();
  });
  upstream = started;
  return rawWorld(`
providers:
  p: { protocol: ${protocol}, base_url: "${started.url}", models: ["*"] }
retry: { attempts: 1 }
`);
}

const chat = {
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
};
const message = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'm',
  content: [{ type: 'text', text: 'Hello' }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 3, output_tokens: 2 },
};
const response = {
  id: 'resp_1',
  object: 'response',
  created_at: 1,
  status: 'completed',
  model: 'm',
  output: [
    {
      type: 'message',
      id: 'msg_1',
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text: 'Hello', annotations: [] }],
    },
  ],
  usage: { input_tokens: 3, output_tokens: 2, total_tokens: 5 },
};
const ANSWERS = {
  'openai-chat': chat,
  'openai-responses': response,
  'anthropic-messages': message,
} as const;

const frame = (event: string | undefined, data: unknown) =>
  `${event === undefined ? '' : `event: ${event}\n`}data: ${JSON.stringify(data)}\n\n`;
const { choices, ...head } = chat;
const delta = (one: object, finish: string | null, more: object = {}) =>
  frame(undefined, {
    ...head,
    usage: undefined,
    object: 'chat.completion.chunk',
    choices: [{ index: 0, delta: one, finish_reason: finish }],
    ...more,
  });
const typed = (data: { type: string; [key: string]: unknown }) => frame(data.type, data);
const STREAMS: Readonly<Record<ProtocolName, string>> = {
  'openai-chat': `${delta({ role: 'assistant', content: 'Hello' }, null)}${delta({}, 'stop', { usage: chat.usage })}data: [DONE]\n\n`,
  'openai-responses': [
    { type: 'response.created', response: { ...response, status: 'in_progress', output: [] } },
    {
      type: 'response.output_item.added',
      output_index: 0,
      item: { ...response.output[0], content: [], status: 'in_progress' },
    },
    {
      type: 'response.content_part.added',
      item_id: 'msg_1',
      output_index: 0,
      content_index: 0,
      part: { type: 'output_text', text: '', annotations: [] },
    },
    {
      type: 'response.output_text.delta',
      item_id: 'msg_1',
      output_index: 0,
      content_index: 0,
      delta: 'Hello',
    },
    {
      type: 'response.output_text.done',
      item_id: 'msg_1',
      output_index: 0,
      content_index: 0,
      text: 'Hello',
    },
    {
      type: 'response.content_part.done',
      item_id: 'msg_1',
      output_index: 0,
      content_index: 0,
      part: response.output[0]!.content[0],
    },
    { type: 'response.output_item.done', output_index: 0, item: response.output[0] },
    { type: 'response.completed', response },
  ]
    .map((one, i) => typed({ ...one, sequence_number: i }))
    .join(''),
  'anthropic-messages': [
    {
      type: 'message_start',
      message: {
        ...message,
        content: [],
        stop_reason: null,
        usage: { input_tokens: 3, output_tokens: 0 },
      },
    },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hello' } },
    { type: 'content_block_stop', index: 0 },
    {
      type: 'message_delta',
      delta: { stop_reason: 'end_turn', stop_sequence: null },
      usage: { output_tokens: 2 },
    },
    { type: 'message_stop' },
  ]
    .map(typed)
    .join(''),
};
const refusal = { error: { message: 'Unknown tool frob', type: 'invalid_request_error' } };

describe.each(PROTOCOLS)('%s', (protocol) => {
  describe.each(PROTOCOLS)('for a client of %s', (client) => {
    test('whole', async () => {
      const body = MARK + JSON.stringify(ANSWERS[protocol]);
      const { ask, summaries } = before(protocol, http('200 OK', 'application/json', body));
      const { status, text } = await ask(client, false);
      expect([status, text.startsWith('{'), text.includes('Hello')]).toEqual([200, true, true]);
      expect(summaries[0]).toMatchObject({ usage: { input: 3, output: 2 }, error: undefined });
    });

    test('an error', async () => {
      const body =
        MARK +
        JSON.stringify(protocol === 'anthropic-messages' ? { type: 'error', ...refusal } : refusal);
      const { ask, summaries } = before(
        protocol,
        http('400 Bad Request', 'application/json', body),
      );
      const { status, text } = await ask(client, false);
      expect([status, JSON.parse(text).error?.message]).toEqual([400, refusal.error.message]);
      expect(summaries[0]!.error?.kind).toBe('invalid_request');
    });

    test.each(['a stream', 'a stream for tools'])('%s', async (what) => {
      const body = MARK + STREAMS[protocol];
      const { ask, summaries } = before(protocol, http('200 OK', 'text/event-stream', body));
      const { status, text } = await ask(client, true, what.includes('tools') ? { tools: [] } : {});
      // Within a protocol the bytes are the vendor's (test/gateway/stream): clients ignore a mark before events.
      const marked = client === protocol;
      expect([status, text.startsWith(MARK), text.includes('Hello')]).toEqual([200, marked, true]);
      expect(summaries[0]).toMatchObject({ usage: { input: 3, output: 2 }, error: undefined });
    });

    test('whole, where a stream was asked for', async () => {
      const body = MARK + JSON.stringify(ANSWERS[protocol]);
      const { ask } = before(protocol, http('200 OK', 'application/json', body));
      const { status, text } = await ask(client, true);
      expect([status, text.includes('Hello'), text.includes(MARK)]).toEqual([200, true, false]);
    });
  });
});
