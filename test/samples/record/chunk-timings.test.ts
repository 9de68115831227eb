/** Times of a stream's chunks: in order, limited in number, and never later than the bytes arrived. */

import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { ChunkTimings } from '../../../src/samples/record/stage-body.ts';

const marksOf = (text: string) =>
  text
    .split(' ')
    .filter((mark) => mark !== '')
    .map((mark) => mark.split(':').map(Number) as [number, number]);

test('every time belongs to a chunk; the first one stays, and their number is limited', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.nat(50), fc.integer({ min: 1, max: 5000 })), { maxLength: 3000 }),
      (chunks) => {
        const pace = new ChunkTimings();
        const came = new Map<number, number>();
        let [ms, bytes] = [0, 0];
        for (const [wait, size] of chunks) {
          ms += wait;
          came.set(bytes, ms);
          pace.add(bytes, ms);
          bytes += size;
        }
        const marks = marksOf(pace.text);
        expect(marks.length).toBeLessThanOrEqual(400);
        for (const [time, at] of marks) expect(came.get(at)).toBe(time);
        expect(marks.map(([, at]) => at)).toEqual(marks.map(([, at]) => at).sort((a, b) => a - b));
        if (chunks.length > 1 && chunks.at(-1)![0] > 0) expect(marks[0]?.[1] ?? 0).toBe(0);
      },
    ),
    { numRuns: 100 },
  );
});

test('a body in one piece needs no times', () => {
  const pace = new ChunkTimings();
  expect(pace.text).toBe('');
  pace.add(0, 5);
  expect(pace.text).toBe('');
});
