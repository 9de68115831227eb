/** The mock's replies: every text delta holds the mark once, and the timestamp goes into its slot. */

import { describe, expect, test } from 'bun:test';
import {
  burst,
  type Dialect,
  EVENT_MARK,
  json,
  pacedTemplates,
  STAMP_DIGITS,
} from '../../bench/replies.ts';
import { median, percentile, slope } from '../../bench/statistics.ts';

const count = (bytes: Buffer) => bytes.toString().split(EVENT_MARK).length - 1;

describe('the mock replies', () => {
  for (const dialect of ['chat', 'messages'] as const) {
    test(`${dialect}: marks equal text deltas, so a lost event is noticed`, () => {
      expect(count(burst(dialect, 'm', 100))).toBe(100);
      expect(count(burst(dialect, 'm', 0))).toBe(0);
      expect(count(json(dialect, 'm'))).toBe(0);
    });
  }

  for (const dialect of ['chat', 'messages', 'responses'] as Dialect[]) {
    test(`${dialect}: a timestamp in its slot follows the mark, and the JSON stays valid`, () => {
      const [template] = pacedTemplates(dialect, 'm', 1);
      const bytes = Buffer.from(template!.bytes);
      const stamp = '1234567890123456'.slice(0, STAMP_DIGITS);
      bytes.write(stamp, template!.hole, 'latin1');
      const text = bytes.toString();
      expect(text).toContain(EVENT_MARK + stamp);
      const data = /data: (.*)\n\n/.exec(text)?.[1] ?? '';
      expect(JSON.stringify(JSON.parse(data))).toContain(stamp);
      const [size] = text.split('\r\n');
      expect(Number.parseInt(size!, 16)).toBe(bytes.length - size!.length - 4);
    });
  }
});

describe('statistics', () => {
  test('the median of an even count is the mean of the middle two, in any order', () => {
    expect(median([9, 1, 3, 5])).toBe(4);
    expect(median([2, 100, 1])).toBe(2);
    expect(median([])).toBeNaN();
  });

  test('percentiles take the nearest rank and never read past the end', () => {
    const values = Float64Array.from({ length: 100 }, (_, i) => i + 1);
    expect(percentile(values, 0.5)).toBe(50);
    expect(percentile(values, 0.99)).toBe(99);
    expect(percentile(values, 1)).toBe(100);
    expect(percentile([], 0.5)).toBe(0);
  });

  test('a slope is the growth per step; noise around a level has none', () => {
    expect(slope([1, 3, 5, 7])).toBeCloseTo(2);
    expect(slope([5, 5, 5])).toBe(0);
    expect(slope([4])).toBe(0);
  });
});
