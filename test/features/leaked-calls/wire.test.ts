/** Leaked calls on the wire: recorded streams keep every byte, and leaked streams come out as real calls. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { anthropicMessages } from '../../../src/codecs/anthropic-messages/index.ts';
import type { Codec } from '../../../src/codecs/codec.ts';
import { openaiChat } from '../../../src/codecs/openai-chat/index.ts';
import { openaiResponses } from '../../../src/codecs/openai-responses/index.ts';
import { Notes } from '../../../src/conversation/notes.ts';
import type { Interceptor } from '../../../src/features/feature.ts';
import { leakedCalls } from '../../../src/features/leaked-calls/index.ts';
import { withFastPath } from '../../../src/gateway/stream/fast/fast-translator.ts';
import type { StreamPipeline } from '../../../src/gateway/stream/pipeline.ts';
import { Translator } from '../../../src/gateway/stream/translator.ts';
import { SseParser } from '../../../src/lib/bytes/sse.ts';
import { isObject, type Json, type JsonObject } from '../../../src/lib/json/json.ts';
import {
  fixtureBytes,
  fixtures,
  fixtureText,
  haveFixtures,
  unlessRecorded,
} from '../../support/fixtures.ts';
import { characters, STREAMED, targetWith } from './transcript.ts';

const PROTOCOLS: Readonly<Record<string, Codec>> = {
  messages: anthropicMessages,
  chat: openaiChat,
  responses: openaiResponses,
};

function pipelineWith(
  from: Codec,
  to: Codec,
  interceptor: Interceptor,
  sent = STREAMED,
): StreamPipeline {
  const notes = new Notes();
  const target = { ...targetWith(), protocol: from.name };
  const clientContext = { request: sent, requestId: 'req_1_aaaaaa', provider: 'vendor', notes };
  const options = {
    decoder: from.decodeStream({ sent, target, notes }),
    interceptors: [interceptor],
    client: { encoder: to.encodeStream(clientContext), context: clientContext, fold: undefined },
    preserveBytes: from === to,
    continues: false,
  };
  return withFastPath(new Translator(options), options);
}

/** `together`: consecutive frames may be handled as one where no feature reads their text. */
function through(
  from: Codec,
  to: Codec,
  chunks: readonly Uint8Array[],
  together = true,
  sent = STREAMED,
): Uint8Array {
  const notes = new Notes();
  const target = { ...targetWith(), protocol: from.name };
  const leaks = leakedCalls(() => {}).intercept!(sent, {
    target,
    client: to.name,
    notes,
    hop: 1,
  })!;
  const slow: Interceptor = { event: (event) => leaks.event(event), end: () => leaks.end() };
  const pipeline = pipelineWith(from, to, together ? leaks : slow, sent);
  const out = [...chunks.map((chunk) => pipeline.push(chunk)), pipeline.end()];
  return Buffer.concat(out.map((part) => Buffer.from(part as Uint8Array)));
}

const rows = fixtures(
  ({ protocol, kind, anomalies }) =>
    protocol in PROTOCOLS && kind === 'sse' && !anomalies.some((each) => /start/.test(each)),
);

/** With the tool choice of the recorded request: a call that was asked for may end in `stop`. */
function withChoice(codec: Codec, request: string | null) {
  if (request === null) return STREAMED;
  const text = fixtureText(request);
  if (!text.includes('"tool_choice"')) return STREAMED;
  const { toolChoice } = codec.decodeRequest(JSON.parse(text)).settings;
  return { ...STREAMED, settings: { ...STREAMED.settings, toolChoice } };
}

const LF = 0x0a;
const NOTHING = new Uint8Array(0);
const BLANK_LINE = Buffer.from('\n\n');

describe.skipIf(!haveFixtures)(`recorded streams${unlessRecorded}`, () => {
  test('every byte stays, in pieces of any size', () => {
    const wrong: string[] = [];
    for (const { file, protocol, request } of rows) {
      const bytes = fixtureBytes(file);
      if (/(?:<|\\u003c)think/.test(new TextDecoder().decode(bytes))) continue;
      const size = 1 + (file.length % 700);
      const chunks: Uint8Array[] = [];
      for (let at = 0; at < bytes.length; at += size) chunks.push(bytes.subarray(at, at + size));
      const codec = PROTOCOLS[protocol]!;
      const passed = through(codec, codec, chunks, true, withChoice(codec, request));
      // Clients lose a last frame without its blank line.
      const isEnded = bytes.subarray(-2).every((byte) => byte === LF);
      const whole = Buffer.concat([bytes, isEnded ? NOTHING : BLANK_LINE]);
      if (!whole.equals(passed)) wrong.push(file);
    }
    expect(rows.length).toBeGreaterThan(300);
    expect(wrong).toEqual([]);
  });
});

const LEAK =
  'Looking.\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name="exec_command">\n<｜DSML｜parameter name="cmd" string="true">ls "a"</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>';

function chatStream(text: string): Uint8Array[] {
  return chatFrames(characters(text));
}

function chatFrames(pieces: readonly string[]): Uint8Array[] {
  const chunk = (delta: Json, reason: string | null) =>
    `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: reason }] })}\n\n`;
  const frames = pieces.map((content) => chunk({ content }, null));
  frames.unshift(chunk({ role: 'assistant', content: '' }, null));
  frames.push(chunk({}, 'stop'), 'data: [DONE]\n\n');
  return frames.map((frame) => new TextEncoder().encode(frame));
}

function framesOf(bytes: Uint8Array): JsonObject[] {
  const parser = new SseParser();
  return [...parser.push(bytes), ...parser.end()].flatMap(({ data }) => {
    const value: unknown = data === undefined || data === '[DONE]' ? undefined : JSON.parse(data);
    return isObject(value) ? [value] : [];
  });
}

describe('a leaking Chat stream', () => {
  test('a leak becomes a call for a Chat client', () => {
    const frames = framesOf(through(openaiChat, openaiChat, chatStream(LEAK)));
    const choices = frames.map((frame) => (frame.choices as readonly JsonObject[])[0]!);
    const deltas = choices.map(({ delta }) => delta as JsonObject);
    expect(deltas.map(({ content }) => content ?? '').join('')).toBe('Looking.');
    const calls = deltas.flatMap((delta) => (delta.tool_calls ?? []) as readonly JsonObject[]);
    expect(calls[0]!.id).toMatch(/^call_[0-9a-f]{24}$/);
    const functions = calls.map((call) => call.function as JsonObject);
    expect(functions[0]!.name).toBe('exec_command');
    const args = functions.map((each) => each.arguments ?? '').join('');
    expect(JSON.parse(args)).toEqual({ cmd: 'ls "a"' });
    expect(choices.at(-1)!.finish_reason).toBe('tool_calls');
  });

  test('a leak becomes a tool_use for a Messages client', () => {
    const frames = framesOf(through(openaiChat, anthropicMessages, chatStream(LEAK)));
    const starts = frames.filter(({ type }) => type === 'content_block_start');
    expect(starts.map(({ content_block: block }) => (block as JsonObject).type)).toEqual([
      'text',
      'tool_use',
    ]);
    const stop = frames.find(({ type }) => type === 'message_delta')!;
    expect((stop.delta as JsonObject).stop_reason).toBe('tool_use');
  });

  test('a leak becomes a function_call for a Responses client', () => {
    const frames = framesOf(through(openaiChat, openaiResponses, chatStream(LEAK)));
    const last = frames.find(({ type }) => type === 'response.completed')!.response as JsonObject;
    const items = last.output as readonly JsonObject[];
    expect(items.map(({ type }) => type)).toEqual(['message', 'function_call']);
    expect(items[1]!.name).toBe('exec_command');
  });
});

describe('frames handled together', () => {
  const piece = fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom(' word', 'A sentence.', ' é', ' "quoted"', ' code()') },
    fc.constantFrom(
      '\n',
      '  ',
      '.c',
      'om',
      'a',
      'ss',
      '\ncommentary to=',
      '{',
      '<',
      '[',
      '`',
      '```\n',
      '',
    ),
    fc.constantFrom(LEAK, LEAK.slice(0, 60), LEAK.slice(60), '<think>', '</think>', '<｜DSML'),
    fc.string(),
  );

  test('frames come out byte for byte as they do one by one, with or without leaks', () => {
    const own = (bytes: Uint8Array) =>
      Buffer.from(bytes)
        .toString()
        .replace(/call_[0-9a-f]{24}/g, 'call');
    fc.assert(
      fc.property(
        fc.array(piece, { maxLength: 60, size: 'max' }),
        fc.array(fc.integer({ min: 1, max: 5000 }), { minLength: 1, maxLength: 5 }),
        (pieces, cuts) => {
          const whole = Buffer.concat(chatFrames(pieces));
          const chunks: Uint8Array[] = [];
          for (let at = 0, i = 0; at < whole.length; i++) {
            const size = cuts[i % cuts.length]!;
            chunks.push(whole.subarray(at, at + size));
            at += size;
          }
          const together = own(through(openaiChat, openaiChat, chunks));
          expect(together).toBe(own(through(openaiChat, openaiChat, chunks, false)));
        },
      ),
      { numRuns: 500 },
    );
  });

  test('frames are handled as one where they hold only text', () => {
    const received: string[] = [];
    const interceptor: Interceptor = {
      event(event) {
        if (event.type === 'delta') received.push(event.text);
        return event;
      },
      fast: { passesText: ({ text }) => !text.includes('!') },
      end: () => [],
    };
    const pipeline = pipelineWith(openaiChat, openaiChat, interceptor);
    const frames = chatFrames([...'abcdefgh', '!', ...'ijkl']);
    const chunks = [Buffer.concat(frames.slice(0, 5)), Buffer.concat(frames.slice(5, 8))];
    const rest = Buffer.concat(frames.slice(8));
    const out = [...chunks, rest].map((chunk) => Buffer.from(pipeline.push(chunk)));
    expect(Buffer.concat(out)).toEqual(Buffer.concat(frames));
    // The first two words are decoded before the shape of the others is known.
    expect(received).toEqual(['a', 'b', 'cd', 'efg', 'h', '!', 'i', 'j', 'k', 'l']);
  });
});
