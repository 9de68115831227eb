/** Full-text search: what is a word, and what comes first. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { fullText, searchWords } from '../../../src/lib/text/full-text.ts';

const items = [
  { title: 'Keys', text: 'Where API keys are set. 密钥设置在这里。' },
  { title: 'Routes', text: 'First match wins. 路由规则，先匹配者生效。' },
  { title: 'Limits', text: 'tool_rounds bounds the hops; a key is mentioned here.' },
];
const index = fullText(items);
const titles = (query: string, count = 9) => index.search(query, count).map(({ title }) => title);

describe('full text', () => {
  test('words, plurals, names with underscores', () => {
    expect(titles('key')).toEqual(['Keys', 'Limits']);
    expect(titles('keys', 1)).toEqual(['Keys']);
    expect(titles('rounds')).toEqual(['Limits']);
    expect(titles('TOOL_ROUNDS')).toEqual(['Limits']);
  });

  test('Chinese queries of two characters, of one, and inside longer runs', () => {
    expect(titles('密钥')).toEqual(['Keys']);
    expect(titles('路由')).toEqual(['Routes']);
    expect(titles('钥')).toEqual(['Keys']);
    expect(titles('规则匹配')[0]).toBe('Routes');
  });

  test('characters that only stand apart do not make a pair', () => {
    expect(titles('路钥')).toEqual([]);
  });

  test('Latin and Han in one run are separated', () => {
    expect(searchWords('设置API密钥')).toEqual(['设', '设置', '置', 'api', '密', '密钥', '钥']);
  });

  test('no items, no query: nothing', () => {
    expect(fullText([]).search('key', 3)).toEqual([]);
    expect(titles('')).toEqual([]);
    expect(titles('?!')).toEqual([]);
  });

  test('a text is found by any run of its own letters', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom('a', 'b', '中', '文', ' ', '_', '.') }),
        (text) => {
          const words = searchWords(text);
          const own = fullText([{ title: '', text }]);
          expect(own.search(text, 1).length).toBe(words.length > 0 ? 1 : 0);
        },
      ),
    );
  });
});
