/** The fast path in front of a translator changes nothing: the same bytes go out, and interceptors and encoder get all text. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { anthropicMessages } from '../../../../src/codecs/anthropic-messages/index.ts';
import type { Codec } from '../../../../src/codecs/codec.ts';
import { googleGemini } from '../../../../src/codecs/google-gemini/index.ts';
import { openaiChat } from '../../../../src/codecs/openai-chat/index.ts';
import { openaiResponses } from '../../../../src/codecs/openai-responses/index.ts';
import { GatewayError } from '../../../../src/conversation/errors.ts';
import type { StreamEvent } from '../../../../src/conversation/events.ts';
import { Notes } from '../../../../src/conversation/notes.ts';
import { ReplyBuilder } from '../../../../src/conversation/reply-builder.ts';
import type { Interceptor } from '../../../../src/features/feature.ts';
import { leakedCalls } from '../../../../src/features/leaked-calls/index.ts';
import {
  answerCollector,
  type CollectedAnswer,
} from '../../../../src/features/reasoning-memory/answer-collector.ts';
import { residueInterceptor } from '../../../../src/features/tool-results/residue-interceptor.ts';
import { withFastPath } from '../../../../src/gateway/stream/fast/fast-translator.ts';
import type { StreamPipeline } from '../../../../src/gateway/stream/pipeline.ts';
import { Translator } from '../../../../src/gateway/stream/translator.ts';
import type { Json } from '../../../../src/lib/json/json.ts';
import { STREAMED, targetWith } from '../../../features/leaked-calls/transcript.ts';

interface Setting {
  readonly from: Codec;
  readonly to: Codec;
  readonly interceptors: readonly Interceptor[];
  /** Without the fast path. */
  readonly slow?: boolean;
}

function pipelineOf({ from, to, interceptors, slow = false }: Setting): StreamPipeline {
  const notes = new Notes();
  const target = { ...targetWith(), protocol: from.name };
  const context = { request: STREAMED, requestId: 'req_1_aaaaaa', provider: 'vendor', notes };
  const options = {
    decoder: from.decodeStream({ sent: STREAMED, target, notes }),
    interceptors,
    client: { encoder: to.encodeStream(context), context, fold: new ReplyBuilder() },
    preserveBytes: from === to,
    continues: false,
  };
  const translator = new Translator(options);
  return slow ? translator : withFastPath(translator, options);
}

const bytesOf = (text: string) => new TextEncoder().encode(text);

/** A reasoning block, then a text in these pieces. */
const STREAMS: Readonly<Record<string, (pieces: readonly string[]) => Uint8Array[]>> = {
  [openaiChat.name](pieces) {
    const chunk = (delta: Json, reason: string | null) =>
      `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: reason }] })}\n\n`;
    return [
      chunk({ role: 'assistant', content: '' }, null),
      chunk({ reasoning_content: 'hm' }, null),
      ...pieces.map((content) => chunk({ content }, null)),
      chunk({}, 'stop'),
      'data: [DONE]\n\n',
    ].map(bytesOf);
  },
  [anthropicMessages.name](pieces) {
    const event = (type: string, more: object) =>
      `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`;
    const delta = (index: number, value: object) =>
      event('content_block_delta', { index, delta: value });
    const block = (index: number, value: object) =>
      event('content_block_start', { index, content_block: value });
    const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: [] };
    const usage = { input_tokens: 1, output_tokens: 1 };
    return [
      event('message_start', { message: { ...message, stop_reason: null, usage } }),
      block(0, { type: 'thinking', thinking: '', signature: '' }),
      delta(0, { type: 'thinking_delta', thinking: 'hm' }),
      event('content_block_stop', { index: 0 }),
      block(1, { type: 'text', text: '' }),
      ...pieces.map((text) => delta(1, { type: 'text_delta', text })),
      event('content_block_stop', { index: 1 }),
      event('message_delta', { delta: { stop_reason: 'end_turn' }, usage }),
      event('message_stop', {}),
    ].map(bytesOf);
  },
  // Google counts in each chunk, relays often only in the last one.
  [googleGemini.name](pieces) {
    const counted = pieces.length % 2 === 0;
    let tokens = 0;
    const chunk = (part: Json, more: object = {}, counts = counted) =>
      `data: ${JSON.stringify({
        candidates: [{ content: { parts: [part], role: 'model' }, index: 0, ...more }],
        ...(counts && {
          usageMetadata: {
            promptTokenCount: 9,
            candidatesTokenCount: ++tokens,
            totalTokenCount: 9 + tokens,
          },
        }),
        modelVersion: 'm-2.5',
        responseId: 'r1',
      })}\n\n`;
    return [
      chunk({ text: 'hm', thought: true }),
      ...pieces.map((text) => chunk({ text })),
      chunk({ text: '' }, { finishReason: 'STOP' }, !counted),
    ].map(bytesOf);
  },
};

const LEAK =
  '<｜DSML｜function_calls>\n<｜DSML｜invoke name="exec_command">\n<｜DSML｜parameter name="cmd" string="true">ls</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>';
const RECORD = '{"version":1,"tool":"x","arguments":{},"executed":true,"result":"y"}';

const piece = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.constantFrom(' word', ' two words', 'x', ' 3', '~', 'é', '你好', '😀'),
  },
  {
    weight: 3,
    arbitrary: fc.constantFrom('.', ' end.', 'c', 'a', 'ommentary to=', ' ', '　', 'a　'),
  },
  fc.constantFrom('"', '\\', '\n', '`', '```\n', '{', '<', '◁', '▷', '', '\ufeff', 'x'.repeat(600)),
  fc.constantFrom(LEAK, LEAK.slice(0, 40), LEAK.slice(40), RECORD, RECORD.slice(0, 9), '<think>'),
  fc.string({ unit: 'binary' }),
);
const ROUTES = [
  [openaiChat, openaiChat],
  [openaiChat, anthropicMessages],
  [openaiChat, openaiResponses],
  [anthropicMessages, anthropicMessages],
  [anthropicMessages, openaiChat],
  [googleGemini, googleGemini],
  [googleGemini, openaiChat],
  [googleGemini, anthropicMessages],
  [openaiChat, googleGemini],
] as const;

/** The frames in chunks of their own, but for those that are cut, or joined with the next. */
function chunked(frames: readonly Uint8Array[], how: readonly number[]): Uint8Array[] {
  const chunks: Uint8Array[] = [];
  let before: Uint8Array = new Uint8Array(0);
  frames.forEach((frame, i) => {
    const cut = how[i % how.length]!;
    const joined = Buffer.concat([before, frame]);
    before = new Uint8Array(0);
    if (cut < 60) chunks.push(joined);
    else if (cut < 80) before = joined;
    else chunks.push(joined.subarray(0, cut), joined.subarray(cut));
  });
  return [...chunks, before].filter(({ length }) => length > 0);
}

const settled = (text: string) =>
  text
    .replace(/(?:msg|rs|fc|resp|call|toolu|req)_[A-Za-z0-9_]+/g, 'ID')
    .replace(/"(?:created|completed)(?:_at)?":\d+/g, '');

describe('the fast path', () => {
  test.each(ROUTES.map(([from, to]) => [from.name, to.name, from, to] as const))(
    '%s to %s: goes out byte for byte as it does one by one, and all hear the same',
    (_from, _to, from, to) => {
      const told = (chunks: readonly Uint8Array[], armed: boolean, slow: boolean) => {
        const notes = new Notes();
        const heard: CollectedAnswer[] = [];
        const target = { ...targetWith(), protocol: from.name };
        const leaks = leakedCalls(() => {}).intercept!(STREAMED, {
          target,
          client: to.name,
          notes,
          hop: 1,
        })!;
        const features = [
          leaks,
          answerCollector((all) => heard.push(all)),
          residueInterceptor(notes),
        ];
        const pipeline = pipelineOf({ from, to, interceptors: armed ? features : [], slow });
        const out = chunks.map((chunk) => Buffer.from(pipeline.push(chunk) as Uint8Array));
        out.push(Buffer.from(pipeline.end() as Uint8Array));
        const { digest } = pipeline;
        const said = JSON.stringify({
          notes: notes.all,
          heard,
          digest,
          said: pipeline.client?.fold?.reply,
        });
        return { out: settled(Buffer.concat(out).toString()), said: settled(said) };
      };
      fc.assert(
        fc.property(
          fc.array(piece, { maxLength: 80, size: 'max' }),
          fc.array(fc.nat(99), { minLength: 1, maxLength: 9 }),
          fc.boolean(),
          (pieces, how, armed) => {
            const chunks = chunked(STREAMS[from.name]!(pieces), how);
            expect(told(chunks, armed, false)).toEqual(told(chunks, armed, true));
          },
        ),
        { numRuns: 200 },
      );
    },
  );

  /** An interceptor that watches these characters, and what it hears of the text. */
  function listener(watched: string): { interceptor: Interceptor; heard: string[] } {
    const heard: string[] = [];
    const interceptor: Interceptor = {
      event(event: StreamEvent) {
        if (event.type === 'delta') heard.push(event.text);
        return event;
      },
      fast: { watchedCharacters: () => watched },
      end: () => [],
    };
    return { interceptor, heard };
  }

  test('is the very chunk that came, and is told joined when something else comes', () => {
    const { interceptor, heard } = listener('!');
    const pipeline = pipelineOf({ from: openaiChat, to: openaiChat, interceptors: [interceptor] });
    const frames = STREAMS[openaiChat.name]!([...'1234', 'a', 'b', 'c', 'd', 'e!', 'f', 'g']);
    for (const frame of frames.slice(0, -2)) {
      const out = pipeline.push(frame);
      expect(out).toBe(frame);
    }
    // The first few are read: a burst has no more.
    expect(heard).toEqual(['hm', ...'1234', 'abcd', 'e!']);
    for (const frame of frames.slice(-2)) pipeline.push(frame);
    pipeline.end();
    expect(heard).toEqual(['hm', ...'1234', 'abcd', 'e!', 'fg']);
  });

  test.each([
    ['a hop that ends early', (pipeline: StreamPipeline) => pipeline.end()],
    ['events from elsewhere', (pipeline: StreamPipeline) => pipeline.inject([])],
    ['a failure', (pipeline: StreamPipeline) => pipeline.fail(new GatewayError('upstream', 'x'))],
    ['a caller that asks for the final answer', (pipeline: StreamPipeline) => pipeline.finalAnswer],
  ] as const)('is told before %s', (_name, act) => {
    const { interceptor, heard } = listener('');
    const pipeline = pipelineOf({ from: openaiChat, to: openaiChat, interceptors: [interceptor] });
    const frames = STREAMS[openaiChat.name]!([...'1234', 'a', 'b']);
    for (const frame of frames.slice(0, -2)) pipeline.push(frame);
    expect(heard).toEqual(['hm', ...'1234']);
    act(pipeline);
    expect(heard).toEqual(['hm', ...'1234', 'ab']);
  });

  test.each(ROUTES.map(([from, to]) => [from.name, to.name, from, to] as const))(
    '%s to %s: the frames of one chunk are one piece',
    (_from, _to, from, to) => {
      const heard: string[] = [];
      const interceptor: Interceptor = {
        event(event: StreamEvent) {
          if (event.type === 'delta') heard.push(event.text);
          return event;
        },
        fast: { passesText: () => true },
        end: () => [],
      };
      const pipeline = pipelineOf({ from, to, interceptors: [interceptor] });
      pipeline.push(Buffer.concat(STREAMS[from.name]!([...'123', ...'abcdefgh'])));
      pipeline.end();
      expect(heard.join('')).toBe('hm123abcdefgh');
      // The first few are read: the form is learned from them.
      expect(heard.at(-1)).toEndWith('abcdefgh');
    },
  );

  test('is not looked for where an interceptor does not say which characters it watches', () => {
    const { interceptor, heard } = listener('');
    const silent: Interceptor = { event: (event) => event, end: () => [] };
    const pipeline = pipelineOf({
      from: openaiChat,
      to: openaiChat,
      interceptors: [interceptor, silent],
    });
    const frames = STREAMS[openaiChat.name]!([...'1234', 'a', 'b']);
    for (const frame of frames.slice(0, -2)) pipeline.push(frame);
    expect(heard).toEqual(['hm', ...'1234', 'a', 'b']);
  });
});
