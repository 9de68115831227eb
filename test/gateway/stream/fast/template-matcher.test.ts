/** Text that is known by its bytes: goes out as it would have, and nobody who must know of it misses any. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { anthropicMessages } from '../../../../src/codecs/anthropic-messages/index.ts';
import type { Codec } from '../../../../src/codecs/codec.ts';
import { openaiChat } from '../../../../src/codecs/openai-chat/index.ts';
import { openaiResponses } from '../../../../src/codecs/openai-responses/index.ts';
import { GatewayError } from '../../../../src/conversation/errors.ts';
import type { StreamEvent } from '../../../../src/conversation/events.ts';
import { Fold } from '../../../../src/conversation/fold.ts';
import { Notes } from '../../../../src/conversation/notes.ts';
import type { Interceptor } from '../../../../src/features/feature.ts';
import { leakedCalls } from '../../../../src/features/leaked-calls/index.ts';
import { collector, type Heard } from '../../../../src/features/reasoning-memory/collect.ts';
import { residueInterceptor } from '../../../../src/features/tool-results/residue-stream.ts';
import { TemplateMatcher } from '../../../../src/gateway/stream/fast/template-matcher.ts';
import { Translator } from '../../../../src/gateway/stream/translator.ts';
import type { Json } from '../../../../src/lib/json/json.ts';
import { STREAMED, targetWith } from '../../../features/leaked-calls/transcript.ts';

interface Setting {
  readonly from: Codec;
  readonly to: Codec;
  readonly interceptors: readonly Interceptor[];
  /** Nothing is known by its bytes. */
  readonly slow?: boolean;
}

function laneOf({ from, to, interceptors, slow = false }: Setting) {
  const notes = new Notes();
  const target = { ...targetWith(), protocol: from.name };
  const context = { asked: STREAMED, requestId: 'req_1_aaaaaa', provider: 'vendor', notes };
  const decoder = from.decodeStream({ sent: STREAMED, target, notes });
  return new Translator({
    decoder: slow ? { push: (frame) => decoder.push(frame), end: () => decoder.end() } : decoder,
    interceptors,
    client: { encoder: to.encodeStream(context), context, fold: new Fold() },
    keepsBytes: from === to,
    continues: false,
  });
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

describe('text known by its bytes', () => {
  test.each(ROUTES.map(([from, to]) => [from.name, to.name, from, to] as const))(
    '%s to %s: goes out byte for byte as it does one by one, and all hear the same',
    (_from, _to, from, to) => {
      const told = (chunks: readonly Uint8Array[], armed: boolean, slow: boolean) => {
        const notes = new Notes();
        const heard: Heard[] = [];
        const target = { ...targetWith(), protocol: from.name };
        const leaks = leakedCalls(() => {}).intercept!(STREAMED, {
          target,
          client: to.name,
          notes,
          hop: 1,
        })!;
        const features = [leaks, collector((all) => heard.push(all)), residueInterceptor(notes)];
        const lane = laneOf({ from, to, interceptors: armed ? features : [], slow });
        const out = chunks.map((chunk) => Buffer.from(lane.push(chunk) as Uint8Array));
        out.push(Buffer.from(lane.end() as Uint8Array));
        const { digest } = lane;
        const said = JSON.stringify({
          notes: notes.all,
          heard,
          digest,
          said: lane.client.fold?.reply,
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

  /** An interceptor that minds these, and what it hears of the text. */
  function listener(minded: string): { interceptor: Interceptor; heard: string[] } {
    const heard: string[] = [];
    const interceptor: Interceptor = {
      event(event: StreamEvent) {
        if (event.type === 'delta') heard.push(event.text);
        return event;
      },
      fast: { watchedCharacters: () => minded },
      end: () => [],
    };
    return { interceptor, heard };
  }

  test('is the very chunk that came, and is told joined when something else comes', () => {
    const { interceptor, heard } = listener('!');
    const lane = laneOf({ from: openaiChat, to: openaiChat, interceptors: [interceptor] });
    const frames = STREAMS[openaiChat.name]!([...'1234', 'a', 'b', 'c', 'd', 'e!', 'f', 'g']);
    for (const frame of frames.slice(0, -2)) {
      const out = lane.push(frame);
      expect(out).toBe(frame);
    }
    // The first few are read: a burst has no more.
    expect(heard).toEqual(['hm', ...'1234', 'abcd', 'e!']);
    for (const frame of frames.slice(-2)) lane.push(frame);
    lane.end();
    expect(heard).toEqual(['hm', ...'1234', 'abcd', 'e!', 'fg']);
  });

  test.each([
    ['a hop that ends early', (lane: Translator) => lane.end()],
    ['events from elsewhere', (lane: Translator) => lane.inject([])],
    ['a failure', (lane: Translator) => lane.fail(new GatewayError('upstream', 'x'))],
    ['somebody who asks what was said', (lane: Translator) => lane.said],
  ] as const)('is told before %s', (_name, act) => {
    const { interceptor, heard } = listener('');
    const lane = laneOf({ from: openaiChat, to: openaiChat, interceptors: [interceptor] });
    const frames = STREAMS[openaiChat.name]!([...'1234', 'a', 'b']);
    for (const frame of frames.slice(0, -2)) lane.push(frame);
    expect(heard).toEqual(['hm', ...'1234']);
    act(lane);
    expect(heard).toEqual(['hm', ...'1234', 'ab']);
  });

  test('is not looked for where an interceptor does not say what it minds', () => {
    const { interceptor, heard } = listener('');
    const silent: Interceptor = { event: (event) => event, end: () => [] };
    const lane = laneOf({ from: openaiChat, to: openaiChat, interceptors: [interceptor, silent] });
    const frames = STREAMS[openaiChat.name]!([...'1234', 'a', 'b']);
    for (const frame of frames.slice(0, -2)) lane.push(frame);
    expect(heard).toEqual(['hm', ...'1234', 'a', 'b']);
  });
});

describe('a frame of plain text', () => {
  const from = { head: 'data: {"t":"', foot: '"}\n\n' };
  const pushed = (text: string | Uint8Array, minded = '') => {
    const chunk = Buffer.concat([
      Buffer.from(from.head),
      typeof text === 'string' ? Buffer.from(text) : text,
      Buffer.from(from.foot),
    ]);
    return new TemplateMatcher(from, undefined, minded).push(chunk);
  };

  test.each([
    ['no text', ''],
    ['a quote', 'a"b'],
    ['an escape', 'a\\n'],
    ['a control character', 'a\tb'],
    ['a space at its end', 'a '],
    ['a wide space at its end', '你　'],
    ['half a character', new Uint8Array([0x61, 0xe4, 0xbd])],
    ['the other half', new Uint8Array([0xa0, 0x61])],
    ['two frames', 'a"}\n\ndata: {"t":"b'],
    ['more than there is room for', 'x'.repeat(513)],
  ])('is none with %s', (_name, text) => {
    expect(pushed(text)).toBeUndefined();
  });

  test('is none with a character that is minded, in ASCII or beyond', () => {
    expect(pushed('a<b', '<◁')).toBeUndefined();
    expect(pushed('a◁b', '<◁')).toBeUndefined();
    expect(pushed('a◁b', '<')).toBeDefined();
  });

  test('is none when anything around it differs, and leaves nothing behind', () => {
    const plain = new TemplateMatcher(from, undefined, '!');
    const whole = Buffer.from(`${from.head}text${from.foot}`);
    for (let i = 0; i < whole.length; i++) {
      const other = Buffer.from(whole);
      if (i < from.head.length || i >= from.head.length + 4) other[i] = whole[i]! ^ 1;
      else other[i] = 0x21;
      expect(plain.push(other)).toBeUndefined();
    }
    expect(plain.push(whole.subarray(1))).toBeUndefined();
    expect(plain.push(whole.subarray(0, -1))).toBeUndefined();
    expect(plain.taken()).toBe('');
    expect(plain.push(whole)).toBe(whole);
    expect(plain.taken()).toBe('text');
    expect(plain.taken()).toBe('');
  });

  test('goes out in the frame of the other side', () => {
    const plain = new TemplateMatcher(from, { head: 'é<', foot: '>é' }, '');
    const out = plain.push(Buffer.from(`${from.head}你 ok${from.foot}`));
    expect(Buffer.from(out!).toString()).toBe('é<你 ok>é');
    expect(plain.taken()).toBe('你 ok');
  });
});
