/** Huge error answers: handling their messages costs little beside reading them. */

import { describe, expect, test } from 'bun:test';
import { anthropicMessages } from '../../src/codecs/anthropic-messages/index.ts';
import type { Codec } from '../../src/codecs/codec.ts';
import { openaiChat } from '../../src/codecs/openai-chat/index.ts';
import { openaiResponses } from '../../src/codecs/openai-responses/index.ts';
import { boundedError } from '../../src/conversation/error-size.ts';
import { GatewayError } from '../../src/conversation/errors.ts';
import { type Json, parseJson } from '../../src/lib/json/json.ts';
import { Recorder } from '../../src/samples/record/recorder.ts';
import { exchange, play, scratch, told } from '../samples/record/support.ts';
import { expectSlices } from '../support/longest-turn.ts';
import { threadTime } from '../support/thread-time.ts';

const PROTOCOLS: readonly Codec[] = [openaiChat, openaiResponses, anthropicMessages];
const MAX = 262_144;

const long = (word: string) => word.repeat((24 * 2 ** 20) / word.length);
const ERRORS: Readonly<Record<string, () => Json>> = {
  'a message': () => ({ error: { message: `no room ${long('API_KEY=1 ')}` } }),
  'a message without a blank': () => ({ error: { message: long('x') } }),
  'a code and a type': () => ({
    error: { message: 'no room', code: long('z'), type: long('y'), param: long('p') },
  }),
  'details before the message': () => ({
    error: { metadata: Array.from({ length: 500_000 }, (_, i) => ({ i })), message: 'no room' },
  }),
  'names of members': () => ({ error: { message: 'no room', details: { [long('n')]: 1 } } }),
};

/** The CPU time of some work, in milliseconds. */
function timeOf(work: () => unknown): number {
  const before = threadTime();
  work();
  return threadTime() - before;
}

describe('an error of many megabytes in place of an answer', () => {
  for (const protocol of PROTOCOLS) {
    for (const [name, make] of Object.entries(ERRORS)) {
      test(`${protocol.name}: ${name}`, () => {
        const text = JSON.stringify({ type: 'error', ...(make() as object) });
        const value = parseJson(text);
        const { error } = protocol.digestReply(value);
        expect(error).toBeDefined();
        const { message, code = '', param = '', details = null } = error!;
        if (name !== 'a message without a blank') expect(message).toStartWith('no room');
        for (const text of [message, code, param]) expect(text.length).toBeLessThan(MAX + 10);
        expect(JSON.stringify(details).length).toBeLessThan(2 ** 20 + 200_000);
        let [parsing, digesting] = [20, Number.POSITIVE_INFINITY];
        for (let i = 0; i < 3 && digesting >= 2 * parsing; i++) {
          digesting = Math.min(
            digesting,
            timeOf(() => protocol.digestReply(value)),
          );
          if (digesting >= 2 * parsing)
            parsing = Math.max(
              parsing,
              timeOf(() => parseJson(text)),
            );
        }
        expect(digesting).toBeLessThan(2 * parsing);
      });
    }
  }
});

describe('the value of an error', () => {
  test('a small error value is used unchanged', () => {
    for (const message of [
      undefined,
      null,
      1,
      'words',
      [1, { a: [] }],
      { error: { message: 'm' } },
    ]) {
      expect(boundedError<Json | undefined>(message)).toBe(message);
    }
  });

  test('an error value is cut at a depth limit, and its prototype stays unset', () => {
    const deep = `${'{"a":'.repeat(3000)}1${'}'.repeat(3000)}`;
    expect(JSON.stringify(boundedError(parseJson(deep))).length).toBeLessThan(1000);
    const odd = boundedError(parseJson(`{"__proto__":{"x":"${long('w')}"}}`));
    expect(Object.keys(odd as object)).toEqual(['__proto__']);
  });
});

describe('a failed exchange of many megabytes is recorded without blocking the event loop', () => {
  const SIZE = 12 * 2 ** 20;
  const BEGINNING = 'data: {"choices":[{"delta":{"content":"';
  const fill = (before: string, word: string, behind = '') =>
    Buffer.from(before + word.repeat(SIZE / word.length) + behind);
  const BODIES: Readonly<Record<string, () => { answer?: Buffer; body?: Buffer; sse?: true }>> = {
    'JSON without an end': () => ({ answer: fill('{"content":"', 'x') }),
    'text full of credentials': () => ({ answer: fill('', 'API_KEY=1 ') }),
    'one event': () => ({ answer: fill(BEGINNING, 'API_KEY=1 ', '"}}]}\n\n'), sse: true }),
    'one event without an end': () => ({ answer: fill(BEGINNING, 'x'), sse: true }),
    comments: () => ({ answer: fill('', ': nothing\n\n'), sse: true }),
    'small events': () => ({ answer: fill('', `${BEGINNING}tiny"}}]}\n\n`), sse: true }),
    'a request': () => ({ body: fill('{"model":"m","input":"', 'x', '"}') }),
  };
  const ALL = Object.keys(BODIES).flatMap((name) => [
    [name, false] as const,
    [name, true] as const,
  ]);

  test.each(ALL)(
    '%s, blanked: %j',
    async (name, blank) => {
      const { answer = Buffer.from('{}'), body, sse = false } = BODIES[name]!();
      const chunks: Uint8Array[] = [];
      for (let at = 0; at < answer.length; at += 65_536)
        chunks.push(answer.subarray(at, at + 65_536));
      await expectSlices(name, async () => {
        const disk = scratch();
        const recorder = new Recorder({
          root: disk.root,
          mode: 'errors',
          ...(blank && { redact: ['texts', 'images'] }),
        });
        const recording = recorder.begin(exchange({ ...(body && { body }) }))!;
        play(recording, { sse, answer: chunks });
        recording.end(told({ status: 502, error: new GatewayError('upstream', 'no') }));
        await recorder.flush();
        const { written, held } = recorder.counters();
        await recorder.close();
        disk.remove();
        expect({ written, held }).toEqual({ written: 1, held: 0 });
      });
    },
    60_000,
  );
});
