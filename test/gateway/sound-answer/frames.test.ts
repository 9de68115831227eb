/** Frames in which official SDKs lose an answer, or throw: each SDK still reads it. What they take stays as it came. */

import { describe, expect, test } from 'bun:test';
import Anthropic from '@anthropic-ai/sdk';
import { GoogleGenAI } from '@google/genai';
import OpenAI from 'openai';
import type { ProtocolName } from '../../../src/conversation/protocol-names.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { scriptedGateway } from '../scripted.ts';
import { WAYS } from './ways.ts';

const HI = [{ role: 'user' as const, content: 'hi' }];
const chunk = (delta: JsonObject, finish_reason: string | null) => ({
  id: 'c',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices: [{ index: 0, delta, finish_reason }],
});
const message = (content: readonly JsonObject[]) => ({
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  content,
});
const HELLO = message([{ type: 'output_text', text: 'Hello', annotations: [] }]);
const response = (status: string, output: readonly JsonObject[]) => ({
  id: 'resp_1',
  object: 'response',
  created_at: 1,
  status,
  model: 'm',
  output,
});
const said = (text: string, more: JsonObject = {}) => ({
  candidates: [{ content: { role: 'model', parts: [{ text }] }, index: 0, ...more }],
  modelVersion: 'm',
  responseId: 'r',
});
const AT = { output_index: 0, item_id: 'msg_1', content_index: 0 };
const USAGE = { input_tokens: 7, output_tokens: 1 };

interface Side {
  readonly asked: JsonObject;
  readonly events: readonly JsonObject[];
  readonly done?: true;
  /** The text as the official SDK puts it together. */
  read(answer: () => Promise<Response>): Promise<string>;
}

const SIDES: Readonly<Record<ProtocolName, Side>> = {
  'openai-chat': {
    // Without tools, streams of Chat and Messages are not read for faults.
    asked: { messages: HI, tools: [{ type: 'function', function: { name: 'run' } }] },
    events: [chunk({ role: 'assistant', content: 'Hello' }, null), chunk({}, 'stop')],
    done: true,
    async read(fetch) {
      const client = new OpenAI({ apiKey: 'x', fetch });
      const asked = { model: 'm', messages: HI };
      const { choices } = await client.chat.completions.stream(asked).finalChatCompletion();
      return choices[0]!.message.content!;
    },
  },
  'openai-responses': {
    asked: { input: 'hi' },
    events: [
      { type: 'response.created', response: response('in_progress', []) },
      { type: 'response.output_item.added', output_index: 0, item: message([]) },
      {
        type: 'response.content_part.added',
        ...AT,
        part: { type: 'output_text', text: '', annotations: [] },
      },
      { type: 'response.output_text.delta', ...AT, delta: 'Hello' },
      { type: 'response.output_item.done', output_index: 0, item: HELLO },
      { type: 'response.completed', response: response('completed', [HELLO]) },
    ],
    async read(fetch) {
      const client = new OpenAI({ apiKey: 'x', fetch });
      const stream = client.responses.stream({ model: 'm', input: 'hi' });
      return (await stream.finalResponse()).output_text;
    },
  },
  'anthropic-messages': {
    asked: { max_tokens: 9, messages: HI },
    events: [
      {
        type: 'message_start',
        message: {
          ...message([]),
          model: 'm',
          stop_reason: null,
          stop_sequence: null,
          usage: USAGE,
        },
      },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hello' } },
      { type: 'content_block_stop', index: 0 },
      {
        type: 'message_delta',
        delta: { stop_reason: 'end_turn', stop_sequence: null },
        usage: { output_tokens: 3 },
      },
      { type: 'message_stop' },
    ],
    async read(fetch) {
      const client = new Anthropic({ apiKey: 'x', fetch });
      const asked = { model: 'm', max_tokens: 9, messages: HI };
      const { content } = await client.messages.stream(asked).finalMessage();
      return content.map((block) => (block.type === 'text' ? block.text : '')).join('');
    },
  },
  'google-gemini': {
    asked: { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] },
    events: [said('Hel'), said('lo', { finishReason: 'STOP' })],
    async read(answer) {
      const real = globalThis.fetch;
      globalThis.fetch = Object.assign(answer, { preconnect: real.preconnect });
      try {
        const client = new GoogleGenAI({ apiKey: 'x' });
        let text = '';
        const asked = { model: 'm', contents: 'hi' };
        for await (const one of await client.models.generateContentStream(asked)) {
          text += one.text ?? '';
        }
        return text;
      } finally {
        globalThis.fetch = real;
      }
    },
  },
};
const NAMES = Object.keys(SIDES) as readonly ProtocolName[];

interface Frame {
  readonly name?: string | undefined;
  readonly data: string;
}
const framesOf = ({ events, done }: Side): readonly Frame[] => [
  ...events.map((event) => ({
    name: typeof event.type === 'string' ? event.type : undefined,
    data: JSON.stringify(event),
  })),
  ...(done ? [{ data: '[DONE]' }] : []),
];
const written = ({ name, data }: Frame, space = ' ') =>
  `${name === undefined ? '' : `event:${space}${name}\n`}data:${space}${data}\n\n`;
const all = (frames: readonly Frame[], space?: string) =>
  frames.map((frame) => written(frame, space)).join('');

type Make = (frames: readonly Frame[]) => string;
const RIGHT: Readonly<Record<string, Make>> = {
  'as they should be': (frames) => all(frames),
  'behind a byte order mark': (frames) => `\ufeff${all(frames)}`,
  'without spaces': (frames) => all(frames, ''),
  'with CR': (frames) => all(frames).replaceAll('\n', '\r'),
  'with CRLF': (frames) => all(frames).replaceAll('\n', '\r\n'),
  'behind comments': (frames) => `: hi\n\n: there\n\n${all(frames)}`,
  'without [DONE]': (frames) => all(frames.filter(({ data }) => data !== '[DONE]')),
};
const DONE = 'data: [DONE]\n\n';
const TWICE: Make = (frames) => all(frames) + DONE + DONE;
const SILENT: Readonly<Record<string, Make>> = {
  'with empty ones': (frames) =>
    `data:\n\n${frames.map((frame) => written(frame)).join('data: \n\n')}`,
  'behind an empty object': (frames) => `data: {}\n\n${all(frames)}`,
  'behind a ping': (frames) => `event: ping\ndata: {"type":"ping"}\n\n${all(frames)}`,
  'with [DONE] twice': TWICE,
  'with ids': (frames) =>
    `retry: 100\n\n${frames.map((frame, i) => `id: ${i}\n${written(frame)}`).join('')}`,
  'all named message': (frames) =>
    all(frames.map(({ data }) => ({ data, ...(data === '[DONE]' ? {} : { name: 'message' }) }))),
};
const UNENDED: Readonly<Record<string, Make>> = {
  'without the last blank line': (frames) => all(frames).trimEnd(),
  'without the last line feed': (frames) => `${all(frames).trimEnd()}\n`,
  'with CRLF and without the last blank line': (frames) =>
    all(frames).trimEnd().replaceAll('\n', '\r\n'),
};

const pieces = (text: string, size: number) =>
  Array.from({ length: Math.ceil(text.length / size) }, (_, i) =>
    text.slice(i * size, (i + 1) * size),
  );

describe.each(WAYS)('%s', (_, FEATURES) => {
  describe.each(NAMES)('%s', (protocol) => {
    const side = SIDES[protocol];
    const through = async (sse: string, size: number, profile = 'none') => {
      const script = [{ sse: pieces(sse, size) }];
      const gateway = scriptedGateway(protocol, script, FEATURES, '', { profile });
      const answer = await gateway.ask(protocol, { model: 'm', stream: true, ...side.asked });
      expect([answer.status, answer.reset]).toEqual([200, false]);
      const type = { 'content-type': 'text/event-stream' };
      const body = () => Promise.resolve(new Response(answer.text, { headers: type }));
      expect(await side.read(body)).toBe('Hello');
      return { ...answer, notes: gateway.summaries[0]?.notes.map(({ name }) => name) };
    };

    test.each(Object.entries(RIGHT))('frames %s: the bytes are the vendor’s', async (_, make) => {
      const sse = make(framesOf(side));
      for (const profile of ['none', 'openai']) {
        for (const size of [1, 50, 10_000]) {
          const { text, notes } = await through(sse, size, profile);
          expect(text).toBe(sse);
          expect(notes).toEqual([]);
        }
      }
    });

    test.each(Object.entries(SILENT))('frames %s', async (_, make) => {
      for (const size of [1, 50, 10_000]) await through(make(framesOf(side)), size);
    });

    test.each(Object.entries(UNENDED))('frames %s', async (_, make) => {
      const sse = make(framesOf(side));
      for (const profile of ['none', 'openai']) {
        for (const size of [1, 50, 10_000]) {
          const { text } = await through(sse, size, profile);
          expect(text.trimEnd()).toBe(sse.trimEnd());
          expect(text).toEndWith('\n\n');
        }
      }
    });
  });
});
