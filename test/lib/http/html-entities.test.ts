/** References in text from pages and search engines: read once, and nothing read that is none. */

import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { readEntities } from '../../../src/lib/http/html-entities.ts';

test('names and numbers are characters, whatever their case', () => {
  expect(readEntities('a &lt; b &AMP;&amp; c&nbsp;&#8211;&#x2014; &copy;')).toBe('a < b && c –— ©');
});

test('a text is read once: what it shows of a reference stays', () => {
  expect(readEntities('&amp;lt;')).toBe('&lt;');
});

test('names that are not known stay, those of every object among them', () => {
  for (const name of ['&nosuch;', '&constructor;', '&toString;', '&;', '& amp;', '&amp']) {
    expect(readEntities(name)).toBe(name);
  }
});

test('numbers that are no character never make ill-formed text', () => {
  expect(readEntities('&#0;&#xd800;&#xDFFF;&#x110000;')).toBe('\ufffd\ufffd\ufffd\ufffd');
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 9_999_999 }), (code) => {
      const said = readEntities(`&#${code};`);
      expect(said.isWellFormed()).toBe(true);
      expect(said).not.toContain('\0');
    }),
  );
});
