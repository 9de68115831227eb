/** Keep-alives that vendors and relays write as data: no stream ends at one. */

import { describe, expect, test } from 'bun:test';
import { anthropicMessages } from '../../src/codecs/anthropic-messages/index.ts';
import { googleGemini } from '../../src/codecs/google-gemini/index.ts';
import { openaiChat } from '../../src/codecs/openai-chat/index.ts';
import { openaiResponses } from '../../src/codecs/openai-responses/index.ts';
import { Notes } from '../../src/conversation/notes.ts';

// Vertex AI's partner models (anomalyco/opencode#50871), OpenRouter's comments through a relay (mnfst/llm-gateway#2053).
const KEEP_ALIVES = [
  ': keepalive',
  ': OPENROUTER PROCESSING',
  'ping',
  '[PING]',
  'keep-alive',
  'KEEPALIVE',
  'HEARTBEAT',
  'null',
  '""',
];
const BROKEN = ['upstream timed out', '{"choices":', '<html>', 'Internal Server Error'];

const MESSAGE = {
  id: 'm',
  type: 'message',
  role: 'assistant',
  model: 'm',
  content: [],
  usage: { input_tokens: 1, output_tokens: 1 },
};
const STREAMS = {
  Chat: [
    openaiChat,
    [
      { id: 'c', model: 'm', choices: [{ index: 0, delta: { content: 'Hel' } }] },
      { id: 'c', model: 'm', choices: [{ index: 0, delta: { content: 'lo' } }] },
      { id: 'c', model: 'm', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
    ],
  ],
  Responses: [
    openaiResponses,
    [
      { type: 'response.created', response: { id: 'resp_1', model: 'm', output: [] } },
      {
        type: 'response.output_item.added',
        output_index: 0,
        item: { type: 'message', id: 'msg_1', role: 'assistant', content: [] },
      },
      { type: 'response.output_text.delta', output_index: 0, content_index: 0, delta: 'Hel' },
      { type: 'response.output_text.delta', output_index: 0, content_index: 0, delta: 'lo' },
      { type: 'response.completed', response: { id: 'resp_1', status: 'completed', output: [] } },
    ],
  ],
  Messages: [
    anthropicMessages,
    [
      { type: 'message_start', message: MESSAGE },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hel' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'lo' } },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 2 } },
      { type: 'message_stop' },
    ],
  ],
  Gemini: [
    googleGemini,
    [
      { candidates: [{ content: { role: 'model', parts: [{ text: 'Hel' }] } }] },
      {
        candidates: [{ content: { role: 'model', parts: [{ text: 'lo' }] }, finishReason: 'STOP' }],
      },
    ],
  ],
} as const;

describe.each(Object.entries(STREAMS))('a stream of %s', (_, [codec, events]) => {
  const decoder = () =>
    codec.decodeStream({
      sent: openaiResponses.decodeRequest({ model: 'm', input: 'a', stream: true }),
      target: { provider: 'p', model: 'm', protocol: codec.name, profile: { name: 'none' } },
      notes: new Notes(),
    });
  const frame = (data: string) => ({ event: '', data }) as never;
  const frames = events.map((event) => JSON.stringify(event));

  test.each(KEEP_ALIVES)('goes on behind %s, wherever it stands', (data) => {
    const own = decoder();
    const all = frames.flatMap((one) => [data, one]);
    const said = [...all.flatMap((one) => own.push(frame(one))), ...own.end()];
    const text = said.map((event) => (event.type === 'delta' ? event.text : '')).join('');
    expect(text).toBe('Hello');
    expect(said.at(-1)?.type).toBe('end');
  });

  test.each(BROKEN)('is broken at %s', (data) => {
    const own = decoder();
    own.push(frame(frames[0]!));
    expect(() => own.push(frame(data))).toThrow();
  });
});

// The last two: OpenRouterTeam/python-sdk#266, and relays that turn Messages into Responses.
test.each([...KEEP_ALIVES, '{}', '{"type":"response.keep_alive"}', '{"type":"ping"}'])(
  'clients of Responses never see %s',
  (data) => {
    const sound = openaiResponses.soundFrames!(new Notes());
    if (!data.includes('keep_alive')) expect(sound(data)).toEqual([]);
    const [created] = STREAMS.Responses[1].map((event) => JSON.stringify(event));
    expect(sound(created!)).toHaveLength(1);
    expect(sound(data)).toEqual([]);
  },
);
