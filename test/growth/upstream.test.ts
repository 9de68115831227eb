/** Reading upstream data takes time linear in its size, whatever its pieces. */

import { describe, test } from 'bun:test';
import { anthropicMessages } from '../../src/codecs/anthropic-messages/index.ts';
import type { Codec } from '../../src/codecs/codec.ts';
import { openaiChat } from '../../src/codecs/openai-chat/index.ts';
import { openaiResponses } from '../../src/codecs/openai-responses/index.ts';
import { Notes } from '../../src/conversation/notes.ts';
import { decoded } from '../../src/gateway/response-body.ts';
import { withFastPath } from '../../src/gateway/stream/fast/fast-translator.ts';
import { TailBuffer } from '../../src/gateway/stream/fast/tail-buffer.ts';
import { OriginalFrames } from '../../src/gateway/stream/original-frames.ts';
import { Passthrough } from '../../src/gateway/stream/passthrough.ts';
import type { StreamPipeline } from '../../src/gateway/stream/pipeline.ts';
import { OutputBuilder } from '../../src/gateway/stream/pipeline.ts';
import type { Bounds } from '../../src/gateway/stream/quiet-bytes.ts';
import { Translator } from '../../src/gateway/stream/translator.ts';
import { needles, Pieces } from '../../src/lib/bytes/bytes.ts';
import { SseParser } from '../../src/lib/bytes/sse.ts';
import { FlatHeaders } from '../../src/lib/http/headers.ts';
import { maskLiterals, secretLiterals } from '../../src/lib/text/secret-literals.ts';
import { streamSource } from '../../src/upstream/fetch-transport.ts';
import { ResponseParser } from '../../src/upstream/http1/response-parser.ts';
import { ResponseStream } from '../../src/upstream/http1/response-stream.ts';
import { STREAMED, targetWith } from '../features/leaked-calls/transcript.ts';
import { expectLinear, type GrowthCase } from '../support/growth.ts';

const MINUTE = 60_000;
const repeated = (text: string, size: number) =>
  Buffer.from(text.repeat(Math.ceil(size / text.length)));

function pieces(bytes: Uint8Array, size: number): Uint8Array[] {
  const all: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += size) all.push(bytes.slice(at, at + size));
  return all;
}

interface Case extends Omit<GrowthCase<readonly Uint8Array[]>, 'input'> {
  /** A start, a repeated middle, and an end. */
  readonly of: readonly [string, string, string];
  readonly piece: number;
}

function growing(cases: readonly Case[]) {
  test.each(cases.map((one) => [one.name, one] as const))(
    '%s',
    async (_, { of: [first, text, last], piece, ...rest }) => {
      const input = (size: number) =>
        pieces(Buffer.concat([Buffer.from(first), repeated(text, size), Buffer.from(last)]), piece);
      await expectLinear({ ...rest, input });
    },
    MINUTE,
  );
}

const STREAMS: readonly (readonly [string, readonly [string, string, string]])[] = [
  ['one frame', ['data: ', 'x', '\n\n']],
  ['one frame of many lines', ['', 'data: x\n', '\n']],
  ['one frame of many lines in CR LF', ['', 'data: x\r\n', '\r\n']],
  ['lines that end in CR', ['', 'data: x\r', '\r']],
  ['frames that end in CR', ['', 'data: x\r\r', '']],
  ['frames in CR, and a LF far behind', ['', 'x\r\r', '\n\n']],
  ['lines in LF, and a CR far behind', ['', 'data: x\n', '\r\n\r\n']],
  ['frames in CR LF', ['', 'data: x\r\n\r\n', '']],
  ['blank lines', ['', '\n', '']],
  ['carriage returns', ['', '\r', '']],
  ['comments', ['', ': x\n\n', '']],
  ['empty frames', ['', 'data:\n\n', '']],
  ['letters of three bytes', ['data: ', '语', '\n\n']],
];

describe('frames', () => {
  growing(
    STREAMS.flatMap(([name, of]) =>
      [16, 1400, 1 << 30].map((piece) => ({
        name: `${name}, in pieces of ${piece}`,
        of,
        piece,
        most: piece === 16 ? 512 * 1024 : 4 * 1024 * 1024,
        run: (all: readonly Uint8Array[]) => {
          const parser = new SseParser();
          for (const one of all) parser.push(one);
          return parser.end();
        },
      })),
    ),
  );
});

const bounds: Bounds = {
  provider: 'p',
  limits: { bytes: 1 << 30, frameBytes: 1 << 30, headerBytes: 1 << 30, headers: 1 << 30 },
  contentMs: 1e9,
};
const client = { request: STREAMED, requestId: 'req_1_aaaaaa', provider: 'p', notes: new Notes() };
const upstreamOf = (protocol: Codec) => ({
  sent: STREAMED,
  target: { ...targetWith(), protocol: protocol.name },
  notes: new Notes(),
});
const BEGUN = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"a"},"finish_reason":null}]}\n\n`;
const WORD = BEGUN.replace('"role":"assistant",', '');
const EMPTY = BEGUN.replace('"role":"assistant","content":"a"', '');
const REASON = BEGUN.replace('"content"', '"reasoning_content"');

const PIPELINES: readonly (readonly [string, () => StreamPipeline])[] = [
  ['forwarded', () => new Passthrough(openaiChat, upstreamOf(openaiChat), client, bounds)],
  ...[anthropicMessages, openaiResponses, openaiChat].map(
    (to) =>
      [
        `to ${to.name}`,
        () => {
          const options = {
            decoder: openaiChat.decodeStream(upstreamOf(openaiChat)),
            interceptors: [],
            client: { encoder: to.encodeStream(client), context: client, fold: undefined },
            preserveBytes: to === openaiChat,
            continues: false,
            bounds,
          };
          return withFastPath(new Translator(options), options);
        },
      ] as const,
  ),
];

describe('pipelines', () => {
  const streams: readonly (readonly [string, string, string])[] = [
    ['words', BEGUN, WORD],
    ['reasoning', '', REASON],
    ['empty deltas', '', EMPTY],
    ['empty deltas behind a word', BEGUN, EMPTY],
    ['comments', '', ': x\n\n'],
    ['comments behind a word', BEGUN, ': x\n\n'],
    ['one comment behind a word', BEGUN, ':'],
    ['pings behind a word', BEGUN, 'event: ping\ndata: {"type": "ping"}\n\n'],
    ['one frame behind a word', `${BEGUN}data: `, 'x'],
  ];
  growing(
    PIPELINES.flatMap(([pipeline, open]) =>
      streams.flatMap(([name, first, text]) =>
        [19, 70_000].map((piece) => ({
          name: `${name}, ${pipeline}, in pieces of ${piece}`,
          of: [first, text, '\n\n'] as const,
          piece,
          most: piece === 19 ? 128 * 1024 : 1024 * 1024,
          run: (all: readonly Uint8Array[]) => {
            const one = open();
            for (const chunk of all) one.push(chunk);
            one.end();
            return one.digest;
          },
        })),
      ),
    ),
  );
});

const HEAD = 'HTTP/1.1 200 OK\r\n';
const ANSWERS: readonly (readonly [string, readonly [string, string, string]])[] = [
  ['many headers', [HEAD, 'x-a: b\r\n', '\r\n']],
  ['many names', [HEAD, 'x: y\r\n', '\r\n']],
  ['folded lines', [`${HEAD}x: y`, '\r\n y', '\r\n\r\n']],
  ['one header', [`${HEAD}x: `, 'y', '\r\n\r\n']],
  ['blanks in a header', [`${HEAD}x: y`, ' ', 'y\r\n\r\n']],
  ['a header without a colon', [HEAD, 'x', '\r\n\r\n']],
  ['control characters', [`${HEAD}x: `, '\x01', '\r\n\r\n']],
  ['informational answers', ['', 'HTTP/1.1 103 Early\r\nx: y\r\n\r\n', '']],
  ['content lengths', [HEAD, 'content-length: 1\r\n', '\r\n']],
  ['chunks of one byte', [`${HEAD}transfer-encoding: chunked\r\n\r\n`, '1\r\nx\r\n', '0\r\n\r\n']],
  [
    'chunk extensions',
    [`${HEAD}transfer-encoding: chunked\r\n\r\n`, '1;a=b\r\nx\r\n', '0\r\n\r\n'],
  ],
  ['zeros of a size', [`${HEAD}transfer-encoding: chunked\r\n\r\n`, '0', '\r\n']],
  ['trailers', [`${HEAD}transfer-encoding: chunked\r\n\r\n0\r\n`, 'x: y\r\n', '\r\n']],
  ['a body', [`${HEAD}\r\n`, 'x', '']],
];

describe('answers', () => {
  growing(
    ANSWERS.flatMap(([name, of]) =>
      [1, 1400, 1 << 30].map((piece) => ({
        name: `${name}, in pieces of ${piece}`,
        of,
        piece,
        most: piece === 1 ? 128 * 1024 : 1024 * 1024,
        run: (all: readonly Uint8Array[]) => {
          const parser = new ResponseParser({ headerBytes: 1 << 30, headers: 1 << 30 });
          for (const one of all) parser.push(Buffer.from(one));
        },
      })),
    ),
  );

  test(
    'answers held for a slow reader take linear time',
    async () => {
      await expectLinear({
        name: 'chunks of one byte',
        most: 64 * 1024,
        input: (size) => size,
        run: async (size) => {
          const reply = new ResponseStream(
            { pause() {}, resume() {}, drop() {} },
            { resolve() {}, reject() {} },
          );
          reply.receive(Buffer.from(`${HEAD}content-length: ${size}\r\n\r\n`));
          const over = reply.pipe({ write: () => Promise.resolve() });
          for (let i = 0; i < size; i++) reply.receive(Buffer.from('x'));
          await over;
        },
      });
    },
    MINUTE,
  );

  test(
    'answers that are collected take linear time',
    async () => {
      for (const piece of [1, 1400]) {
        await expectLinear({
          name: `in pieces of ${piece}`,
          most: 512 * 1024,
          input: (size) => pieces(repeated('x', size), piece),
          run: (all) => {
            const one = new Pieces();
            for (const chunk of all) one.push(chunk);
            return one.joined();
          },
        });
      }
    },
    MINUTE,
  );

  test.each(['gzip', 'gzip, gzip'])(
    '%s, in pieces',
    async (encoding) => {
      await expectLinear({
        name: encoding,
        most: 2 * 1024 * 1024,
        input: (size) => {
          const body = Buffer.from(
            Array.from({ length: size / 8 }, (_, i) => (i * 7919) % 9973).join(' '),
          );
          const packed = encoding
            .split(',')
            .reduce<Uint8Array>((bytes) => Bun.gzipSync(bytes as Uint8Array<ArrayBuffer>), body);
          return pieces(packed, 100);
        },
        run: (all) => {
          const rest = [...all].reverse();
          const body = new ReadableStream<Uint8Array>({
            pull(controller) {
              const next = rest.pop();
              if (next === undefined) controller.close();
              else controller.enqueue(next);
            },
          });
          const headers = FlatHeaders.of({ 'content-encoding': encoding });
          return decoded({ status: 200, headers, body: streamSource(() => body) }).body.readAll();
        },
      });
    },
    MINUTE,
  );
});

describe('lists', () => {
  test(
    'lists of headers with many names take linear time',
    async () => {
      await expectLinear({
        name: 'append, set and get',
        most: 256 * 1024,
        input: (size) => Array.from({ length: size / 16 }, (_, i) => `x-${i}`),
        run: (names) => {
          const list = new FlatHeaders();
          for (const name of names) list.append(name, 'y');
          for (const name of names) list.set(name, 'z');
          for (const name of names) list.get(name);
          return list.lines(new Set());
        },
      });
    },
    MINUTE,
  );

  test.each([1, 70, 5000])(
    'the end of a stream in pieces of %d takes linear time',
    async (piece) => {
      for (const mark of [[], ['event: end']]) {
        await expectLinear({
          name: `marks: ${mark.join()}`,
          most: piece === 1 ? 128 * 1024 : 2 * 1024 * 1024,
          input: (size) =>
            pieces(
              Buffer.concat([Buffer.from('event: end'), repeated('data: x\n\n', size)]),
              piece,
            ),
          run: (all) => {
            const tail = new TailBuffer(needles(...mark));
            for (const one of all) tail.push(one);
            return tail.bytes;
          },
        });
      }
    },
    MINUTE,
  );

  test(
    'lists of held frames take linear time',
    async () => {
      await expectLinear({
        name: 'taken in order',
        most: 512 * 1024,
        input: (size) =>
          Array.from({ length: size / 16 }, (_, index) => ({ type: 'block-stop', index }) as const),
        run: (events) => {
          const originals = new OriginalFrames();
          const out = new OutputBuilder();
          const frame = { event: '', data: 'x', bytes: new Uint8Array(1), from: 0, to: 1 };
          for (const event of events) originals.push(frame, [event]);
          for (const event of events) originals.take(event, 'x', out);
        },
      });
    },
    MINUTE,
  );

  test(
    'lists of secrets in an error take linear time',
    async () => {
      const secrets = secretLiterals(['aaaaaaaab', 'key"with/slash']);
      for (const text of ['a', 'aaaaaaaab', '\\']) {
        await expectLinear({
          name: text,
          input: (size) => text.repeat(size / text.length),
          run: (all) => maskLiterals(all, secrets),
        });
      }
    },
    MINUTE,
  );
});
