/** Chinese pages say the same as the English ones: the same headings, code and names in tables. */

import { describe, expect, test } from 'bun:test';
import { PAGES } from '../../src/manual/pages.ts';

/** English pages without a Chinese one. A page leaves this list with its translation; no new page joins it. */
const ENGLISH_ONLY = new Set([]);

/** Chinese pages that are a summary and say so. A page leaves this list when it is whole. */
const SUMMARIES = new Set(['scale-out']);

const named = (name: string) => PAGES.find((page) => page.name === name)!;

/** Code without its comments, which are translated. */
const withoutComments = (code: string) =>
  code
    .split('\n')
    .map((line) => line.replace(/(?:^|\s+)(?:(?:#|\/\/)\s.*|\/\*\*\s[^*]*\*\/)$/, ''))
    .filter((line) => line !== '')
    .join('\n');

/** What must be the same in both languages. */
function shapeOf(markdown: string) {
  const blocks = [...markdown.matchAll(/^```(\S*)\n([\s\S]*?)^```$/gm)];
  const text = markdown.replace(/^```[\s\S]*?^```$/gm, '');
  return {
    headings: [...text.matchAll(/^(#+) /gm)].map(([, marks]) => marks!.length),
    blocks: blocks.map(([, language, code]) => [language, withoutComments(code!)]),
    rows: [...text.matchAll(/^\| (.*?) \|/gm)].map(([, cell]) =>
      [...cell!.matchAll(/`[^`]+`/g)].map(([code]) => code),
    ),
    code: [...new Set([...text.matchAll(/`[^`\n]+`/g)].map(([code]) => code))].sort(),
  };
}

const english = PAGES.filter(({ language }) => language === 'en').map(({ name }) => name);
const translated = english.filter((name) => !ENGLISH_ONLY.has(name));

test('every English page has a Chinese one, except those on the list', () => {
  const there = (name: string) => PAGES.some((page) => page.name === `${name}.zh-CN`);
  expect(english.filter((name) => there(name) === ENGLISH_ONLY.has(name))).toEqual([]);
});

describe('a Chinese page is equal to the English one', () => {
  test.each(translated.filter((name) => !SUMMARIES.has(name)))('%s', (name) => {
    expect(shapeOf(named(`${name}.zh-CN`).text)).toEqual(shapeOf(named(name).text));
  });

  test.each([...SUMMARIES])('%s is still a summary, else it leaves the list', (name) => {
    expect(shapeOf(named(`${name}.zh-CN`).text)).not.toEqual(shapeOf(named(name).text));
  });
});
