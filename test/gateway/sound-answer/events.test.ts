/** Streams of Messages in forms that Anthropic's SDK throws at, or loses text of: its clients get the whole answer. */

import { describe, expect, test } from 'bun:test';
import Anthropic from '@anthropic-ai/sdk';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { scriptedGateway } from '../scripted.ts';
import { WAYS } from './ways.ts';

type Event = JsonObject & { readonly type: string };
const TOOLS = [{ name: 'run', input_schema: { type: 'object' as const } }];
const ASKED = { model: 'm', max_tokens: 9, messages: [{ role: 'user' as const, content: 'hi' }] };
const start = (more: JsonObject = {}): Event => ({
  type: 'message_start',
  message: {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { input_tokens: 7, output_tokens: 1 },
    ...more,
  },
});
const blockOf = (content_block: JsonObject, delta: JsonObject, index: number): readonly Event[] => [
  { type: 'content_block_start', index, content_block },
  { type: 'content_block_delta', index, delta },
  { type: 'content_block_stop', index },
];
const says = (text: string, index = 0) =>
  blockOf({ type: 'text', text: '' }, { type: 'text_delta', text }, index);
const runs = (index: number, id?: string) =>
  blockOf(
    { type: 'tool_use', ...(id !== undefined && { id }), name: 'run', input: {} },
    { type: 'input_json_delta', partial_json: '{"cmd":"ls"}' },
    index,
  );
const end = (stop_reason: string, usage: JsonObject = { output_tokens: 3 }): readonly Event[] => [
  { type: 'message_delta', delta: { stop_reason, stop_sequence: null }, usage },
  { type: 'message_stop' },
];
const without = (event: Event, key: string) =>
  Object.fromEntries(Object.entries(event).filter(([name]) => name !== key)) as Event;

const HELLO = [start(), ...says('Hello'), ...end('end_turn')];
const BOTH = [start(), ...says('Hello'), ...runs(1, 'toolu_1'), ...end('tool_use')];
const ODD: Readonly<Record<string, readonly Event[]>> = {
  'no message_start': HELLO.slice(1),
  'a start without usage': [start({ usage: undefined }), ...HELLO.slice(1)],
  'a start with usage of null': [start({ usage: null }), ...HELLO.slice(1)],
  'a start without content': [start({ content: undefined }), ...HELLO.slice(1)],
  'a start with content of null': [start({ content: null }), ...HELLO.slice(1)],
  'no start of its block': HELLO.toSpliced(1, 1),
  'blocks that are counted from 1': [start(), ...says('Hello', 1), ...end('end_turn')],
  'a gap in the indexes': [start(), ...says('Hel'), ...says('lo', 2), ...end('end_turn')],
  'no indexes': HELLO.map((event) => without(event, 'index')),
  'an end without usage': HELLO.map((event) =>
    event.type === 'message_delta' ? without(event, 'usage') : event,
  ),
  'a start twice': [start(), ...HELLO],
  'a delta of null': HELLO.toSpliced(2, 0, { type: 'content_block_delta', index: 0, delta: null }),
  'an end without a delta': HELLO.map((event) =>
    event.type === 'message_delta' ? without(event, 'delta') : event,
  ),
  'no message_delta': HELLO.toSpliced(-2, 1),
  'no message_stop': HELLO.slice(0, -1),
};
const ODD_CALLS: Readonly<Record<string, readonly Event[]>> = {
  'the index of the text before it': [
    start(),
    ...says('Hello'),
    ...runs(0, 'toolu_1'),
    ...end('tool_use'),
  ],
  'no id': [start(), ...says('Hello'), ...runs(1), ...end('tool_use')],
};

const [FIRST, SECOND] = [runs(1, 'toolu_1'), runs(2, 'toolu_2')] as const;
const THIRD = says('Bye', 3);
/** SDKs put blocks together by their index. */
const INTERLEAVED: Readonly<Record<string, readonly Event[]>> = {
  'calls, event by event': FIRST.flatMap((event, i) => [event, SECOND[i]!]),
  'calls that end in the order in which they began': [
    ...FIRST.slice(0, 2),
    ...SECOND.slice(0, 2),
    FIRST[2]!,
    SECOND[2]!,
  ],
  'a call within a call': [...FIRST.slice(0, 2), ...SECOND, FIRST[2]!],
};

const sse = (events: readonly Event[], named = true) =>
  events
    .map((event) => `${named ? `event: ${event.type}\n` : ''}data: ${JSON.stringify(event)}\n\n`)
    .join('');
const pieces = (text: string, size: number) =>
  Array.from({ length: Math.ceil(text.length / size) }, (_, i) =>
    text.slice(i * size, (i + 1) * size),
  );

describe.each(WAYS)('%s', (_, FEATURES) => {
  async function through(text: string, size: number) {
    const script = [{ sse: pieces(text, size) }];
    const gateway = scriptedGateway('anthropic-messages', script, FEATURES);
    const answer = await gateway.ask('anthropic-messages', {
      ...ASKED,
      tools: TOOLS,
      stream: true,
    });
    return { text: answer.text, notes: gateway.summaries[0]?.notes.map(({ name }) => name) };
  }

  function read(text: string) {
    const answer = new Response(text, { headers: { 'content-type': 'text/event-stream' } });
    const client = new Anthropic({ apiKey: 'x', fetch: () => Promise.resolve(answer) });
    return client.messages.stream(ASKED).finalMessage();
  }

  describe.each([1, 50, 10_000])('in pieces of %i', (size) => {
    test.each(Object.entries(ODD))('text with %s', async (_, events) => {
      const { text, notes } = await through(sse(events), size);
      const { content, stop_reason, usage } = await read(text);
      expect(content.map((block) => (block.type === 'text' ? block.text : '')).join('')).toBe(
        'Hello',
      );
      expect(stop_reason).toBe('end_turn');
      expect(usage.output_tokens).toBeGreaterThan(0);
      expect(notes?.some((name) => /^(stream_mended|tool_call_rewritten)$/.test(name))).toBe(true);
    });

    test.each(Object.entries(ODD_CALLS))('a call with %s', async (_, events) => {
      const { text, notes } = await through(sse(events), size);
      const { content, stop_reason } = await read(text);
      expect(content).toMatchObject([
        { type: 'text', text: 'Hello' },
        { type: 'tool_use', id: expect.stringMatching(/^toolu_/), input: { cmd: 'ls' } },
      ]);
      expect(stop_reason).toBe('tool_use');
      expect(notes).toContain('stream_mended');
    });

    test.each([
      ['text', HELLO],
      ['a call', BOTH],
    ])('%s whose events have no names', async (_, events) => {
      const { text } = await through(sse(events, false), size);
      expect((await read(text)).content).toEqual((await read(sse(events))).content);
    });

    test.each(Object.entries(INTERLEAVED))('%s: the bytes are the vendor’s', async (_, calls) => {
      const given = sse([start(), ...says('Hello'), ...calls, ...THIRD, ...end('tool_use')]);
      const { text, notes } = await through(given, size);
      expect(text).toBe(given);
      expect(notes).toEqual([]);
    });

    test.each(Object.entries(INTERLEAVED))('%s, for a client of Chat', async (_, calls) => {
      const given = sse([start(), ...says('Hello'), ...calls, ...THIRD, ...end('tool_use')]);
      const gateway = scriptedGateway(
        'anthropic-messages',
        [{ sse: pieces(given, size) }],
        FEATURES,
      );
      const tools = [{ type: 'function', function: { name: 'run', parameters: {} } }];
      const asked = { model: 'm', messages: ASKED.messages, tools, stream: true };
      const { text } = await gateway.ask('openai-chat', asked);
      const chunks = text.split('\n').filter((line) => line.startsWith('data: {'));
      const deltas = chunks.flatMap((line) => JSON.parse(line.slice(6)).choices[0]?.delta ?? []);
      const made = ['', ''];
      for (const { index, function: fn } of deltas.flatMap(({ tool_calls }) => tool_calls ?? [])) {
        made[index] += fn?.arguments ?? '';
      }
      expect(made).toEqual(['{"cmd":"ls"}', '{"cmd":"ls"}']);
      expect(deltas.map(({ content }) => content ?? '').join('')).toBe('HelloBye');
    });

    test.each([
      ['text', HELLO],
      ['a call', BOTH],
      [
        'pings and events that are new',
        [start(), { type: 'ping' }, { type: 'news' }, ...HELLO.slice(1)],
      ],
    ])('%s that is right: the bytes are the vendor’s', async (_, events) => {
      const { text, notes } = await through(sse(events), size);
      expect(text).toBe(sse(events));
      expect(notes).toEqual([]);
    });
  });
});
