/** Chinese pages say the same as the English ones: the same headings, code and names in tables. */

import { describe, expect, test } from 'bun:test';
import { PAGES } from '../../src/manual/pages.ts';

const named = (name: string) => PAGES.find((page) => page.name === name)!;

/** Code without its comments, which are translated. */
const withoutComments = (code: string) =>
  code
    .split('\n')
    .map((line) => line.replace(/(?:^|\s+)(?:(?:#|\/\/)\s.*|\/\*\*\s[^*]*\*\/)$/, ''))
    .filter((line) => line !== '')
    .join('\n');

/** What must be the same in both languages: also which notes have the mark of a loss. */
function shapeOf(markdown: string) {
  const blocks = [...markdown.matchAll(/^```(\S*)\n([\s\S]*?)^```$/gm)];
  const text = markdown.replace(/^```[\s\S]*?^```$/gm, '');
  return {
    headings: [...text.matchAll(/^(#+) /gm)].map(([, marks]) => marks!.length),
    marked: [...text.matchAll(/^### (\S+)\n\n▲ /gm)].map(([, name]) => name),
    blocks: blocks.map(([, language, code]) => [language, withoutComments(code!)]),
    rows: [...text.matchAll(/^\| (.*?) \|/gm)].map(([, cell]) =>
      [...cell!.matchAll(/`[^`]+`/g)].map(([code]) => code),
    ),
    code: [...new Set([...text.matchAll(/`[^`\n]+`/g)].map(([code]) => code))].sort(),
  };
}

const english = PAGES.filter(({ language }) => language === 'en').map(({ name }) => name);

test('every English page has a Chinese one', () => {
  const there = new Set(PAGES.map(({ name }) => name));
  expect(english.filter((name) => !there.has(`${name}.zh-CN`))).toEqual([]);
});

describe('a Chinese page is equal to the English one', () => {
  test.each(english)('%s', (name) => {
    expect(shapeOf(named(`${name}.zh-CN`).text)).toEqual(shapeOf(named(name).text));
  });
});
