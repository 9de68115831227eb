/** Server-sent events read the same at every cut, and as the reference parser reads them. */

import { describe, expect, test } from 'bun:test';
import { createParser } from 'eventsource-parser';
import fc from 'fast-check';
import { type SseFrame, SseParser, sseComment, sseEvent } from '../../../src/lib/bytes/sse.ts';

const bytes = (text: string) => new TextEncoder().encode(text);

function parse(chunks: readonly Uint8Array[]): SseFrame[] {
  const parser = new SseParser();
  const frames = chunks.flatMap((chunk) => parser.push(chunk));
  return [...frames, ...parser.end()];
}

/** What the frames came from, joined. */
const bytesOf = (frames: readonly SseFrame[]) =>
  Buffer.concat(frames.map((one) => one.bytes.subarray(one.from, one.to)));

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
        // A CR at the very end might be half of a CRLF: the oracle waits for more.
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
        expect(bytesOf(single)).toEqual(bytesOf(parse([whole])));
      }),
    );
  });

  for (const ends of ['\n', '\r\n', '\r', '\n and then \r\n', '\n and then \r']) {
    test(`a long chunk whose lines end in ${JSON.stringify(ends)} means the same cut into pieces`, () => {
      const [first = '', then = first] = ends.split(' and then ');
      // A search goes on at multiples of 8 KB: blank lines stand before, on and behind them.
      for (let before = 8180; before < 8200; before++) {
        const texts = [before, 10, 8150, 3, 20_000].map((size) => 'x'.repeat(size));
        const text = texts
          .map((data, i) => `data: ${data}${(i < 2 ? first : then).repeat(2)}`)
          .join('');
        const whole = bytes(text);
        const pieces = cut(whole, [1, 8191, 8192, 8193, 8200, 16_384]);
        expect(meaning(parse([whole]))).toEqual(texts.map((data) => ({ event: '', data })));
        expect(bytesOf(parse([whole])).toString()).toBe(text);
        expect(meaning(parse(pieces))).toEqual(meaning(parse([whole])));
      }
    });
  }

  const frame = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 6 }).map((data) => sseEvent('', JSON.stringify(data))),
    fc.constantFrom(
      ': note\n\n',
      'event: a\ndata: 漢字\n\n',
      'data: 1\r\n\r\n',
      '\ufeffdata: 1\n\n',
    ),
  );

  test('the bytes of the frames are the bytes of the stream, each with its own, whatever the letters', () => {
    fc.assert(
      fc.property(fc.array(frame, { minLength: 1 }), fc.nat(), (parts, at) => {
        const text = parts.join('');
        const frames = parse(cut(bytes(text), [at % (text.length + 1)]));
        expect(bytesOf(frames).toString()).toBe(text);
        expect(frames.map((one) => bytesOf([one]).toString())).toEqual(parts);
      }),
    );
  });

  test('a reader that takes runs of frames gets every byte once and in order', () => {
    fc.assert(
      fc.property(
        fc.array(frame, { minLength: 1 }),
        fc.nat(),
        fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 1, maxLength: 6 }),
        (parts, at, lengths) => {
          const text = parts.join('');
          const parser = new SseParser();
          const seen: SseFrame[] = [];
          let asked = 0;
          let runs = 0;
          const reader = {
            frame: (one: SseFrame) => seen.push(one),
            run(frames: string, start: number) {
              let end = start;
              for (let left = lengths[asked++ % lengths.length]!; left > 0; left--) {
                end = Math.max(end, frames.indexOf('\n\n', end) + 2);
              }
              if (end > start) runs++;
              return end;
            },
          };
          for (const chunk of cut(bytes(text), [at % (text.length + 1)]))
            parser.read(chunk, reader);
          seen.push(...parser.end());
          expect(bytesOf(seen).toString()).toBe(text);
          // What a run holds is not taken apart.
          expect(seen.filter(({ data }) => data === undefined).length).toBeGreaterThanOrEqual(runs);
        },
      ),
    );
  });

  test('a reader that throws leaves nothing behind of the chunk it was reading', () => {
    const parser = new SseParser();
    const reader = {
      frame() {
        throw new Error('broken');
      },
    };
    expect(() => parser.read(bytes('data: 1\n\ndata: 2\n\ndata: 3'), reader)).toThrow('broken');
    expect(meaning(parser.end())).toEqual([{ event: '', data: '3' }]);
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

test('an odd number of line feeds between events ends, and no byte is lost', () => {
  for (const text of [
    'data: x\n\n\ndata: y\n\n',
    'data: é\n\n\n\n\ndata: y\n\n\n',
    '\n\n\ndata: z\n\n',
  ]) {
    for (const raw of [{}, { raw: false } as const]) {
      const parser = new SseParser(raw);
      const frames = [...parser.push(Buffer.from(text))];
      const rest = parser.pending ?? new Uint8Array(0);
      expect(frames.flatMap(({ data }) => data ?? [])).toEqual(text.match(/(?<=data: )./g) ?? []);
      if ('raw' in raw) continue;
      const pieces = frames.map(({ bytes, from, to }) => bytes.subarray(from, to));
      expect(Buffer.concat([...pieces, rest]).toString()).toBe(text);
    }
  }
});
