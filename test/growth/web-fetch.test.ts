/** Hostile web pages are read in linear time, in steps that let other work run, and within the requested length. */

import { describe, expect, test } from 'bun:test';
import { htmlToMarkdown } from '../../src/features/server-tools/tools/web-fetch/html-to-markdown.ts';
import { pageText } from '../../src/features/server-tools/tools/web-fetch/page-text.ts';
import { readEntities } from '../../src/lib/http/html-entities.ts';
import { parseAddress, parseExceptions, urlHost } from '../../src/lib/http/public-address.ts';
import { expectLinear } from '../support/growth.ts';
import { expectSlices } from '../support/longest-turn.ts';

const repeated =
  (unit: string, before = '', after = '') =>
  (size: number) =>
    before + unit.repeat(Math.ceil(size / unit.length)) + after;

const PAGES: Readonly<Record<string, (size: number) => string>> = {
  'angle brackets': repeated('<'),
  'angle brackets in main': repeated('<', '<main>'),
  'angle brackets in a title': repeated('<', '<title>'),
  'a title without end': repeated('x', '<title>'),
  'open tags': repeated('<a'),
  'end tags': repeated('</'),
  'end tags of nothing': repeated('</div>'),
  'divisions that stay open': repeated('<div>'),
  'divisions, and end tags of others': (size) =>
    '<div>'.repeat(size / 16) + '<p></span></b>'.repeat(size / 16),
  'bold that stays open': repeated('<b>x'),
  'links that stay open': repeated('<a href=x>y'),
  'links with attributes': repeated('<a href="/x" id=1 class=b>y</a> '),
  'a list in a list': repeated('<ul><li>x'),
  'definitions in definitions': repeated('<dl><dd>x<dt>'),
  'quotations in quotations': repeated('<blockquote>x'),
  'items of one list': repeated('<li>x', '<ul>'),
  paragraphs: repeated('<p>x', '<main>'),
  'tables in tables': repeated('<table><tr><td>x'),
  'rows of one table': repeated('<tr><td>x<td>y|z', '<table>'),
  'cells of one row': repeated('<td>x', '<table><tr>'),
  'one cell': repeated('x | <br>', '<table><tr><td>'),
  'code in code': repeated('<pre><code>x\n'),
  'one block of code': repeated('x\n', '<pre>'),
  'backticks in code': repeated('`', '<pre>'),
  'blanks in a paragraph': repeated(' ', '<p>x', 'y'),
  'blank lines': repeated('\n \t'),
  'a comment without end': repeated('-', '<!--'),
  'many comments without end': repeated('<!--'),
  'attributes without end': repeated(' a', '<p'),
  'attributes that repeat': repeated(' a=b', '<p', '>'),
  'quotes without end': repeated('<a b="'),
  'equal signs': repeated('=', '<a '),
  slashes: repeated('/', '<a '),
  'character references': repeated('&amp;&#65;&'),
  ampersands: repeated('&'),
  'numbers behind ampersands': repeated('1', '&#'),
  scripts: repeated('<script>x</script>'),
  'scripts that stay open': repeated('<script>'),
  'ends of scripts that are none': repeated('</scriptx', '<script>'),
  'furniture that stays open': repeated('<nav>'),
  'furniture in paragraphs': repeated('<p hidden><div>x</p>'),
  mains: repeated('<main>x</main>'),
  images: repeated('<img src=x alt="  y ">'),
  'base addresses': repeated('<base href="x/">'),
  'headings that stay open': repeated('<h2>x'),
  'names of tags': repeated('x', '<'),
  'broken end': repeated('</table></div></p></li></b>', '<table><tr><td><div><b>'),
};

const bytes = (text: string) => new TextEncoder().encode(text);
const page = (text: string) => ({
  bytes: bytes(text),
  contentType: 'text/html',
  charset: undefined,
  url: 'https://a.example/b',
  truncated: false,
});

describe('a page of', () => {
  for (const [name, input] of Object.entries(PAGES)) {
    test(name, async () => {
      const run = (html: string) => htmlToMarkdown(html, 'https://a.example/b', 10_000_000);
      await expectLinear({ name, input, run, most: 512 * 1024 });
    }, 60_000);

    test(`${name} blocks no other work, and returns at most the requested length`, async () => {
      const hostile = page(input(4 * 1024 * 1024));
      await expectSlices(name, async () => {
        const read = await pageText(hostile, 40_000, AbortSignal.timeout(60_000));
        expect(read.title.length).toBeLessThanOrEqual(300);
        expect(read.text.length).toBeLessThan(400_000);
      });
    }, 30_000);
  }
});

const WORDS: Readonly<Record<string, (size: number) => string>> = {
  digits: repeated('1'),
  dots: repeated('.'),
  'dotted digits': repeated('1.'),
  colons: repeated(':'),
  'double colons': repeated('1::'),
  brackets: repeated('['),
  'percent signs': repeated('%2e', 'http://'),
  'a long name': repeated('a.', 'http://', '/'),
  'trailing dots': repeated('.', 'http://a'),
};

describe('an address of', () => {
  for (const [name, input] of Object.entries(WORDS)) {
    test(name, async () => {
      const run = (text: string) => {
        parseAddress(text);
        parseExceptions([text]);
        try {
          urlHost(text);
        } catch {
          // It may be refused.
        }
      };
      await expectLinear({ name, input, run, most: 1024 * 1024 });
    });
  }
});

describe('character references', () => {
  for (const unit of ['&', '&#', '&#x', '&amp', '&amp;', '&#1', '&aaaaaaaaa']) {
    test(unit, () => expectLinear({ name: unit, input: repeated(unit), run: readEntities }));
  }
});
