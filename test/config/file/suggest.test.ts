/** Hints help or stay silent. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { distance, suggest } from '../../../src/config/file/suggest.ts';

describe('suggest', () => {
  test.each([
    ['protocl', 'protocol'],
    ['base-url', 'base_url'],
    ['baseUrl', 'base_url'],
    ['model', 'models'],
    ['apikeys', undefined],
    ['xyz', undefined],
    ['q', undefined],
    ['', undefined],
  ])('%s → %s', (written, wanted) => {
    expect(suggest(written, ['protocol', 'base_url', 'keys', 'models'])).toBe(wanted as string);
  });

  test('a word that is known is its own suggestion', () => {
    fc.assert(
      fc.property(fc.array(fc.stringMatching(/^[a-z]{2,12}$/), { minLength: 1 }), (words) => {
        expect(suggest(words[0]!, words)).toBe(words[0]!);
      }),
    );
  });
});

describe('distance', () => {
  test.each([
    ['kitten', 'sitting', 3],
    ['ab', 'ba', 1],
    ['', 'abc', 3],
  ])('%s, %s: %d', (a, b, wanted) => {
    expect(distance(a, b)).toBe(wanted);
  });

  test('is symmetric, and the limit changes no answer below it', () => {
    const word = fc.stringMatching(/^[abc]{0,7}$/);
    fc.assert(
      fc.property(word, word, fc.nat(7), (a, b, limit) => {
        const exact = distance(a, b);
        expect(distance(b, a)).toBe(exact);
        const limited = distance(a, b, limit);
        if (exact <= limit) expect(limited).toBe(exact);
        else expect(limited).toBeGreaterThan(limit);
      }),
    );
  });
});
