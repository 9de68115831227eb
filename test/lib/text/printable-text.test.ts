/** Foreign text in headers and on terminals: any script comes through, nothing is obeyed, nothing is endless. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import {
  containsControl,
  cutText,
  cutWords,
  encodeHeaderText,
  printableLine,
  printableLines,
} from '../../../src/lib/text/printable-text.ts';

const any = fc.string({ unit: 'binary' });
const units = fc
  .array(fc.integer({ min: 0, max: 0xffff }))
  .map((codes) => String.fromCharCode(...codes));

describe('a header', () => {
  test.each([
    ['glm/glm-4.7', 'glm/glm-4.7'],
    ['通义', '%E9%80%9A%E4%B9%89'],
    ['100%', '100%25'],
    ['a\r\nx: y', 'a%0D%0Ax: y'],
    ['\ud800', '%EF%BF%BD'],
  ])('carries %j as %s', (text, carried) => {
    expect(encodeHeaderText(text)).toBe(carried);
  });

  test('gives back whatever whole text it was given', () => {
    fc.assert(
      fc.property(any, (text) => {
        expect(decodeURIComponent(encodeHeaderText(text, 10_000))).toBe(text);
      }),
    );
  });

  test('takes every text, visible ASCII and short', () => {
    fc.assert(
      fc.property(units, (text) => {
        expect(encodeHeaderText(text)).toMatch(/^[\x20-\x7e]*$/);
        expect(new Headers({ x: encodeHeaderText(text) }).get('x')).toBe(
          encodeHeaderText(text).trim(),
        );
      }),
    );
    expect(encodeHeaderText('日'.repeat(400_000)).length).toBeLessThan(3000);
  });
});

describe('a line', () => {
  test('holds nothing that a terminal obeys or hides', () => {
    fc.assert(
      fc.property(units, (text) => {
        expect(printableLine(text, 100)).not.toMatch(
          /[\p{Cc}\p{Cs}\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/u,
        );
      }),
    );
    expect(printableLine('a\x1b]52;c;x\x07\u202e', 99)).toBe('a\\u{1b}]52;c;x\\u{7}\\u{202e}');
    expect(printableLine('通义千问 🙂', 99)).toBe('通义千问 🙂');
  });
});

describe('a cut', () => {
  test('halves no character', () => {
    expect(cutText('ab🙂', 3)).toBe('ab...');
    expect(cutText('ab', 2)).toBe('ab');
  });

  test('leaves no half of a word that may be a credential', () => {
    expect(cutWords(`words ${'k'.repeat(50)}`, 30)).toBe('words ...');
    expect(cutWords('short', 30)).toBe('short');
  });
});

test('names of any script hold no control character', () => {
  for (const name of ['通义千问', 'модель', '🙂', '👩‍💻', 'نموذج', 'a b']) {
    expect(containsControl(name)).toBe(false);
  }
  for (const name of ['a\nb', '\0', '\x1b', '\x7f', '\x9b', '\ud800', '\u2028']) {
    expect(containsControl(name)).toBe(true);
  }
});

test('a text of several lines keeps its lines and drives no terminal', () => {
  expect(printableLines('a\x1b[2Jb\rc\n\td\u202e\x9b')).toBe(
    'a\\u{1b}[2Jb\\u{d}c\n\td\\u{202e}\\u{9b}',
  );
  expect(printableLines('Grüße, 通义千问 🙂')).toBe('Grüße, 通义千问 🙂');
});
