/** Media and hosted results in answers reach clients of every protocol, or become a note. */

import { describe, expect, test } from 'bun:test';
import { eventsOf } from '../../src/codecs/openai-responses/reply/encode-reply.ts';
import { Notes } from '../../src/conversation/notes.ts';
import { NO_PROFILE } from '../../src/conversation/profile-facts.ts';
import { SseParser } from '../../src/lib/bytes/sse.ts';
import type { Json, JsonObject } from '../../src/lib/json/json.ts';
import { PROTOCOLS } from '../features/tool-pairing/support.ts';
import type { SuiteProtocol as ProtocolName } from '../support/suite-protocols.ts';

const BASE64 = 'iVBORw0KGgo=';
const DATA = `data:image/png;base64,${BASE64}`;
const LINK = 'https://example.com/cat.png';

const chatImage = (url: string, content: Json = ''): JsonObject => ({
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [
    {
      index: 0,
      message: {
        role: 'assistant',
        content,
        images: [{ type: 'image_url', image_url: { url } }],
      },
      finish_reason: 'stop',
    },
  ],
});

const response = (...output: JsonObject[]): JsonObject => ({
  id: 'resp_1',
  object: 'response',
  created_at: 1,
  status: 'completed',
  model: 'm',
  output: [
    ...output,
    {
      type: 'message',
      id: 'msg_1',
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text: 'Done.', annotations: [] }],
    },
  ],
});

const message = (...content: JsonObject[]): JsonObject => ({
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'm',
  content: [...content, { type: 'text', text: 'Done.' }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 1, output_tokens: 1 },
});

const ASKED: Readonly<Record<ProtocolName, JsonObject>> = {
  'anthropic-messages': { model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'a' }] },
  'openai-chat': { model: 'm', messages: [{ role: 'user', content: 'a' }] },
  'openai-responses': { model: 'm', input: 'a' },
};

interface ClientView {
  /** The whole reply, and its stream frames as text. */
  readonly whole: string;
  readonly streamed: string;
  readonly notes: readonly string[];
  readonly streamNotes: readonly string[];
}

/** The reply of a `from` upstream as a client of `to` gets it. */
function encodedFor(from: ProtocolName, to: ProtocolName, body: JsonObject): ClientView {
  const target = { provider: 'p', model: 'm', protocol: from, profile: NO_PROFILE };
  const sent = PROTOCOLS[from].decodeRequest(ASKED[from]);
  const request = PROTOCOLS[to].decodeRequest(ASKED[to]);
  const answers = [new Notes(), new Notes()];
  const [whole, streamed] = answers.map((notes, i) => {
    const reply = PROTOCOLS[from].decodeReply(body, { sent, target, notes });
    const context = { request: request, requestId: 'req_1', provider: 'p', notes };
    if (i === 0) return JSON.stringify(PROTOCOLS[to].encodeReply(reply, context));
    // The same answer as this protocol streams it, decoded and encoded for the client.
    const first = PROTOCOLS[from].encodeStream({ ...context, request: sent, notes: new Notes() });
    const decoder = PROTOCOLS[from].decodeStream({ sent, target, notes: new Notes() });
    const encoder = PROTOCOLS[to].encodeStream(context);
    let frames = '';
    for (const event of eventsOf(reply)) frames += first.event(event);
    const parser = new SseParser();
    const read = [...parser.push(new TextEncoder().encode(frames)), ...parser.end()];
    let out = '';
    for (const frame of read) for (const event of decoder.push(frame)) out += encoder.event(event);
    for (const event of decoder.end()) out += encoder.event(event);
    return out;
  });
  const [notes, streamNotes] = answers.map((one) => one.all.map(({ name }) => name));
  return { whole: whole!, streamed: streamed!, notes: notes!, streamNotes: streamNotes! };
}

describe('an answer that is only an image', () => {
  for (const content of ['', null]) {
    test(`is an answer: content ${JSON.stringify(content)}`, () => {
      const digest = PROTOCOLS['openai-chat'].digestReply(chatImage(DATA, content));
      expect(digest).toMatchObject({ complete: true, semantic: true, answered: true });
      expect(digest.texts).toBeUndefined();
    });
  }

  test('it reaches a Responses client as a generated image', () => {
    const { whole, streamed, notes } = encodedFor(
      'openai-chat',
      'openai-responses',
      chatImage(DATA),
    );
    for (const text of [whole, streamed]) {
      expect(text).toContain('"image_generation_call"');
      expect(text).toContain(BASE64);
    }
    expect(notes).toEqual([]);
  });

  test('it reaches a Messages client as text, with a note', () => {
    const link = encodedFor('openai-chat', 'anthropic-messages', chatImage(LINK));
    expect(link.whole).toContain(LINK);
    expect(link.streamed).toContain(LINK);
    const data = encodedFor('openai-chat', 'anthropic-messages', chatImage(DATA));
    for (const { notes, streamNotes } of [link, data]) {
      expect(notes).toEqual(['content_bridged']);
      expect(streamNotes).toEqual(['content_bridged']);
    }
  });

  test('it stays unchanged for a Chat client', () => {
    const { whole, streamed, notes } = encodedFor(
      'openai-chat',
      'openai-chat',
      chatImage(DATA, 'Here:'),
    );
    expect(whole).toContain(DATA);
    expect(streamed).toContain(DATA);
    expect(notes).toEqual([]);
  });
});

test("an image that Responses' own tool made reaches a Chat client", () => {
  const item = { type: 'image_generation_call', id: 'ig_1', status: 'completed', result: BASE64 };
  const { whole, streamed, notes } = encodedFor('openai-responses', 'openai-chat', response(item));
  expect(whole).toContain(DATA);
  expect(streamed).toContain(DATA);
  expect(notes).toEqual([]);
});

describe('hosted calls that a Chat client does not get have a note', () => {
  const items: readonly JsonObject[] = [
    {
      type: 'code_interpreter_call',
      id: 'ci_1',
      status: 'completed',
      code: '1',
      container_id: 'c',
      outputs: [],
    },
    {
      type: 'mcp_call',
      id: 'mcp_1',
      name: 'look',
      server_label: 's',
      arguments: '{}',
      output: 'x',
    },
    { type: 'file_search_call', id: 'fs_1', status: 'completed', queries: ['a'], results: null },
    { type: 'image_generation_call', id: 'ig_1', status: 'completed', result: null },
    {
      type: 'web_search_call',
      id: 'ws_1',
      status: 'completed',
      action: { type: 'search', query: 'a' },
    },
  ];
  for (const item of items) {
    test(String(item.type), () => {
      const { notes, streamNotes, whole, streamed } = encodedFor(
        'openai-responses',
        'openai-chat',
        response(item),
      );
      expect(notes).toEqual(['provider_call_dropped']);
      expect(streamNotes).toEqual(['provider_call_dropped']);
      expect(whole).toContain('Done.');
      expect(streamed).toContain('Done.');
    });
  }

  const use = (name: string): JsonObject => ({
    type: 'server_tool_use',
    id: 'srvtoolu_1',
    name,
    input: {},
  });
  const blocks: Readonly<Record<string, readonly JsonObject[]>> = {
    code_execution: [
      use('code_execution'),
      {
        type: 'code_execution_tool_result',
        tool_use_id: 'srvtoolu_1',
        content: {
          type: 'code_execution_result',
          stdout: '1',
          stderr: '',
          return_code: 0,
          content: [],
        },
      },
    ],
    web_search: [
      use('web_search'),
      { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [] },
    ],
    mcp: [
      { type: 'mcp_tool_use', id: 'mcptoolu_1', name: 'look', server_name: 's', input: {} },
      { type: 'mcp_tool_result', tool_use_id: 'mcptoolu_1', is_error: false, content: [] },
    ],
  };
  for (const [what, content] of Object.entries(blocks)) {
    test(`Messages: ${what}`, () => {
      const { notes, streamNotes } = encodedFor(
        'anthropic-messages',
        'openai-chat',
        message(...content),
      );
      expect(notes).toEqual(['provider_call_dropped']);
      expect(streamNotes).toEqual(['provider_call_dropped']);
    });
  }
});
