/** A Responses stream that is looked through costs linear time and bounded memory, whatever its vendor sends. */

import { expect, test } from 'bun:test';
import { anthropicMessages } from '../../src/codecs/anthropic-messages/index.ts';
import type { UpstreamContext } from '../../src/codecs/codec.ts';
import { soundFrames } from '../../src/codecs/openai-responses/stream/sound-frames.ts';
import { Notes } from '../../src/conversation/notes.ts';
import type { JsonObject } from '../../src/lib/json/json.ts';
import { expectLinear } from '../support/growth.ts';

/** Few items cost nothing: a stream has so many times the characters of the measured size. */
const TIMES = 64;
const MAX = (1024 * 1024) / TIMES;
const TIME = 120_000;
const json = (type: string, more: JsonObject) =>
  JSON.stringify({ type: `response.${type}`, ...more });
const created = (size: number) =>
  json('created', { response: { id: 'resp_1', instructions: 'x'.repeat(size) } });
const list = (size: number, make: (i: number) => string) =>
  Array.from({ length: Math.max(1, Math.floor(size / 100)) }, (_, i) => make(i));
const message = { type: 'message', role: 'assistant', content: [] };

const STREAMS: Readonly<Record<string, (size: number) => readonly string[]>> = {
  'items without indexes': (size) => list(size, () => json('output_item.added', { item: message })),
  'finished items without indexes': (size) =>
    list(size, () => json('output_item.done', { item: message })),
  'items without ids behind a long beginning': (size) => [
    created(size),
    ...list(size, () => json('output_item.added', { item: message })),
  ],
  'items with one index': (size) =>
    list(size, () => json('output_item.added', { output_index: 0, item: message })),
  'texts of no item behind many finished ones': (size) => [
    ...list(size / 2, (i) => json('output_item.done', { output_index: i, item: message })),
    ...list(size / 2, () => json('output_text.done', { text: '' })),
  ],
};

for (const [name, make] of Object.entries(STREAMS)) {
  test(
    `${name} take linear time`,
    () =>
      expectLinear({
        name,
        most: MAX,
        input: (size) => make(size * TIMES),
        run: (all) => {
          const read = soundFrames(new Notes());
          for (const one of all) read(one);
        },
      }),
    TIME,
  );
}

test(
  'calls of Messages whose events come interleaved take linear time, and wait for one another no further than a bound',
  async () => {
    const target = { provider: 'p', model: 'm', protocol: 'anthropic-messages', profile: {} };
    const sent = { model: 'm', system: [], turns: [], tools: [], settings: {} };
    const context = { sent, target, notes: new Notes() } as unknown as UpstreamContext;
    const use = { type: 'tool_use', id: 'toolu_1', name: 'run', input: {} };
    const delta = { type: 'input_json_delta', partial_json: 'x'.repeat(100) };
    const calls = (count: number) => Array.from({ length: count }, (_, index) => index);
    const frames = (count: number) =>
      [
        ...calls(count).map((index) => ({
          type: 'content_block_start',
          index,
          content_block: use,
        })),
        ...calls(count).map((index) => ({ type: 'content_block_delta', index, delta })),
        ...calls(count).map((index) => ({ type: 'content_block_stop', index })),
      ].map((event) => ({
        event: event.type,
        data: JSON.stringify(event),
        bytes: new Uint8Array(),
        from: 0,
        to: 0,
      }));
    await expectLinear({
      name: 'interleaved calls',
      most: 16 * 1024,
      input: frames,
      run: (all) => {
        const decoder = anthropicMessages.decodeStream(context);
        const events = all.flatMap((frame) => decoder.push(frame));
        if (events.length !== all.length) throw new Error(`${events.length} events`);
      },
    });
    const decoder = anthropicMessages.decodeStream(context);
    expect(() => frames(64 * 1024).flatMap((frame) => decoder.push(frame))).toThrow('never ended');
  },
  TIME,
);

test('a stream of items without end is looked through no further than its bounds, and goes on as it came', () => {
  const read = soundFrames(new Notes());
  read(created(10));
  const item = { ...message, content: [{ type: 'output_text', text: 'x'.repeat(100_000) }] };
  const done = json('output_item.done', { item });
  const own = Array.from({ length: 2000 }, () => read(done));
  expect(own[0]).not.toEqual([done]);
  expect(own.slice(-1000).every((frames) => frames.length === 1 && frames[0] === done)).toBe(true);
  // The output of an end that is missing would lack items.
  expect(read('[DONE]')).toEqual(['[DONE]']);
});
