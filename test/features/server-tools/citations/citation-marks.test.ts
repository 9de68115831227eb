/** Citation marks in text: found at every split, ignored where they are not citations. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import {
  CitationMarks,
  type CitedTextPiece,
} from '../../../../src/features/server-tools/citations/cited-text.ts';

const SOURCES = [1, 2, 3].map((n) => ({ n, url: `https://s.example/${n}`, title: `S${n}` }));
const source = (n: number) => SOURCES.find((one) => one.n === n);

/** The text with `«1,2»` at each citation; adjacent texts are joined. */
function read(pieces: readonly string[]): string {
  const marks = new CitationMarks(source);
  const out: CitedTextPiece[] = [];
  for (const piece of pieces) out.push(...marks.push(piece));
  out.push(...marks.end());
  return out
    .map((piece) =>
      piece.type === 'text'
        ? piece.text
        : `${piece.tight ? '' : piece.gap}«${piece.sources.map(({ n }) => n)}»`,
    )
    .join('');
}

describe('marks', () => {
  test.each([
    ['It rains [1].', 'It rains«1».'],
    ['It rains[1][2] today', 'It rains«1»«2» today'],
    ['Both [1, 3] and 【2】。', 'Both«1,3» and«2»。'],
    ['据报道[2]，下雨', '据报道«2»，下雨'],
    ['nothing [9] here [8].', 'nothing here.'],
    ['half [1, 9] known', 'half«1» known'],
    ['at the end [3]', 'at the end«3»'],
    ['a [1]b', 'a «1»b'],
  ])('%s', (text, reported) => expect(read([text])).toBe(reported));

  test.each([
    'a link [1](https://x.example)',
    'a definition\n[1]: https://x.example',
    'code `list[1]` stays',
    '```js\nconst a = b[1];\n```\nand after',
    'an index list[0]',
    'years [2024] and words [see] and [1 more]',
    'open at the end [1',
    'blanks at the end   ',
    'unclosed ` tick and a[',
  ])('no mark: %s', (text) => expect(read([text])).toBe(text));

  test('inline code ends with its line', () => {
    expect(read(['a ` tick\nand [1]'])).toBe('a ` tick\nand«1»');
  });

  test('every split of the text gives the same result', () => {
    const bit = fc.constantFrom(
      '[1]',
      '[2, 3]',
      '[9]',
      ' ',
      'word',
      '`',
      '```',
      '\n',
      '[',
      '](',
      '【1】',
      '.',
    );
    fc.assert(
      fc.property(
        fc.array(bit, { maxLength: 12 }),
        fc.array(fc.nat(60), { maxLength: 8 }),
        (bits, cuts) => {
          const text = bits.join('');
          const at = [...new Set(cuts.map((cut) => cut % (text.length + 1)))].sort((a, b) => a - b);
          const pieces = [0, ...at].map((from, i) => text.slice(from, at[i] ?? text.length));
          expect(read(pieces)).toBe(read([text]));
        },
      ),
    );
  });
});
