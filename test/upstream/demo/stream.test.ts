/** The stream: order of events, the official SDK, pace, backpressure, abort. */

import { describe, expect, test } from 'bun:test';
import { SseParser } from '../../../src/lib/bytes/sse.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { demoTransport } from '../../../src/upstream/demo/index.ts';
import type { Frame } from '../../../src/upstream/demo/reply.ts';
import { pacedStream } from '../../../src/upstream/demo/reply.ts';
import { object, sdk, send, tool, transport } from './ask.ts';

const weather = tool(
  'get_weather',
  'Current weather for a city',
  object({ city: { type: 'string' } }),
);
const two = {
  model: 'demo',
  messages: [{ role: 'user', content: 'think: weather in Paris and Rome in parallel' }],
  tools: [weather],
};

type Chunk = {
  id: string;
  created: number;
  choices: { delta: JsonObject; finish_reason: string | null }[];
  usage?: JsonObject | null;
};

async function chunksOf(body: JsonObject): Promise<{ chunks: Chunk[]; last: string }> {
  const frames = new SseParser().push(await (await send({ ...body, stream: true })).bytes());
  for (const frame of frames) expect(frame.event).toBe('');
  const last = frames.pop()!.data!;
  return { chunks: frames.map((frame) => JSON.parse(frame.data!) as Chunk), last };
}

describe('order', () => {
  test('role once and first, one finish chunk with an empty delta, usage only if asked, then DONE', async () => {
    for (const include of [false, true]) {
      const { chunks, last } = await chunksOf({
        ...two,
        stream_options: { include_usage: include },
      });
      expect(last).toBe('[DONE]');
      expect(chunks[0]!.choices[0]!.delta).toMatchObject({ role: 'assistant', content: '' });
      expect(chunks.filter((chunk) => chunk.choices[0]?.delta.role !== undefined)).toHaveLength(1);
      expect(new Set(chunks.map((chunk) => chunk.id)).size).toBe(1);
      const finished = chunks.filter((chunk) => chunk.choices[0]?.finish_reason);
      expect(finished).toHaveLength(1);
      expect(finished[0]!.choices[0]!.delta).toEqual({});
      if (include) {
        expect(chunks.at(-1)!.choices).toEqual([]);
        expect(chunks.at(-1)!.usage).toMatchObject({ prompt_tokens: expect.any(Number) });
        expect(chunks.slice(0, -1).every((chunk) => chunk.usage === null)).toBe(true);
        expect(chunks.at(-2)).toBe(finished[0]!);
      } else {
        expect(chunks.every((chunk) => !('usage' in chunk))).toBe(true);
        expect(chunks.at(-1)).toBe(finished[0]!);
      }
    }
  });

  test('a call opens with index, id, type and name, and goes on with index and arguments alone', async () => {
    const { chunks } = await chunksOf(two);
    const parts = chunks.flatMap(
      (chunk) => (chunk.choices[0]?.delta.tool_calls as JsonObject[] | undefined) ?? [],
    );
    expect(parts.map((part) => part.index)).toEqual(parts.map((part) => part.index).toSorted());
    for (const index of [0, 1]) {
      const [head, ...rest] = parts.filter((part) => part.index === index);
      expect(head).toEqual({
        index,
        id: expect.stringMatching(/^call_/),
        type: 'function',
        function: { name: 'get_weather', arguments: '' },
      });
      expect(rest.length).toBeGreaterThan(0);
      for (const part of rest) expect(Object.keys(part).toSorted()).toEqual(['function', 'index']);
      const whole = rest.map((part) => (part.function as JsonObject).arguments).join('');
      expect(JSON.parse(whole)).toEqual({ city: ['Paris', 'Rome'][index] });
    }
  });
});

describe('the official SDK', () => {
  test('its accumulator makes of the stream what the whole answer says', async () => {
    const bodies = [
      two,
      { model: 'demo', messages: [{ role: 'user', content: '数到30，先想一想' }] },
      { model: 'any-name', messages: [{ role: 'user', content: 'count to 50' }], max_tokens: 20 },
    ];
    for (const body of bodies as (typeof two)[]) {
      const stream = sdk.chat.completions.stream({
        ...body,
        stream_options: { include_usage: true },
      } as never);
      const final = await stream.finalChatCompletion();
      const whole = await sdk.chat.completions.create(body as never);
      const [a, b] = [final.choices[0]!, whole.choices[0]!];
      expect(a.finish_reason).toBe(b.finish_reason);
      expect(a.message.content ?? '').toBe(b.message.content ?? '');
      expect(
        a.message.tool_calls?.map((call) => 'function' in call && call.function.arguments),
      ).toEqual(b.message.tool_calls?.map((call) => 'function' in call && call.function.arguments));
      expect(final.usage).toEqual(whole.usage!);
    }
  });

  test('its tool runner comes to an end with the summary', async () => {
    const runner = sdk.chat.completions.runTools({
      model: 'demo',
      stream: true,
      messages: [{ role: 'user', content: 'What is the weather in Oslo?' }],
      tools: [
        {
          type: 'function',
          function: {
            name: 'get_weather',
            description: 'Current weather for a city',
            parameters: object({ city: { type: 'string' } }),
            parse: JSON.parse,
            function: ({ city }: { city: string }) => `snow in ${city}`,
          },
        },
      ],
    } as never);
    expect(await (runner as { finalContent(): Promise<string> }).finalContent()).toContain(
      'snow in Oslo',
    );
  });

  test('its errors carry param and code; its model list holds demo', async () => {
    const refused = await sdk.chat.completions
      .create({ model: 'demo', messages: [] })
      .catch((error: unknown) => error);
    expect(refused).toMatchObject({ status: 400, param: 'messages' });
    expect((await sdk.models.list()).data.map((model) => model.id)).toEqual(['demo']);
    expect(
      (
        await transport({
          path: '/nope',
          headers: new Headers(),
          body: new Uint8Array(),
          signal: new AbortController().signal,
        })
      ).status,
    ).toBe(404);
  });
});

describe('pace', () => {
  const slow = demoTransport({ pace: 20 });
  const patient = demoTransport({ pace: 600_000 });
  const counting = {
    model: 'demo',
    stream: true,
    messages: [{ role: 'user', content: 'count to 1000' }],
  };

  test('words come one after another, and a whole answer does not wait', async () => {
    const start = performance.now();
    const reader = (await send(counting, undefined, slow)).body!.getReader();
    for (let i = 0; i < 6; i++) await reader.read();
    expect(performance.now() - start).toBeGreaterThan(80);
    await reader.cancel();
    // It would wait for hours.
    await (await send({ ...counting, stream: false }, undefined, patient)).text();
  });

  test('an abort ends a stream at once, in the middle of a pause too', async () => {
    const abort = new AbortController();
    const reader = (await send(counting, abort.signal, patient)).body!.getReader();
    await reader.read();
    const waiting = reader.read();
    setTimeout(() => abort.abort(new Error('gone')), 20);
    await expect(waiting).rejects.toThrow('gone');
  });

  test('a request that is aborted already is rejected', async () => {
    const refused = send(counting, AbortSignal.abort(new Error('too late')));
    await expect(refused).rejects.toThrow('too late');
  });

  test('a cancelled reader leaves no listener and no timer behind', async () => {
    const abort = new AbortController();
    const reader = (await send(counting, abort.signal, slow)).body!.getReader();
    await reader.read();
    const reading = reader.read();
    await reader.cancel();
    expect((await reading).done).toBe(true);
    // Nothing is left to be errored: an unhandled rejection here would fail the run.
    abort.abort(new Error('later'));
    await Bun.sleep(50);
  });

  test('nothing is made ahead of the reader', async () => {
    let made = 0;
    const endless: Iterator<Frame> = {
      next: () => ({ done: false, value: { text: `data: ${++made}\n\n`, paced: false } }),
    };
    const signal = new AbortController().signal;
    const reader = new Response(pacedStream(endless, 0, signal)).body!.getReader();
    for (let i = 0; i < 10; i++) await reader.read();
    await Bun.sleep(20);
    expect(made).toBeLessThanOrEqual(12);
    await reader.cancel();
  });
});
