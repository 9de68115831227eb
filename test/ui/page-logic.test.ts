/** Computations of the page: aligned diffs, steps of the stream tab, visible characters, figures, axes. */

import { describe, expect, test } from 'bun:test';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import fc from 'fast-check';
import type { Json } from '../../src/lib/json/json.ts';
import { diffJson } from '../../src/lib/json/json-diff.ts';
import { diffText } from '../../src/lib/text/text-diff.ts';
import type { EventPart, EventView, UiRow } from '../../src/ui/api/api.ts';
import { dayLabels, roundUp, ticks, timeTicks } from '../../src/ui/page/charts/scale.ts';
import { type Cell, type DiffRow, diffRows } from '../../src/ui/page/diff/diff-rows.ts';
import {
  eventName,
  eventText,
  spoken,
  stepsOf,
  type Tape,
  tapeOf,
} from '../../src/ui/page/exchange/tape.ts';
import {
  bytes,
  count,
  fromNow,
  millis,
  percent,
  short,
  usd,
  usdOfAxis,
} from '../../src/ui/page/kit/format.ts';
import { hides, pieces, plain } from '../../src/ui/page/kit/visible.ts';
import { statusLabel, toneOf } from '../../src/ui/page/list/status.ts';

test.each([
  [{ status: 200, stream: true, error: 'upstream' }, ['200', 'cut off (upstream)']],
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

/** Rows with every fold opened. */
const unfolded = (rows: readonly DiffRow[]): readonly DiffRow[] =>
  rows.flatMap((row) => row.folded?.() ?? [row]);

/** The value that one side of the diff shows, read back from its lines. */
function readBack(rows: readonly DiffRow[], side: 'left' | 'right'): Json {
  const cells = unfolded(rows).flatMap((row) => row[side] ?? []);
  let next = 0;
  const value = (): Json => {
    const cell: Cell = cells[next++]!;
    if (cell.open === undefined) return cell.value!;
    const list: Json[] = [];
    const members: Record<string, Json> = Object.create(null);
    while (cells[next]!.close === undefined) {
      const { key } = cells[next]!;
      const inner = value();
      if (cell.open === '[') list.push(inner);
      else members[key!] = inner;
    }
    next++;
    return cell.open === '[' ? list : members;
  };
  return value();
}

const plainJson = fc.jsonValue({ maxDepth: 4 }) as fc.Arbitrary<Json>;
/** Pairs with much in common, like bodies before and after a rule. */
const pairs = fc.oneof(
  fc.tuple(plainJson, plainJson),
  fc
    .tuple(
      fc.array(fc.record({ role: fc.constantFrom('user', 'tool'), content: plainJson })),
      fc.nat(),
      plainJson,
    )
    .map(([messages, at, other]) => {
      const changed = messages.flatMap((message, i) =>
        i === at % (messages.length + 1)
          ? [
              { ...message, content: other },
              { role: 'user', content: 1 },
            ]
          : [message],
      );
      return [
        { model: 'a', messages },
        { messages: changed.slice(at % 2), n: 1 },
      ] as unknown as [Json, Json];
    }),
);

describe('a diff as lines', () => {
  test('each side shows its whole value, whatever changed', () => {
    fc.assert(
      fc.property(pairs, ([a, b]) => {
        const rows = diffRows(
          a,
          b,
          diffJson(a, b).map((change) => ({ ...change, rules: [] })),
        );
        expect(JSON.stringify(readBack(rows, 'left'))).toBe(JSON.stringify(a));
        // Added members follow the others on this side; the diff decides their order.
        expect(readBack(rows, 'right')).toEqual(b);
      }),
      { numRuns: 400 },
    );
  });

  test('each change begins at one line, and only changes are marked', () => {
    fc.assert(
      fc.property(pairs, ([a, b]) => {
        const changes = diffJson(a, b).map((change) => ({ ...change, rules: [] }));
        const rows = diffRows(a, b, changes);
        expect(rows.flatMap(({ change }) => change ?? [])).toHaveLength(changes.length);
        if (changes.length === 0) expect(rows.every(({ mark }) => mark === 'same')).toBe(true);
      }),
      { numRuns: 400 },
    );
  });

  test('a removed element shifts nothing', () => {
    const a = { messages: ['one', 'two', 'three'] };
    const b = { messages: ['one', 'three'] };
    const rows = diffRows(
      a,
      b,
      diffJson(a, b).map((change) => ({ ...change, rules: ['gone'] })),
    );
    expect(
      rows.map(({ mark, left, right }) => [mark, left?.value, right?.value]).slice(2, 5),
    ).toEqual([
      ['same', 'one', 'one'],
      ['removed', 'two', undefined],
      ['same', 'three', 'three'],
    ]);
  });
});

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

const frame = (n: number, says: readonly EventPart[], at?: number): EventView => ({
  n,
  name: '',
  raw: { text: '{}' },
  says,
  ...(at !== undefined && { at }),
});
const word = (text: string): EventPart => ({ type: 'delta', block: 0, of: 'text', text });

describe('the steps of the stream tab', () => {
  const steps = (left: Tape, right: Tape) =>
    stepsOf(left, right).map((step) => [step.left, step.right]);

  test('without times, outgoing events follow the matching incoming ones', () => {
    const left = tapeOf([
      { stage: 'in', events: ['a', 'b', 'c'].map((text, n) => frame(n, [word(text)])) },
    ]);
    const right = tapeOf([
      { stage: 'out', events: [frame(0, [word('ab')]), frame(1, [word('c')])] },
    ]);
    expect(steps(left, right)).toEqual([
      [1, 0],
      [2, 0],
      [2, 1],
      [3, 1],
      [3, 2],
    ]);
  });

  test('with times, the times decide', () => {
    const left = tapeOf([
      { stage: 'in', events: [frame(0, [word('a')], 10), frame(1, [word('b')], 30)] },
    ]);
    const right = tapeOf([
      { stage: 'out', events: [frame(0, [word('a')], 20), frame(1, [word('b')], 40)] },
    ]);
    expect(steps(left, right)).toEqual([
      [1, 0],
      [1, 1],
      [2, 1],
      [2, 2],
    ]);
  });

  test('every event of both sides is one step, and no step goes back', () => {
    const tape = fc
      .array(
        fc.record({
          text: fc.string({ maxLength: 3 }),
          at: fc.option(fc.nat(50), { nil: undefined }),
        }),
      )
      .map((all) =>
        tapeOf([{ stage: 's', events: all.map(({ text, at }, n) => frame(n, [word(text)], at)) }]),
      );
    fc.assert(
      fc.property(tape, tape, (left, right) => {
        const all = stepsOf(left, right);
        expect(all).toHaveLength(left.events.length + right.events.length);
        let before = { left: 0, right: 0 };
        for (const step of all) {
          expect(step.left + step.right).toBe(before.left + before.right + 1);
          before = step;
        }
      }),
    );
  });

  test('an event without a name of its own does not say its type twice', () => {
    const [unnamed] = tapeOf([
      { stage: 's', events: [frame(0, [{ type: 'block-start', of: 'text', block: 0 }])] },
    ]).events;
    expect([eventName({ ...unnamed!, name: '' }), eventText({ ...unnamed!, name: '' })]).toEqual([
      'block-start',
      'text',
    ]);
    const named = { ...unnamed!, name: 'content_block_start' };
    expect(eventText(named)).toBe('block-start text');
  });

  test('output is separated by block and hop, and only answer text counts', () => {
    const call: EventPart[] = [
      { type: 'block-start', block: 0, of: 'tool-call', text: 'web_search' },
      { type: 'delta', block: 0, of: 'tool-call', text: '{}' },
    ];
    const tape = tapeOf([
      { stage: 'one', events: [frame(0, call)] },
      {
        stage: 'two',
        events: [
          frame(0, [word('High ')]),
          frame(1, [word('tide')]),
          frame(2, [{ type: 'error', text: 'lost' }]),
        ],
      },
    ]);
    expect(tape.events.map(({ textLength }) => textLength)).toEqual([0, 5, 9, 9]);
    expect(spoken(tape, 4)).toMatchObject([
      { of: 'tool-call', name: 'web_search', text: '{}' },
      { of: 'text', text: 'High tide' },
      { of: 'error', text: 'lost' },
    ]);
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

  test('overrides, isolates, zero widths, controls and lone surrogates have names', () => {
    expect(plain('a\u202eb\u2066c\u200bd\u0000e\u001bf\ufeffg\ud800h')).toBe(
      'a⟨U+202E⟩b⟨U+2066⟩c⟨U+200B⟩d⟨␀⟩e⟨␛⟩f⟨U+FEFF⟩g⟨U+D800⟩h',
    );
    expect(pieces('\u202e')[0]!.hidden).toBe('U+202E right-to-left override');
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
    expect([0.15000000000000002, 0.1, 0.05, 0].map(usdOfAxis)).toEqual([
      '$0.15',
      '$0.1',
      '$0.05',
      '$0',
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
    expect(keeps.map(([name]) => name)).toEqual(['kit/settings.ts']);
    const kept = sources.flatMap(([, text]) => [...text.matchAll(/keepSetting\('([a-z]+)'/g)]);
    expect(new Set(kept.map(([, name]) => name))).toEqual(
      new Set(['theme', 'language', 'density', 'columns', 'filters']),
    );
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
