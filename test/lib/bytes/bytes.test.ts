/** Searches and changes in bytes. */

import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { splice } from '../../../src/lib/bytes/bytes.ts';

const bytes = (text: string) => new TextEncoder().encode(text);
const text = (value: Uint8Array) => new TextDecoder().decode(value);

test('a splice changes nothing else', () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), fc.string(), fc.string(), (a, b, c, d) => {
      const before = bytes(a + b + d);
      const start = bytes(a).length;
      const end = before.length - bytes(d).length;
      // Lone surrogates become U+FFFD in bytes.
      expect(text(splice(before, start, end, c))).toBe(
        text(bytes(a)) + text(bytes(c)) + text(bytes(d)),
      );
    }),
  );
});
