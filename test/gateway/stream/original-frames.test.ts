/** Unchanged frames keep their bytes, however long an interceptor holds them. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import type { ClientContext, StreamDecoder, StreamEncoder } from '../../../src/codecs/codec.ts';
import type { StreamEvent } from '../../../src/conversation/events.ts';
import type { Interceptor } from '../../../src/features/feature.ts';
import { Translator } from '../../../src/gateway/stream/translator.ts';
import type { SseFrame } from '../../../src/lib/bytes/sse.ts';

/** A toy protocol: a frame's data holds words, each a delta; `[end]` ends. */
const decoder: StreamDecoder = {
  push: ({ data }: SseFrame) =>
    (data ?? '')
      .split(' ')
      .filter((word) => word !== '')
      .map(
        (text): StreamEvent =>
          text === '[end]' ? { type: 'end' } : { type: 'delta', index: 0, text },
      ),
  end: () => [],
};
const encoder: StreamEncoder = {
  event: (event) => (event.type === 'delta' ? `<${event.text}>` : '<end>'),
  ping: () => ':',
  fail: () => '!',
};

/** Holds every event until `size` are there; hands the very events on, changed only by `change`. */
function holder(size: number, change: (text: string) => string): Interceptor {
  let held: StreamEvent[] = [];
  const out = (events: StreamEvent[]) =>
    events.map((event) => {
      if (event.type !== 'delta') return event;
      const text = change(event.text);
      return text === event.text ? event : { ...event, text };
    });
  return {
    event(event) {
      held.push(event);
      if (held.length < size) return [];
      const all = out(held);
      held = [];
      return all;
    },
    end() {
      const all = out(held);
      held = [];
      return all;
    },
  };
}

/** The same, but it holds words that begin with `q` until one that begins with `r`, or the end, comes. */
function holdingDecoder(): StreamDecoder {
  let held: StreamEvent[] = [];
  const release = () => {
    const all = held;
    held = [];
    return all;
  };
  return {
    push: (frame) =>
      decoder.push(frame).flatMap((event) => {
        const text = event.type === 'delta' ? event.text : '';
        if (text.startsWith('r')) return [...release(), event];
        if (!text.startsWith('q')) return [event];
        held.push(event);
        return [];
      }),
    end: release,
    get holds() {
      return held.length > 0;
    },
  };
}

function run(
  frames: readonly string[],
  interceptor: Interceptor,
  preserveBytes = true,
  own = decoder,
): string {
  const pipeline = new Translator({
    decoder: own,
    interceptors: [interceptor],
    client: { encoder, context: {} as ClientContext, fold: undefined },
    preserveBytes,
    continues: false,
  });
  let text = '';
  for (const frame of frames) text += Buffer.from(pipeline.push(Buffer.from(frame))).toString();
  return text + Buffer.from(pipeline.end()).toString();
}

const word = fc.stringMatching(/^[a-z]{1,4}$/);
const frame = fc.oneof(
  fc.array(word, { maxLength: 3 }).map((words) => `data:  ${words.join(' ')}\n\n`),
  fc.constant(': comment\r\n\r\n'),
);

describe('frames that an interceptor watches', () => {
  test('stay byte-identical however long it holds events back, when it changes none', () => {
    fc.assert(
      fc.property(fc.array(frame), fc.integer({ min: 1, max: 5 }), (frames, size) => {
        expect(
          run(
            frames,
            holder(size, (text) => text),
          ),
        ).toBe(frames.join(''));
      }),
    );
  });

  test('from the first changed event on, every event comes out once and in order', () => {
    fc.assert(
      fc.property(fc.array(frame), fc.integer({ min: 1, max: 4 }), (frames, size) => {
        const out = run(
          frames,
          holder(size, (text) => (text === 'a' ? 'CHANGED' : text)),
        );
        const words = (text: string) =>
          [...text.matchAll(/<(\w+)>|data: {2}([^\n]*)/g)]
            .flatMap(([, one, many]) => (one === undefined ? (many ?? '').split(' ') : [one]))
            .filter((w) => w !== '');
        const expected = words(frames.join('')).map((w) => (w === 'a' ? 'CHANGED' : w));
        expect(words(out)).toEqual(expected);
      }),
      { numRuns: 300 },
    );
  });

  describe('and of which the decoder holds something', () => {
    const held = fc.oneof(
      frame,
      fc.constantFrom('data:  q1\n\n', 'data:  a q2\n\n', 'data:  r1\n\n', 'data:  q3 r2 b\n\n'),
    );

    test('stay byte-identical when nothing changes', () => {
      fc.assert(
        fc.property(fc.array(held), fc.integer({ min: 1, max: 5 }), (frames, size) => {
          const same = holder(size, (text) => text);
          expect(run(frames, same, true, holdingDecoder())).toBe(frames.join(''));
        }),
        { numRuns: 300 },
      );
    });

    test('give every word once, as bytes or encoded, whichever word is changed', () => {
      const changed = fc.constantFrom('a', 'b', 'q1', 'q2', 'r1');
      fc.assert(
        fc.property(
          fc.array(held),
          fc.integer({ min: 1, max: 4 }),
          changed,
          (frames, size, word) => {
            const interceptor = holder(size, (text) => (text === word ? 'CHANGED' : text));
            const out = run(frames, interceptor, true, holdingDecoder());
            const words = (text: string) =>
              [...text.matchAll(/<(\w+)>|data: {2}([^\n]*)/g)]
                .flatMap(([, one, many]) => (one === undefined ? (many ?? '').split(' ') : [one]))
                .filter((w) => w !== '')
                .sort();
            const expected = words(frames.join('')).map((w) => (w === word ? 'CHANGED' : w));
            expect(words(out)).toEqual(expected.sort());
          },
        ),
        { numRuns: 500 },
      );
    });
  });

  test('an upstream that ends in the middle of a frame loses no byte', () => {
    expect(
      run(
        ['data:  a\n\n', ': hal'],
        holder(1, (text) => text),
      ),
    ).toBe('data:  a\n\n: hal');
  });

  test('another protocol gets no raw frame', () => {
    expect(
      run(
        ['data:  a b\n\n', ': c\n\n'],
        holder(1, (text) => text),
        false,
      ),
    ).toBe('<a><b>');
  });
});
