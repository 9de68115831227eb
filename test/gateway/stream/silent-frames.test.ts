/** Frames without anything to read, at which clients throw: left out within one protocol, too, with tools and without. */

import { describe, expect, test } from 'bun:test';
import OpenAI from 'openai';
import type { ProtocolName } from '../../../src/conversation/protocol-names.ts';
import { scriptedGateway } from '../scripted.ts';
import { WAYS } from '../sound-answer/ways.ts';

const SILENT = [
  // Python's client parses what has no data (openai/openai-python#2722, #3833); gateways say how long to wait.
  'retry: 3000\n\n',
  'id: 5\n\n',
  // JavaScript's clients parse what has a name alone (earendil-works/pi#8430).
  'event: ping\n\n',
  'event: message\n\n',
  'event:keepalive\nid: 7\n\n',
  // Empty data stays an event (openai/openai-go#621).
  'data:\n\n',
  'data: \n\n',
  'data: \r\n\r\n',
  'event: keepalive\ndata:\n\n',
  // Vertex AI's partner models (anomalyco/opencode#50871); DeepInfra's, behind a gateway (Portkey-AI/gateway#1035).
  'data: : keepalive\n\n',
  'data: : ping - 2\n\n',
  'data: ping\n\n',
  'data: [PING]\n\n',
  'data: ""\n\n',
  'data: null\n\n',
];
/** Clients skip comments, Messages has a ping of its own, and a piece of an answer may be as short. */
const SAID: Readonly<Record<string, readonly string[]>> = {
  'openai-chat': [': OPENROUTER PROCESSING\n\n', 'data: {"choices":[]}\n\n'],
  'anthropic-messages': [': ping\n\n', 'event: ping\ndata: {"type": "ping"}\n\n'],
};

const HI = [{ role: 'user', content: 'hi' }];
const chunk = (delta: object, finish_reason: string | null = null) =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
const event = (type: string, more: object) =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`;
const message = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'm',
  content: [],
  stop_reason: null,
  stop_sequence: null,
  usage: { input_tokens: 1, output_tokens: 1 },
};
const said = (text: string, more: object = {}) =>
  `data: ${JSON.stringify({ candidates: [{ content: { role: 'model', parts: [{ text }] }, index: 0, ...more }] })}\n\n`;

interface Side {
  readonly asked: object;
  readonly tools: object;
  readonly frames: readonly string[];
}
const SIDES: Readonly<Partial<Record<ProtocolName, Side>>> = {
  'openai-chat': {
    asked: { messages: HI },
    tools: { tools: [{ type: 'function', function: { name: 'f' } }] },
    frames: [
      chunk({ role: 'assistant', content: 'Hel' }),
      chunk({ content: 'lo' }),
      chunk({}, 'stop'),
      'data: [DONE]\n\n',
    ],
  },
  'anthropic-messages': {
    asked: { max_tokens: 9, messages: HI },
    tools: { tools: [{ name: 'f', input_schema: { type: 'object' } }] },
    frames: [
      event('message_start', { message }),
      event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
      event('content_block_delta', { index: 0, delta: { type: 'text_delta', text: 'Hello' } }),
      event('content_block_stop', { index: 0 }),
      event('message_delta', { delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 3 } }),
      event('message_stop', {}),
    ],
  },
  'google-gemini': {
    asked: { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] },
    tools: { tools: [{ functionDeclarations: [{ name: 'f' }] }] },
    frames: [said('Hel'), said('lo', { finishReason: 'STOP' })],
  },
};

describe.each(WAYS)('%s', (_, features) => {
  describe.each(Object.entries(SIDES) as [ProtocolName, Side][])('%s', (protocol, side) => {
    const shown = async (sse: readonly string[], tools: boolean, profile = 'none') => {
      const gateway = scriptedGateway(protocol, [{ sse }], features, '', { profile });
      const asked = { model: 'm', stream: true, ...side.asked, ...(tools && side.tools) };
      const { text, reset } = await gateway.ask(protocol, asked);
      expect(reset).toBe(false);
      return { text, notes: gateway.summaries[0]!.notes.map(({ name }) => name) };
    };

    test.each(SILENT)('%j does not reach the client, wherever it comes alone', async (silent) => {
      for (const profile of ['none', 'openai', 'anthropic', 'gemini']) {
        for (const tools of [false, true]) {
          // Behind the end nobody reads.
          for (let at = 0; at < side.frames.length; at++) {
            const sse = side.frames.toSpliced(at, 0, silent);
            const { text, notes } = await shown(sse, tools, profile);
            expect(text).toBe(side.frames.join(''));
            expect(notes).toEqual(['stream_mended']);
          }
        }
      }
    });

    test.each(SILENT)('nor %j in one piece with the first words', async (silent) => {
      for (const tools of [false, true]) {
        const sse = [silent + side.frames[0], ...side.frames.slice(1)];
        expect((await shown(sse, tools)).text).toBe(side.frames.join(''));
        const behind = [side.frames[0] + silent + side.frames[1], ...side.frames.slice(2)];
        if (tools) expect((await shown(behind, tools)).text).toBe(side.frames.join(''));
      }
    });

    test.each(SAID[protocol] ?? [])('%j stays', async (frame) => {
      for (const tools of [false, true]) {
        const sse = side.frames.toSpliced(1, 0, frame);
        expect(await shown(sse, tools)).toEqual({ text: sse.join(''), notes: [] });
      }
    });

    test('a frame whose pieces look silent stays', async () => {
      const sse = side.frames.flatMap((frame) => [
        frame.slice(0, 6),
        frame.slice(6, 8),
        frame.slice(8),
      ]);
      expect(await shown(sse, false)).toEqual({ text: sse.join(''), notes: [] });
    });
  });
});

test.each(SILENT)('OpenAI’s client reads the answer around %j', async (silent) => {
  const { frames, asked } = SIDES['openai-chat']!;
  const sse = frames.flatMap((frame) => [silent, frame]);
  const gateway = scriptedGateway('openai-chat', [{ sse }]);
  const { text } = await gateway.ask('openai-chat', { model: 'm', stream: true, ...asked });
  const headers = { 'content-type': 'text/event-stream' };
  const client = new OpenAI({ apiKey: 'x', fetch: async () => new Response(text, { headers }) });
  const stream = client.chat.completions.stream({
    model: 'm',
    messages: [{ role: 'user', content: 'hi' }],
  });
  const { choices } = await stream.finalChatCompletion();
  expect(choices[0]!.message.content).toBe('Hello');
});
