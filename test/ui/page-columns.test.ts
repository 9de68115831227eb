/** Which columns of the list a width holds. */

import { describe, expect, test } from 'bun:test';
import { COLUMNS, type Column, fitting, widthsOf } from '../../src/ui/page/list/columns.ts';

const names = (columns: readonly Column[]) => columns.map(({ name }) => name);

/** Pixels that columns take at least: 12 between two of them, 14 at both ends. */
const least = (columns: readonly Column[]) => {
  const widths = widthsOf(columns)
    .match(/\d+(?=px)/g)!
    .map(Number);
  return widths.reduce((sum, width) => sum + width + 12, 28 - 12);
};

describe('the columns of the list', () => {
  test('from the least width on, no row is wider than its window', () => {
    for (let width = least(fitting(0)); width <= 2000; width++) {
      expect(least(fitting(width))).toBeLessThanOrEqual(width);
    }
  });

  test('a wider window shows what a narrower one shows, and at last all', () => {
    let before = names(fitting(0));
    for (let width = 0; width <= 2000; width++) {
      const now = names(fitting(width));
      expect(now).toEqual(expect.arrayContaining(before));
      before = now;
    }
    expect(before).toEqual(names(COLUMNS));
  });

  test('a column comes as soon as there is room for it', () => {
    let before = fitting(0).length;
    for (let width = least(fitting(0)); width <= 2000; width++) {
      const fits = fitting(width);
      // Those that are rarely read leave the others room.
      if (fits.length > before) expect([0, 400]).toContain(width - least(fits));
      before = fits.length;
    }
  });

  test('the narrowest window shows what counts most, in the order of the columns', () => {
    const left = names(fitting(0));
    expect(left).toEqual(names(COLUMNS).filter((name) => left.includes(name)));
    const kept = ['time', 'status', 'route', 'tokens', 'cost', 'total'];
    expect(left).toEqual(expect.arrayContaining(kept));
  });
});
