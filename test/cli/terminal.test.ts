/** Text for people: lines that fit, columns that line up, differences one can read, names one meant. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { lineDiff } from '../../src/cli/line-diff.ts';
import {
  createTerminal,
  definitions,
  fittingTable,
  prose,
  table,
  widthOf,
  wrap,
} from '../../src/cli/terminal.ts';

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
  const fit = (columns: number | undefined) =>
    fittingTable(rows, head, columns, { spare: ['NOTES', 'NAME'] });
  expect(fit(undefined)).toEqual(table(rows, head));
  expect(fit(200)).toEqual(table(rows, head));
  expect(fit(20)).toEqual(['ID  NAME', '1   some-model']);
  expect(fit(5)).toEqual(['ID', '1']);
  expect(fittingTable([['模型模型']], ['A'], 5, { spare: [] })).toEqual(['A', '模型…']);
});

test('a table cuts long cells before it leaves a column out, the longest first, and never an id', () => {
  const head = ['ID', 'MODEL', 'NOTES'];
  const rows = [
    ['req_1795596099045', 'a-model-of-a-very-long-name', 'one,two,three,four,five,six,seven'],
    ['req_1795596099018', 'short', ''],
  ];
  const narrower = { spare: ['NOTES', 'MODEL'], cut: { MODEL: 8, NOTES: 10 } };
  const whole = Math.max(...table(rows, head).map(widthOf));
  for (let columns = 20; columns < 120; columns++) {
    const lines = fittingTable(rows, head, columns, narrower);
    expect(Math.max(...lines.map(widthOf))).toBeLessThanOrEqual(columns);
    expect(lines[1]).toContain('req_1795596099045');
    expect(lines[0]!.includes('MODEL')).toBe(columns >= 17 + 2 + 8);
    expect(lines[0]!.includes('NOTES')).toBe(columns >= 17 + 2 + 8 + 2 + 10);
    if (columns >= whole) expect(lines).toEqual(table(rows, head));
  }
  expect(fittingTable(rows, head, 50, narrower)).toEqual([
    'ID                 MODEL           NOTES',
    'req_1795596099045  a-model-of-a-…  one,two,three,…',
    'req_1795596099018  short',
  ]);
});

test('sentences are wrapped on a terminal only', () => {
  const terminal = (tty: boolean) => createTerminal(() => {}, { colour: false, columns: 30, tty });
  const long = 'hopgate: there is nothing of this name here.\nTry another one.';
  expect(prose(long, terminal(false))).toEqual(long.split('\n'));
  expect(prose(long, terminal(true))).toEqual([
    'hopgate: there is nothing of',
    'this name here.',
    'Try another one.',
  ]);
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

test.each([false, true])('what others wrote cannot command the terminal, colours: %p', (colour) => {
  let written = '';
  const out = createTerminal(
    (text) => {
      written += text;
    },
    { colour },
  );
  const odd = ['\u009b', '\u202e', '\u001b', '\u0007', '\r', '\u2066', '\u2028', '\u007f'];
  const name = `x${odd.join('y')}2J`;
  out.line(name);
  out.line(out.paint('red', name));
  out.line(table([[name, 'b']], ['NAME', 'B']).join('\n'));
  for (const one of odd.slice(0, 2).concat(odd.slice(3))) expect(written).not.toContain(one);
  expect(written.split('\u001b').length - 1).toBe(colour ? 2 : 0);
  written = '';
  const json = JSON.stringify({ name });
  out.line(json);
  expect(JSON.parse(written)).toEqual(JSON.parse(json));
});
