/** Which columns of the list a width holds. */

import { describe, expect, test } from 'bun:test';
import { COLUMNS, fitting, type Look, widthsOf } from '../../src/ui/page/list/columns.ts';

const EVERYTHING: Look = { columns: COLUMNS, compact: false };
const USUAL: Look = { columns: COLUMNS.filter(({ extra }) => extra !== true), compact: false };
const names = ({ columns }: Look) => columns.map(({ name }) => name);

/** Pixels that a look takes at least: its columns, 12 between two of them, 14 at both ends. */
const least = (look: Look) => {
  const columns = widthsOf(look)
    .match(/\d+(?=px)/g)!
    .map(Number);
  return columns.reduce((sum, width) => sum + width + 12, 28 - 12);
};

describe('the columns of the list', () => {
  for (const [kind, look] of [
    ['usual', USUAL],
    ['all', EVERYTHING],
    ['compact', { ...EVERYTHING, compact: true }],
  ] as const) {
    test(`${kind} columns: from the least width on, no row is wider than its window`, () => {
      const fixed = fitting(look, 0);
      for (let width = least(fixed); width <= 2000; width++) {
        const fits = fitting(look, width);
        expect(least(fits)).toBeLessThanOrEqual(width);
      }
    });

    test(`${kind} columns: a wider window shows what a narrower one shows, and at last all`, () => {
      let before = names(fitting(look, 0));
      for (let width = 0; width <= 2000; width++) {
        const now = names(fitting(look, width));
        expect(now).toEqual(expect.arrayContaining(before));
        before = now;
      }
      expect(before).toEqual(names(look));
    });

    test(`${kind} columns: a column comes as soon as there is room for it`, () => {
      let before = names(fitting(look, 0)).length;
      for (let width = least(fitting(look, 0)); width <= 2000; width++) {
        const fits = fitting(look, width);
        if (names(fits).length > before) expect(least(fits)).toBe(width);
        before = names(fits).length;
      }
    });
  }

  test('the fixed columns and the cost stay in the narrowest window, in their order', () => {
    const left = names(fitting(EVERYTHING, 0));
    const fixed = COLUMNS.filter((one) => one.fixed === true).map(({ name }) => name);
    expect(left).toEqual(names(EVERYTHING).filter((name) => left.includes(name)));
    expect(left).toEqual(expect.arrayContaining([...fixed, 'cost', 'tokens']));
  });
});
