/** Text for people: lines that fit, columns that line up, differences one can read, names one meant. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { lineDiff } from '../../src/cli/line-diff.ts';
import { definitions, fittingTable, table, widthOf, wrap } from '../../src/cli/terminal.ts';

test('wrap: no line is wider than asked unless one word is, and no word is lost', () => {
  fc.assert(
    fc.property(fc.lorem({ maxCount: 60 }), fc.integer({ min: 20, max: 80 }), (text, width) => {
      const lines = wrap(text, width, 4);
      for (const line of lines) {
        expect(widthOf(line) <= width || !line.trim().includes(' ')).toBe(true);
      }
      expect(lines.map((line) => line.trim()).join(' ')).toBe(text.replace(/\s+/g, ' ').trim());
    }),
  );
});

test('table: columns line up with wide characters and colours in them', () => {
  const red = '\u001b[31mred\u001b[39m';
  const rows = table(
    [
      ['模型', 'x'],
      [red, 'y'],
    ],
    ['A', 'B'],
  );
  expect(rows).toEqual(['A     B', '模型  x', `${red}   y`]);
});

test('a table fits its terminal by leaving columns out, and is whole where there is none', () => {
  const head = ['ID', 'NAME', 'NOTES'];
  const rows = [['1', 'some-model', 'orphaned_tool_use, tool_results_merged']];
  const fit = (columns: number | undefined) => fittingTable(rows, head, columns, ['NOTES', 'NAME']);
  expect(fit(undefined)).toEqual(table(rows, head));
  expect(fit(200)).toEqual(table(rows, head));
  expect(fit(20)).toEqual(['ID  NAME', '1   some-model']);
  expect(fit(5)).toEqual(['ID', '1']);
  expect(fittingTable([['模型模型']], ['A'], 5, [])).toEqual(['A', '模型…']);
});

test('texts of any length are compared in time', () => {
  const lines = (mark: string) => Array.from({ length: 20_000 }, (_, n) => `${mark}${n}`);
  const all = lineDiff(lines('a').join('\n'), lines('b').join('\n'));
  expect(all).toHaveLength(40_000);
});

test('definitions: a long term stands on its own line', () => {
  expect(
    definitions(
      [
        ['-a', 'one'],
        ['--a-very-long-option VALUE', 'two'],
      ],
      60,
      { termWidth: 10 },
    ),
  ).toEqual(['  -a          one', '  --a-very-long-option VALUE', '              two']);
});

describe('lineDiff', () => {
  test('changed lines with their surroundings, gaps marked', () => {
    const before = 'a\nb\nc\nd\ne\nf\ng\nh\n';
    const after = 'a\nB\nc\nd\ne\nf\ng\nh\ni\n';
    expect(lineDiff(before, after, 1).map(({ sign, text }) => sign + text)).toEqual([
      ' a',
      '-b',
      '+B',
      ' c',
      ' …',
      ' h',
      '+i',
    ]);
  });
  test('nothing changed: nothing', () => expect(lineDiff('a\n', 'a\n')).toEqual([]));
  test('with all context, - and + lines rebuild both texts', () => {
    const text = fc.array(fc.constantFrom('a', 'b', 'c', '')).map((lines) => lines.join('\n'));
    fc.assert(
      fc.property(text, text, (before, after) => {
        fc.pre(before !== after);
        const lines = lineDiff(before, after, 1000);
        const side = (sign: '+' | '-') =>
          lines.filter((line) => line.sign === ' ' || line.sign === sign).map((l) => l.text);
        const split = (whole: string) => (whole === '' ? [] : whole.replace(/\n$/, '').split('\n'));
        if (lines.length === 0) return;
        expect(side('-')).toEqual(split(before));
        expect(side('+')).toEqual(split(after));
      }),
    );
  });
});
