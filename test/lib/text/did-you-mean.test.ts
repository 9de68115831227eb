/** "Did you mean": a misspelt word finds the one that was meant, any other word finds none. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { editDistance, suggest } from '../../../src/lib/text/did-you-mean.ts';

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

  test.each([
    ['srve', 'serve'],
    ['chekc', 'check'],
    ['Doctor', 'doctor'],
    ['model', 'models'],
    ['ver', 'version'],
    ['banana', undefined],
    ['x', undefined],
  ])('command %s → %s', (typed, wanted) => {
    const names = ['serve', 'init', 'check', 'doctor', 'models', 'setup', 'version'];
    expect(suggest(typed, names)).toBe(wanted as string);
  });

  test('a very long text gets no suggestion and costs no comparison', () => {
    const long = 'a'.repeat(1024 * 1024);
    expect(suggest(long, ['serve', long])).toBeUndefined();
  });

  test('a word that is known is its own suggestion', () => {
    fc.assert(
      fc.property(fc.array(fc.stringMatching(/^[a-z]{2,12}$/), { minLength: 1 }), (words) => {
        expect(suggest(words[0]!, words)).toBe(words[0]!);
      }),
    );
  });
});

describe('editDistance', () => {
  test.each([
    ['kitten', 'sitting', 3],
    ['ab', 'ba', 1],
    ['', 'abc', 3],
  ])('%s, %s: %d', (a, b, wanted) => {
    expect(editDistance(a, b)).toBe(wanted);
  });

  test('is symmetric, and the limit changes no answer below it', () => {
    const word = fc.stringMatching(/^[abc]{0,7}$/);
    fc.assert(
      fc.property(word, word, fc.nat(7), (a, b, limit) => {
        const exact = editDistance(a, b);
        expect(editDistance(b, a)).toBe(exact);
        const limited = editDistance(a, b, limit);
        if (exact <= limit) expect(limited).toBe(exact);
        else expect(limited).toBeGreaterThan(limit);
      }),
    );
  });
});
