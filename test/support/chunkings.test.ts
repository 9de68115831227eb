/** No chunking loses, adds or reorders a byte, and each cuts as its name says. */

import { describe, expect, test } from 'bun:test';
import { bytewise, chunkings, eventwise, everySplit, random, textPieces } from './chunkings.ts';

const text = 'event: a\ndata: {"x":"Grüße 👋🏽"}\n\ndata: [DONE]\n\n: c\r\n\r\n';
const bytes = new TextEncoder().encode(text);
const glued = (chunks: Uint8Array[]) => Buffer.concat(chunks).toString();

describe('chunkings of a byte stream', () => {
  test.each(chunkings.map((one) => [one.name, one] as const))(
    '%s: the pieces are the bytes, none of them empty',
    (_name, one) => {
      for (const input of [bytes, new Uint8Array(0), bytes.subarray(0, 1)]) {
        const chunks = one.cut(input);
        expect(glued(chunks)).toBe(Buffer.from(input).toString());
        expect(chunks.every((chunk) => chunk.length > 0 || input.length === 0)).toBe(true);
      }
    },
  );

  test('every split gives one chunking per inner position, with two pieces each', () => {
    const splits = everySplit(bytes);
    expect(splits).toHaveLength(bytes.length - 1);
    for (const one of splits) {
      expect(one.cut(bytes)).toHaveLength(2);
      expect(glued(one.cut(bytes))).toBe(text);
    }
    expect(everySplit(bytes, 10).length).toBeLessThanOrEqual(10);
  });

  test('bytewise gives one piece per byte; eventwise one per blank line, and a rest', () => {
    expect(bytewise.cut(bytes)).toHaveLength(bytes.length);
    expect(eventwise.cut(bytes)).toHaveLength(3);
  });

  test('random pieces are equal for equal seeds and differ between seeds', () => {
    const lengths = (seed: number) =>
      random(seed)
        .cut(bytes)
        .map((chunk) => chunk.length);
    expect(lengths(5)).toEqual(lengths(5));
    expect(lengths(5)).not.toEqual(lengths(6));
    expect(textPieces(text, 4).join('')).toBe(text);
  });
});
