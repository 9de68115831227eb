/** Computations of the page: diffs of texts, visible characters, figures, axes. */

import { describe, expect, test } from 'bun:test';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import fc from 'fast-check';
import { diffText } from '../../src/lib/text/text-diff.ts';
import type { UiRow } from '../../src/ui/api/api.ts';
import { dayLabels, roundUp, ticks, timeTicks } from '../../src/ui/page/charts/scale.ts';
import {
  bytes,
  count,
  fromNow,
  millis,
  onAxis,
  percent,
  short,
  usd,
  usdInColumn,
} from '../../src/ui/page/kit/format.ts';
import { hides, pieces, plain } from '../../src/ui/page/kit/visible.ts';
import { statusLabel, toneOf } from '../../src/ui/page/list/status.ts';

test.each([
  [{ status: 200, stream: true, error: 'upstream' }, ['200', 'cut off']],
  [{ status: 200, stream: true, error: 'timeout' }, ['200', 'cut off (timeout)']],
  [{ status: 200, stream: false, error: 'upstream' }, ['200', 'upstream']],
  [{ status: 502, stream: true, error: 'upstream' }, ['502', 'upstream']],
  [{ status: 200, stream: true, error: '' }, ['200', '']],
  [{ status: 499, stream: true, error: '' }, ['499', 'client left']],
])('the status of %j: %j', (row, label) => {
  expect(statusLabel({ state: 'done', failed: false, ...row } as UiRow)).toEqual(label as never);
});

test('a client that left is neither a failure nor a try that was made good', () => {
  const row = { state: 'done', status: 499, error: '', failed: false } as UiRow;
  expect(toneOf(row)).toBe('left');
  expect(toneOf({ ...row, failed: true })).toBe('warn');
  // A vendor that answered with this status.
  expect(toneOf({ ...row, error: 'upstream', failed: true })).toBe('bad');
});

const FOLDER = join(import.meta.dir, '../../src/ui/page');

describe('a diff of two texts', () => {
  test('its parts make up both texts', () => {
    const text = fc.oneof(
      fc.string(),
      fc.array(fc.constantFrom('tide ', 'high ', 'noon. ', '\n')).map((all) => all.join('')),
    );
    fc.assert(
      fc.property(text, text, (a, b) => {
        const parts = diffText(a, b);
        const side = (skip: string) =>
          parts
            .filter(({ kind }) => kind !== skip)
            .map((part) => part.text)
            .join('');
        expect(side('added')).toBe(a);
        expect(side('removed')).toBe(b);
      }),
      { numRuns: 400 },
    );
  });

  test('one changed word is one part', () => {
    expect(diffText('high tide at noon', 'low tide at noon')).toEqual([
      { kind: 'removed', text: 'high' },
      { kind: 'added', text: 'low' },
      { kind: 'same', text: ' tide at noon' },
    ]);
  });

  test('texts too long to compare word by word keep their common beginning and end', () => {
    const middle = (word: string) =>
      Array.from({ length: 3000 }, (_, i) => `${word}${i}`).join(' ');
    const parts = diffText(`begin ${middle('a')} end`, `begin ${middle('b')} end`);
    expect(parts.map(({ kind }) => kind)).toEqual(['same', 'removed', 'added', 'same']);
  });
});

describe('invisible characters', () => {
  test('shown text holds no invisible character; all others stay', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        for (const { text: piece, hidden } of pieces(text)) {
          expect(hides(piece)).toBe(false);
          if (hidden === undefined) expect(text).toContain(piece);
        }
        expect(hides(plain(text))).toBe(false);
      }),
    );
  });

  test('overrides, isolates, zero widths, controls and lone surrogates are shown by their codes', () => {
    expect(plain('a\u202eb\u2066c\u200bd\u0000e\u001bf\ufeffg\ud800h')).toBe(
      'a⟨U+202E⟩b⟨U+2066⟩c⟨U+200B⟩d⟨␀⟩e⟨␛⟩f⟨U+FEFF⟩g⟨U+D800⟩h',
    );
    expect(pieces('\u202e')[0]!.hidden).toBe('U+202E');
  });

  test('emoji, Persian, tabs and line ends stay', () => {
    for (const text of ['👩‍👩‍👧', 'می‌خواهم', 'a\tb\nc', 'é 漢字 𝔘'])
      expect(pieces(text)).toEqual([{ text }]);
    expect(plain('a\r\nb')).toBe('a\nb');
  });
});

describe('figures', () => {
  test('times, sizes and counts are short and the same everywhere', () => {
    expect([0.42, 9.96, 812, 4310, 59_960, 125_000, 7_260_000].map(millis)).toEqual([
      '0.4 ms',
      '10 ms',
      '812 ms',
      '4.31 s',
      '1 min 00 s',
      '2 min 05 s',
      '2 h 01 min',
    ]);
    expect(millis(null)).toBe('–');
    expect([312, 41_022, 5_200_000].map(bytes)).toEqual(['312 B', '41 KB', '5.2 MB']);
    expect([940, 12_345, 4_100_000].map(short)).toEqual(['940', '12.3k', '4.1M']);
    expect(count(1_234_567)).toBe('1\u202f234\u202f567');
    expect([0, 0.034, 0.62, 1].map(percent)).toEqual(['0 %', '3.4 %', '62 %', '100 %']);
    for (const [amount, text] of [
      [null, '–'],
      [0, '$0'],
      [0.0000421, '$0.000042'],
      [0.0002, '$0.00020'],
      // One below the other, amounts of a column have the same decimals.
      [0.0019, '$0.0019'],
      [0.002, '$0.0020'],
      [0.014, '$0.0140'],
      [1.274, '$1.27'],
      [1234.5, '$1235'],
    ] as const) {
      expect(usd(amount)).toBe(text);
    }
    const now = Date.parse('2026-11-22T10:00:00');
    const away = (days: number) => fromNow(now + days * 864e5, now);
    expect([-3, 2, 90, 1130, -400].map(away)).toEqual([
      '3 days ago',
      'in 2 days',
      'in 90 days',
      '2029-12-26',
      '2025-10-18',
    ]);
    expect([0.15000000000000002, 0.1, 0.05, 0].map(onAxis(usd))).toEqual([
      '$0.15',
      '$0.1',
      '$0.05',
      '$0',
    ]);
    expect([250_000, 1_250_000, 12_500, 0.75].map(onAxis(short))).toEqual([
      '250k',
      '1.25M',
      '12.5k',
      '0.75',
    ]);
    expect([0.25, 0.75, 1.5, 250].map(onAxis(millis))).toEqual([
      '0.25 ms',
      '0.75 ms',
      '1.5 ms',
      '250 ms',
    ]);
    expect([0.5, 0.25].map(onAxis(percent))).toEqual(['50 %', '25 %']);
  });

  test('amounts in a column have the same decimals, and what is less is told apart from nothing', () => {
    expect([null, 0, 0.00002, 0.00028, 0.0019, 0.0101].map(usdInColumn)).toEqual([
      '–',
      '$0',
      '<$0.0001',
      '$0.0003',
      '$0.0019',
      '$0.0101',
    ]);
  });
});

describe('axes', () => {
  const positive = fc.double({ min: 1e-6, max: 1e9, noNaN: true });

  test('ticks are round, in order, inside, and few', () => {
    fc.assert(
      fc.property(positive, (top) => {
        const all = ticks(0, top, 5);
        expect(all[0]).toBe(0);
        expect(all.at(-1)!).toBeLessThanOrEqual(top * 1.001);
        expect(all.length).toBeGreaterThan(2);
        expect(all.length).toBeLessThan(9);
      }),
    );
  });

  test('the top of an axis is above its values, but not far', () => {
    fc.assert(
      fc.property(positive, (value) => {
        const top = roundUp(value);
        expect(top).toBeGreaterThanOrEqual(value * 0.999999);
        expect(top).toBeLessThan(value * 1.7);
      }),
      // For a value this small, the difference to 1.5 was below a fixed tolerance.
      { examples: [[0.0000015000015000015003]] },
    );
  });

  test('a bar of a day or a month has the date of its own in UTC, wherever the page is', () => {
    const DAY = 86_400_000;
    const first = Date.parse('2026-11-20T00:00:00Z');
    const days = Array.from({ length: 7 }, (_, i) => first + i * DAY);
    const zone = process.env.TZ;
    try {
      for (const TZ of ['America/Los_Angeles', 'UTC', 'Asia/Tokyo']) {
        process.env.TZ = TZ;
        expect(dayLabels(days, DAY, 7).at(-1)).toEqual({ index: 6, text: '11-26' });
        expect(dayLabels(days, DAY, 3).map(({ index }) => index)).toEqual([0, 3, 6]);
        expect(dayLabels([first], 31 * DAY, 3)).toEqual([{ index: 0, text: '2026-11' }]);
      }
    } finally {
      if (zone === undefined) delete process.env.TZ;
      else process.env.TZ = zone;
    }
  });

  test('time ticks are full minutes, hours and days', () => {
    const from = Date.parse('2026-11-22T10:07:31');
    const minutes = timeTicks(from, from + 3_600_000, 6).map((time) => new Date(time).getMinutes());
    expect(minutes).toEqual([10, 20, 30, 40, 50, 0]);
    expect(timeTicks(from, from + 7 * 864e5, 7).map((time) => new Date(time).getHours())).toEqual(
      Array.from({ length: 7 }, () => 0),
    );
  });
});

describe('the sources of the page', () => {
  const files = readdirSync(FOLDER, { recursive: true }).map(String);
  const sources = files
    .filter((name) => /\.tsx?$/.test(name))
    .map((name) => [name, readFileSync(join(FOLDER, name), 'utf8')] as const);
  const isOwn = (name: string, from: string) =>
    from.startsWith('.') && files.includes(normalize(join(dirname(name), from)));

  // Plain functions over values, without which the page would have them a second time.
  const shared = (from: string) =>
    [
      'preact',
      'preact/hooks',
      '../../../conversation/agent-parts.ts',
      '../../../conversation/usage.ts',
      '../../../lib/json/json.ts',
      '../../../lib/json/pointer.ts',
      '../../../lib/text/amounts.ts',
      '../../../lib/text/quoted-words.ts',
      '../../../lib/text/text-diff.ts',
      '../../../samples/sample.ts',
      '../../../samples/store/row-order.ts',
    ].includes(from);

  test('the sources import only each other, Preact, plain functions that are named, and types from elsewhere', () => {
    const foreign = sources.flatMap(([name, text]) =>
      [...text.matchAll(/^(import|export)( type)?[^;]*? from '([^']+)';/gm)]
        .filter(([, , type, from]) => type === undefined && !isOwn(name, from!) && !shared(from!))
        .map(([line]) => `${name}: ${line}`),
    );
    expect(sources.length).toBeGreaterThan(20);
    expect(foreign).toEqual([]);
  });

  test('the sources turn no text into markup or code', () => {
    const risky =
      /innerHTML|outerHTML|insertAdjacentHTML|setHTML|document\.write|DOMParser|createContextualFragment|\beval\(|new Function|\.cookie/;
    expect(sources.filter(([, text]) => risky.test(text)).map(([name]) => name)).toEqual([]);
  });

  test('only choices of looks outlive the tab: one file keeps them, and no key comes near it', () => {
    const keeps = sources.filter(([, text]) => text.includes('localStorage'));
    expect(keeps.map(([name]) => name)).toEqual(['kit/language.ts']);
    const kept = sources.flatMap(([, text]) => [...text.matchAll(/keepSetting\('([a-z]+)'/g)]);
    expect(new Set(kept.map(([, name]) => name))).toEqual(new Set(['theme', 'language']));
  });

  test('every class of the styles is given to an element: no style is left behind', () => {
    const styles = files
      .filter((name) => name.endsWith('.css'))
      .map((name) => readFileSync(join(FOLDER, name), 'utf8'))
      .join('\n')
      .replace(/\/\*[\s\S]*?\*\/|^@import.*$/gm, '')
      .replace(/\{[^{}]*\}/g, '{}');
    const classes = new Set([...styles.matchAll(/\.([a-z][\w-]*)/g)].map(([, name]) => name!));
    const code = sources
      .map(([, text]) => text)
      .join('\n')
      .replace(/^\s*(?:\/\/|\/?\*).*$/gm, '');
    // Words of sentences are none: a list of classes has small letters alone.
    const wordsIn = (text: string) =>
      [...text.matchAll(/(['"])(.*?)\1/g), ...text.matchAll(/(`)([^`\n]*)`/g)]
        .map(([, , one]) => one!)
        .filter((one) => /^[a-z* ][\w* -]*$/.test(one))
        .flatMap((one) => one.split(' '));
    const words = [...wordsIn(code), ...wordsIn(code.replace(/\$\{[^{}`]*\}/g, '*'))];
    // The kinds of JSON values give the last one.
    const given = new Set([...words, 'boolean']);
    // `hue-*`; a beginning that is handed over is a word of its own: `err`.
    const built = words
      .filter((word) => /\*-\w|\w-\*/.test(word))
      .map((word) => new RegExp(`^${word.replaceAll('*', '.+')}$`));
    const left = [...classes].filter(
      (name) =>
        !given.has(name) &&
        !given.has(name.replace(/-\d$/, '')) &&
        !built.some((pattern) => pattern.test(name)),
    );
    expect(classes.size).toBeGreaterThan(200);
    expect(left).toEqual([]);
  });

  test('the page loads nothing from elsewhere', () => {
    const styles = files.filter((name) => /\.(css|html)$/.test(name));
    const texts = styles.map((name) => readFileSync(join(FOLDER, name), 'utf8')).join('\n');
    expect(texts).not.toMatch(/https?:|url\(|@font-face|\son[a-z]+=|style=/);
  });
});
