/** A forwarded stream that fails behind its first words tells no secret, however its bytes are cut. */

import { expect, test } from 'bun:test';
import type { StreamEvent } from '../../src/conversation/events.ts';
import { Notes } from '../../src/conversation/notes.ts';
import { ErrorMask } from '../../src/gateway/stream/mask-errors.ts';
import { Passthrough } from '../../src/gateway/stream/passthrough.ts';
import type { Bounds } from '../../src/gateway/stream/quiet-bytes.ts';
import { Translator } from '../../src/gateway/stream/translator.ts';
import { STREAMED, targetWith } from '../features/leaked-calls/transcript.ts';
import { bytewise, everySplit, whole } from '../support/chunkings.ts';
import { expectLinear } from '../support/growth.ts';
import type { SuiteProtocol as ProtocolName } from '../support/suite-protocols.ts';
import { PROTOCOLS } from './scripted.ts';

const SECRET = 'sk-secret-0123456789';
const SAFE = '*'.repeat(SECRET.length);
const bounds: Bounds = {
  provider: 'p',
  limits: { bytes: 1e6, frameBytes: 1e5 } as Bounds['limits'],
  contentMs: 0,
  secrets: [SECRET],
};

const client = { request: STREAMED, requestId: 'r', provider: 'p', notes: new Notes() };
const upstreamOf = (protocol: ProtocolName) => ({
  sent: STREAMED,
  target: { ...targetWith(), protocol },
  notes: new Notes(),
});

const passthroughOf = (protocol: ProtocolName, limits: Bounds | undefined = bounds): Passthrough =>
  new Passthrough(PROTOCOLS[protocol], upstreamOf(protocol), client, limits);

const chat = (delta: object, more = {}) =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: null }], ...more })}\n\n`;
const messages = (type: string, more: object) =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`;
const said = `Incorrect key ${SECRET}.`;
const BEGUN = [chat({ role: 'assistant', content: 'Ä' }), chat({ content: 'b' })];
const MESSAGES = [
  messages('message_start', {
    message: {
      id: 'm',
      type: 'message',
      role: 'assistant',
      model: 'm',
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { input_tokens: 1, output_tokens: 1 },
    },
  }),
  messages('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
  messages('content_block_delta', { index: 0, delta: { type: 'text_delta', text: 'Ä' } }),
  messages('content_block_delta', { index: 0, delta: { type: 'text_delta', text: 'b' } }),
];

const STREAMS: readonly (readonly [string, ProtocolName, readonly string[], string])[] = [
  [
    'chat',
    'openai-chat',
    BEGUN,
    `data: ${JSON.stringify({ error: { message: said, code: SECRET } })}\n\n`,
  ],
  [
    'chat, beside choices',
    'openai-chat',
    BEGUN,
    chat({ content: '' }, { error: { message: said } }),
  ],
  ['chat, named', 'openai-chat', BEGUN, `event: error\ndata: {"message":"${said}"}\n\n`],
  [
    'messages',
    'anthropic-messages',
    MESSAGES,
    messages('error', { error: { type: 'api_error', message: said } }),
  ],
];

for (const [name, protocol, before, error] of STREAMS) {
  test(name, () => {
    const head = before.join('');
    const expected = (head + error).replaceAll(SECRET, SAFE);
    const split = everySplit(Buffer.from(error)).map(({ name: at, cut }) => ({
      name: at,
      cut: () => [...before.map((one) => Buffer.from(one)), ...cut(Buffer.from(error))],
    }));
    const bytes = Buffer.from(head + error);
    const apart = [...before, error].map((one) => Buffer.from(one));
    const joined = [Buffer.from(before.slice(0, -1).join('')), Buffer.from(before.at(-1)! + error)];
    const ways = [
      whole,
      bytewise,
      { name: 'apart', cut: () => apart },
      { name: 'joined', cut: () => joined },
      ...split,
    ];
    for (const way of ways) {
      const pipeline = passthroughOf(protocol);
      const out = way.cut(bytes).map((chunk) => Buffer.from(pipeline.push(chunk) as Uint8Array));
      out.push(Buffer.from(pipeline.end() as Uint8Array));
      expect([way.name, Buffer.concat(out).toString()]).toEqual([way.name, expected]);
      expect(pipeline.error?.message ?? '').not.toContain(SECRET);
    }
  });
}

test.each(STREAMS)('%s, behind an interceptor', (_name, protocol, before, error) => {
  for (const interceptors of [[], [{ event: (event: StreamEvent) => event, end: () => [] }]]) {
    const codec = PROTOCOLS[protocol];
    const pipeline = new Translator({
      decoder: codec.decodeStream(upstreamOf(protocol)),
      interceptors,
      client: { encoder: codec.encodeStream(client), context: client, fold: undefined },
      preserveBytes: true,
      continues: false,
      bounds,
    });
    const out = [...before, error].map((one) => Buffer.from(pipeline.push(Buffer.from(one))));
    const text = Buffer.concat(out).toString();
    expect(text).toStartWith(before.join(''));
    expect(text).toContain(SAFE);
    expect(text).not.toContain(SECRET);
  }
});

test('words are forwarded as the very objects that came, with a secret known or not', () => {
  for (const limits of [bounds, { ...bounds, secrets: undefined }]) {
    const pipeline = passthroughOf('openai-chat', limits);
    for (const text of [...BEGUN, ...BEGUN]) {
      const chunk = Buffer.from(text);
      expect(pipeline.push(chunk)).toBe(chunk);
    }
  }
});

test('an error that says null is no error: the words behind it are forwarded as they came', () => {
  const pipeline = passthroughOf('openai-chat');
  pipeline.push(Buffer.from(BEGUN[0]!.replace('{"id"', '{"error":null,"id"')));
  const chunk = Buffer.from(BEGUN[1]!);
  expect(pipeline.push(chunk)).toBe(chunk);
});

test('an error in pieces is masked in linear time', async () => {
  for (const piece of ['x', '\n', 'x\n', 'x\r', `${SECRET}\n`]) {
    await expectLinear({
      name: JSON.stringify(piece),
      input: (size) => Array(Math.ceil(size / 8)).fill(Buffer.from(piece)) as Buffer[],
      run: (chunks) => {
        const limits = { ...bounds.limits, frameBytes: 1e9 };
        const pipeline = passthroughOf('openai-chat', { ...bounds, limits });
        pipeline.push(Buffer.from(BEGUN[0]!));
        pipeline.push(Buffer.from('event: error\n'));
        for (const chunk of chunks) pipeline.push(chunk);
      },
    });
  }
});

test('an error without an end is not held for ever, and is masked across what went out', () => {
  const mask = new ErrorMask([SECRET]);
  const line = `data: {"error":"${`${SECRET}, `.repeat(200_000)}`;
  let out = '';
  let waits = 0;
  for (let at = 0; at < line.length; at += 999) {
    const chunk = Buffer.from(line.slice(at, at + 999));
    const safe = mask.push(chunk);
    waits = safe === undefined ? waits + chunk.length : 0;
    expect(waits).toBeLessThanOrEqual(2 ** 20);
    out += Buffer.from(safe ?? []).toString();
  }
  out += Buffer.from(mask.end() ?? []).toString();
  expect(out).toBe(line.replaceAll(SECRET, SAFE));
});
