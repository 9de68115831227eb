/** The ends of a stream that goes by are kept, in bounded memory. */

import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { Tail } from '../../src/gateway/tail.ts';

const chunksOf = (whole: Buffer, size: number) =>
  Array.from({ length: Math.ceil(whole.length / size) }, (_, i) =>
    whole.subarray(i * size, (i + 1) * size),
  );

function keep(whole: Buffer, size: number, marks: string[] = []): readonly Uint8Array[] {
  const tail = new Tail(marks);
  for (const chunk of chunksOf(whole, size)) tail.push(chunk);
  return tail.parts;
}

test('a short stream is kept whole, a long one by its ends, at any chunk size', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 60_000 }),
      fc.integer({ min: 7, max: 20_000 }),
      (length, size) => {
        const whole = Buffer.from(Array.from({ length }, (_, i) => i % 251));
        const parts = keep(whole, size);
        const last = Buffer.from(parts.at(-1)!);
        expect(whole.subarray(0, parts[0]!.length).equals(Buffer.from(parts[0]!))).toBe(true);
        expect(whole.subarray(whole.length - last.length).equals(last)).toBe(true);
        if (length > 25_000) expect(last.length).toBeGreaterThanOrEqual(16 * 1024);
        expect(parts.reduce((sum, part) => sum + part.length, 0)).toBeLessThan(30_000 + 2 * size);
      },
    ),
    { numRuns: 50 },
  );
});

test('from a terminal mark on everything is kept, cut in the middle of the mark or not', () => {
  const mark = 'event: response.completed';
  const whole = Buffer.from(`${'a'.repeat(30_000)}\n\n${mark}\n${'b'.repeat(100_000)}`);
  for (const size of [1000, 1013, 4096, 5003, 30_010]) {
    const last = Buffer.from(keep(whole, size, [mark]).at(-1)!).toString();
    expect(last).toContain(`${'b'.repeat(100_000)}`);
    expect(last.includes(mark) || last.startsWith(mark.slice(-5))).toBe(true);
  }
});
