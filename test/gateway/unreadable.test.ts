/** A frame that cannot be read: what stood before it reaches the client, wherever the chunks are cut. */

import { describe, expect, test } from 'bun:test';
import { anthropicMessages } from '../../src/codecs/anthropic-messages/index.ts';
import type { Codec } from '../../src/codecs/codec.ts';
import { openaiChat } from '../../src/codecs/openai-chat/index.ts';
import { Notes } from '../../src/conversation/notes.ts';
import { Passthrough } from '../../src/gateway/stream/passthrough.ts';
import type { StreamPipeline } from '../../src/gateway/stream/pipeline.ts';
import { Translator } from '../../src/gateway/stream/translator.ts';
import { SseParser } from '../../src/lib/bytes/sse.ts';
import { STREAMED, targetWith } from '../features/leaked-calls/transcript.ts';
import { bytewise, everySplit, whole } from '../support/chunkings.ts';
import { scriptedGateway } from './scripted.ts';

const CLIENT = {
  request: STREAMED,
  requestId: 'req_1_aaaaaa',
  provider: 'vendor',
  notes: new Notes(),
};
const UPSTREAM = {
  sent: STREAMED,
  target: { ...targetWith(), protocol: openaiChat.name },
  notes: new Notes(),
};

const translating = (to: Codec, preserveBytes: boolean) =>
  new Translator({
    decoder: openaiChat.decodeStream(UPSTREAM),
    interceptors: [],
    client: { encoder: to.encodeStream(CLIENT), context: CLIENT, fold: undefined },
    preserveBytes,
    continues: false,
  });

const PIPELINES: readonly (readonly [string, () => StreamPipeline])[] = [
  ['forwarded', () => new Passthrough(openaiChat, UPSTREAM, CLIENT)],
  ['watched', () => translating(openaiChat, true)],
  ['converted', () => translating(anthropicMessages, false)],
];

const frame = (delta: object) =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: null }] })}\n\n`;
// Reasoning only: until an answer has begun, every pipeline reads what it forwards.
const BEFORE =
  frame({ role: 'assistant', reasoning_content: 'First' }) + frame({ reasoning_content: 'second' });
const BEHIND = frame({ content: 'Never said.' });
const BYTES = Buffer.from(`${BEFORE}data: <html>oops</html>\n\n${BEHIND}data: [DONE]\n\n`);

/** The whole frames that came out, as text. */
const framesOf = (out: readonly (Uint8Array | string)[]) =>
  new SseParser()
    .push(Buffer.concat(out.map((part) => Buffer.from(part as string))))
    .map(({ event, data }) => `${event}|${data}`);

describe.each(PIPELINES)('a stream that is %s', (_, open) => {
  const through = (chunks: readonly Uint8Array[]) => {
    const pipeline = open();
    const out = chunks.map((chunk) => pipeline.push(chunk));
    out.push(pipeline.end());
    return { pipeline, frames: framesOf(out) };
  };
  const expected = framesOf([open().push(Buffer.from(BEFORE))]);

  test('says what stood before the frame and nothing behind it, wherever the chunks are cut', () => {
    for (const { name, cut } of [whole, bytewise, ...everySplit(BYTES)]) {
      const { pipeline, frames } = through(cut(BYTES));
      expect([name, frames]).toEqual([name, expected]);
      expect(pipeline.failure?.message).toBe('The upstream sent a stream chunk that is not JSON.');
      expect(pipeline.digest.complete).toBe(false);
    }
  });
});

const ASKED = {
  model: 'm',
  stream: true,
  max_tokens: 9,
  messages: [{ role: 'user', content: 'hi' }],
};

test('the client gets what was said before, then an error, and the connection is reset', async () => {
  // In the chunk that opens the stream, and in one of those behind it.
  for (const sse of [[BYTES.toString()], [BEFORE, BYTES.subarray(BEFORE.length).toString()]]) {
    const { ask, summaries } = scriptedGateway('openai-chat', [{ sse }]);
    const { status, text, reset } = await ask('anthropic-messages', ASKED);
    expect([status, reset]).toEqual([200, true]);
    expect(text).toContain('"thinking":"second"');
    expect(text).toContain('event: error');
    expect(text).toContain('The upstream sent a stream chunk that is not JSON.');
    expect(text).not.toContain('Never said.');
    expect(summaries[0]?.error?.message).toContain('not JSON');
  }
});

test('before anything was said it costs only another try', async () => {
  const { ask, sent } = scriptedGateway('openai-chat', [
    { sse: ['data: <html>oops</html>\n\n'] },
    { sse: [frame({ content: 'Here.' }), 'data: [DONE]\n\n'] },
  ]);
  const { text } = await ask('anthropic-messages', ASKED);
  expect(sent).toHaveLength(2);
  expect(text).toContain('Here.');
});
