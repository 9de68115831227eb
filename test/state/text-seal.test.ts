/** The seal of texts in engines: what it hides, what it refuses, and how its secret is changed. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { textSeal } from '../../src/state/text-seal.ts';

const OLD = 'an old secret of thirty-two characters';
const NEW = 'a new secret of thirty-two characters!';
const bytes = fc.uint8Array({ maxLength: 300 });

describe('texts in engines', () => {
  test.each([[[]], [[NEW]], [[NEW, OLD]]])('come back as they went, with %p', (secrets) => {
    const seal = textSeal(secrets);
    fc.assert(
      fc.property(bytes, fc.string(), (plain, place) => {
        expect(seal.open(seal.seal(plain, place), place)).toEqual(Buffer.from(plain));
      }),
    );
  });

  test('cannot be read in the engine, and are never stored twice alike', () => {
    const seal = textSeal([NEW]);
    const stored = Buffer.from(seal.seal(Buffer.from('my dog is called Rex'), 'a'));
    expect(stored.includes('Rex')).toBe(false);
    expect(stored.equals(Buffer.from(seal.seal(Buffer.from('my dog is called Rex'), 'a')))).toBe(
      false,
    );
  });

  test('of another place, damaged, cut or of a forgotten secret are not opened', () => {
    const seal = textSeal([NEW]);
    const stored = seal.seal(Buffer.from('text'), 'owner a');
    expect(seal.open(stored, 'owner b')).toBeUndefined();
    expect(textSeal([OLD]).open(stored, 'owner a')).toBeUndefined();
    expect(textSeal([]).open(stored, 'owner a')).toBeUndefined();
    for (let at = 0; at < stored.length; at++) {
      const damaged = Uint8Array.from(stored);
      damaged[at]! ^= 1;
      // The first byte turned into that of a text which is not sealed would be another matter: 1 becomes 0.
      if (at > 0) expect(seal.open(damaged, 'owner a')).toBeUndefined();
      expect(seal.open(stored.subarray(0, at), 'owner a')).toBeUndefined();
    }
  });

  test('what an old secret sealed opens beside the new one, and without any secret it was stored plain', () => {
    const stored = textSeal([OLD]).seal(Buffer.from('text'), 'a');
    expect(textSeal([NEW, OLD]).open(stored, 'a')).toEqual(Buffer.from('text'));
    const plain = textSeal([]).seal(Buffer.from('text'), 'a');
    expect(textSeal([NEW]).open(plain, 'a')).toEqual(Buffer.from('text'));
  });

  test('blind words are the same for the same word and place only', () => {
    const seal = textSeal([NEW, OLD]);
    expect(seal.blind('dog', 'a')).toBe(textSeal([NEW]).blind('dog', 'a'));
    const others = [
      seal.blind('dog', 'b'),
      seal.blind('cat', 'a'),
      textSeal([OLD]).blind('dog', 'a'),
    ];
    expect(new Set([seal.blind('dog', 'a'), ...others]).size).toBe(4);
    expect(textSeal([]).blind('dog', 'a')).toBe('dog');
  });
});
