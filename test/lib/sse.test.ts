/** Server-sent events read the same at every cut, and as the reference parser reads them. */

import { describe, expect, test } from 'bun:test';
import { createParser } from 'eventsource-parser';
import fc from 'fast-check';
import { type SseFrame, SseParser, sseComment, sseEvent } from '../../src/lib/sse.ts';

const bytes = (text: string) => new TextEncoder().encode(text);

function parse(chunks: readonly Uint8Array[]): SseFrame[] {
  const parser = new SseParser();
  const frames = chunks.flatMap((chunk) => parser.push(chunk));
  return [...frames, ...parser.end()];
}

const meaning = (frames: readonly SseFrame[]) =>
  frames.filter(({ data }) => data !== undefined).map(({ event, data }) => ({ event, data }));

/** The same bytes cut at the given places. */
function cut(whole: Uint8Array, at: readonly number[]): Uint8Array[] {
  const places = [...new Set(at.map((n) => n % (whole.length + 1)))].sort((a, b) => a - b);
  return [...places, whole.length].map((end, i) => whole.slice(places[i - 1] ?? 0, end));
}

const line = fc.constantFrom('\n', '\r\n', '\r');
const word = fc.stringMatching(/^[^\r\n\0]{0,12}$/);
const event = fc.record({
  name: fc.option(fc.stringMatching(/^[a-z.]{1,8}$/), { nil: undefined }),
  data: fc.array(word, { minLength: 1, maxLength: 3 }),
  comment: fc.boolean(),
  space: fc.boolean(),
});

const stream = fc.tuple(line, fc.array(event, { maxLength: 6 })).map(([nl, events]) =>
  events
    .map(({ name, data, comment, space }) => {
      const gap = space ? ' ' : '';
      const lines = [
        ...(comment ? [': ping'] : []),
        ...(name === undefined ? [] : [`event:${gap}${name}`]),
        // A leading space of the data itself would be taken for the optional one.
        ...data.map((text) => `data: ${text}`),
      ];
      return lines.map((text) => text + nl).join('') + nl;
    })
    .join(''),
);

describe('server-sent events', () => {
  test('means what the reference parser means, at every cut, with LF, CRLF and CR', () => {
    fc.assert(
      fc.property(stream, fc.array(fc.nat(), { maxLength: 8 }), (text, at) => {
        const expected: { event: string; data: string }[] = [];
        const oracle = createParser({
          onEvent: ({ event: name = '', data }) => expected.push({ event: name, data }),
        });
        oracle.feed(text);
        // A CR at the very end might be half of a CRLF: the oracle waits until it is told more.
        oracle.feed(': end\n\n');
        expect(meaning(parse(cut(bytes(text), at)))).toEqual(expected);
      }),
    );
  });

  test('one byte at a time gives the same frames with the same bytes', () => {
    fc.assert(
      fc.property(stream, (text) => {
        const whole = bytes(text);
        const single = parse([...whole].map((byte) => Uint8Array.of(byte)));
        expect(meaning(single)).toEqual(meaning(parse([whole])));
        expect(Buffer.concat(single.map(({ raw }) => raw))).toEqual(
          Buffer.concat(parse([whole]).map(({ raw }) => raw)),
        );
      }),
    );
  });

  test('the bytes of the frames are the bytes of the stream', () => {
    const text = ': hi\n\nevent: a\ndata: 1\n\ndata: ü\r\n\r\n';
    expect(Buffer.concat(parse([bytes(text)]).map(({ raw }) => raw)).toString()).toBe(text);
  });

  test('a last event without its blank line is not lost, half a comment is no event', () => {
    expect(meaning(parse([bytes('data: [DONE]')]))).toEqual([{ event: '', data: '[DONE]' }]);
    expect(parse([bytes(': half')])).toEqual([]);
  });

  test('what is written reads back', () => {
    const text = sseComment('x') + sseEvent('a', '{"b":1}') + sseEvent('', '{}');
    expect(meaning(parse([bytes(text)]))).toEqual([
      { event: 'a', data: '{"b":1}' },
      { event: '', data: '{}' },
    ]);
  });
});
