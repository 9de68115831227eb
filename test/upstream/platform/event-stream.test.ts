/** AWS' binary event stream becomes server-sent events at every cut, and nothing of a broken one gets through. */

import { describe, expect, test } from 'bun:test';
import {
  MessageReader,
  sseOfMessage,
} from '../../../src/upstream/platform/bedrock/event-stream.ts';
import { bytewise, everySplit, random } from '../../support/chunkings.ts';
import { expectLinear } from '../../support/growth.ts';
import {
  chunkMessage,
  eventStreamMessage,
  exceptionMessage,
} from '../../support/platforms/event-stream.ts';

const EVENTS = [
  '{"type":"message_start","message":{"id":"msg_1","usage":{"input_tokens":3}}}',
  '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Grüße 👋"}}',
  '{"delta":{"stop_reason":"end_turn"},"type":"message_delta"}',
  '{"type":"message_stop","amazon-bedrock-invocationMetrics":{"inputTokenCount":3}}',
];
const STREAM = Buffer.concat(EVENTS.map(chunkMessage));
const TYPES = ['message_start', 'content_block_delta', 'message_delta', 'message_stop'];
const SSE = EVENTS.map((event, i) => `event: ${TYPES[i]}\ndata: ${event}\n\n`).join('');

function read(chunks: readonly Uint8Array[], most = 1 << 20): string {
  const reader = new MessageReader(most);
  let out = '';
  for (const chunk of chunks) {
    for (const message of reader.push(chunk)) out += sseOfMessage(message).text;
  }
  reader.end();
  return out;
}

describe('the event stream', () => {
  test('gives the same events at every cut', () => {
    expect(read([STREAM])).toBe(SSE);
    for (const { cut, name } of [bytewise, ...everySplit(STREAM), random(1), random(2, 400)]) {
      expect([name, read(cut(STREAM))]).toEqual([name, SSE]);
    }
  });

  test('is broken by any changed byte', () => {
    for (let at = 0; at < STREAM.length; at++) {
      const bytes = new Uint8Array(STREAM);
      bytes[at]! ^= 0x10;
      expect(() => read([bytes])).toThrow(/the event stream is broken/);
    }
  });

  test('is broken where it ends in the middle of a message', () => {
    const first = chunkMessage(EVENTS[0]!).length;
    for (const cut of [1, 11, 12, 100, first - 1, first + 1]) {
      expect(() => read([STREAM.subarray(0, cut)])).toThrow(/ends in the middle of a message/);
    }
    expect(read([STREAM.subarray(0, first)])).toBe(`event: ${TYPES[0]}\ndata: ${EVENTS[0]}\n\n`);
  });

  test('a length beyond the limit is refused before its bytes are waited for', () => {
    expect(() => read([STREAM.subarray(0, 12)], 64)).toThrow(/limits\.frame_bytes/);
  });

  test('exceptions become error events of Messages', () => {
    const of = (bytes: Uint8Array) => sseOfMessage(new MessageReader(1 << 20).push(bytes)[0]!);
    const { text, isLast } = of(exceptionMessage('throttlingException', 'Too many tokens.'));
    expect(isLast).toBe(true);
    expect(text).toBe(
      'event: error\ndata: {"type":"error","error":{"type":"rate_limit_error","message":"Too many tokens.","code":"ThrottlingException"}}\n\n',
    );
    const unmodeled = eventStreamMessage(
      { ':message-type': 'error', ':error-code': 'InternalError', ':error-message': 'Oh no.' },
      '',
    );
    expect(of(unmodeled).text).toContain('"type":"api_error","message":"Oh no."');
  });

  test('an event without a type, or of another kind, is left out; one that is no event breaks', () => {
    expect(read([chunkMessage('{"p":1}')])).toBe('');
    const other = { ':message-type': 'event', ':event-type': 'later' };
    expect(read([eventStreamMessage(other, '{}')])).toBe('');
    const chunk = { ':message-type': 'event', ':event-type': 'chunk' };
    expect(() => read([eventStreamMessage(chunk, '{}')])).toThrow(/a chunk without bytes/);
    expect(() => read([chunkMessage('no JSON')])).toThrow(/no JSON object/);
  });

  test('a large message in small chunks takes linear time', async () => {
    await expectLinear({
      name: 'one message, 64 bytes a chunk',
      most: 1 << 20,
      input: (size) =>
        random(1, 64).cut(
          chunkMessage(`{"type":"x","text":"${'a'.repeat(Math.ceil(size * 0.7))}"}`),
        ),
      run: (chunks) => read(chunks, 1 << 30),
    });
  });
});
