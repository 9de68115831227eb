/** The chart of turns: means by the turn, rows that add up, and a picture that shows every value where it belongs. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { sessionPairs } from '../../bench/session-traffic.ts';
import {
  byContender,
  CONTENDERS,
  meanTurns,
  PANEL_HEAD,
  type Panel,
  panelRows,
  spread,
  ticksTo,
  turnChart,
} from '../../bench/turn-chart.ts';

const rising = (turns: number, first: number, step: number) =>
  Array.from({ length: turns }, (_, i) => first + i * step);

const panel = (turns = 60, title = 'Messages onto Chat'): Panel => ({
  title,
  kilobytes: rising(turns, 100, 16),
  lines: {
    relay: rising(turns, 0.5, 0.02),
    before: rising(turns, 2, 0.1),
    now: rising(turns, 1, 0.02),
  },
  rest: { relay: 0.5, before: 2, now: 3 },
});

/** The points of a line as the picture draws them. */
function points(svg: string, name: string): [x: number, y: number][] {
  const path = new RegExp(`<path class="l ${name}" d="M([^"]*)"`).exec(svg)![1]!;
  return path.split('L').map((point) => point.split(' ').map(Number) as [number, number]);
}

/** Where a tick of the first panel's axis of milliseconds is written. */
const tickAt = (svg: string, tick: string) =>
  Number(new RegExp(`x="50" y="([\\d.]+)" text-anchor="end">${tick}<`).exec(svg)![1]) - 4;

describe('the means', () => {
  test('each turn is the mean over the sessions, whatever their order', () => {
    const sessions = [
      [1, 10, 100],
      [3, 20, 300],
      [5, 60, 200],
    ];
    expect(meanTurns(sessions)).toEqual([3, 30, 200]);
    expect(meanTurns(sessions.toReversed())).toEqual([3, 30, 200]);
  });

  test('sessions of different lengths are refused', () => {
    expect(() => meanTurns([[1, 2], [1]])).toThrow('different lengths');
    expect(() => meanTurns([[1], [1, 2]])).toThrow('different lengths');
  });

  test('the table has the first turn alone, then tens, the whole, the rest, and ratios by the relay', () => {
    const rows = panelRows(panel());
    expect(rows.map((row) => row[0])).toEqual(
      ['1', '2–10', '11–20', '21–30', '31–40', '41–50', '51–60'].concat('1–60', 'rest'),
    );
    for (const row of rows) expect(row).toHaveLength(PANEL_HEAD.length);
    expect(rows[0]).toEqual(['1', '100', '0.50', '2.00', '1.00', '4.00', '2.00']);
    expect(rows.at(-1)).toEqual(['rest', '–', '0.50', '2.00', '3.00', '4.00', '6.00']);
    expect(rows.at(-2)!.slice(1, 5)).toEqual(['572', '1.09', '4.95', '1.59']);
  });

  test('every turn is in one row, for any number of turns', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 130 }), (turns) => {
        const parts = panelRows(panel(turns))
          .slice(0, -2)
          .map((row) => row[0]!.split('–').map(Number));
        const seen = parts.flatMap(([from, to]) => rising((to ?? from!) - from! + 1, from!, 1));
        expect(seen).toEqual(rising(turns, 1, 1));
      }),
    );
  });
});

describe('the picture', () => {
  test('every turn of every line is a point at its value on the axis', () => {
    const one = panel();
    const svg = turnChart([one], 'about', 'foot');
    const [zero, two] = [tickAt(svg, '0'), tickAt(svg, '2')];
    for (const name of CONTENDERS) {
      const drawn = points(svg, name);
      expect(drawn).toHaveLength(60);
      for (const [i, [x, y]] of drawn.entries()) {
        expect(((zero - y) / (zero - two)) * 2).toBeCloseTo(one.lines[name][i]!, 1);
        if (i > 0) expect(x).toBeGreaterThan(drawn[i - 1]![0]);
      }
    }
  });

  test('panels share one scale', () => {
    const low = panel(60, 'low');
    const high = { ...panel(60, 'high'), lines: { ...low.lines, before: rising(60, 20, 1) } };
    const svg = turnChart([low, high], 'about', 'foot');
    const relays = svg.match(/<path class="l relay" d="[^"]*"/g)!;
    const heights = relays.map((path) => [...path.matchAll(/ ([\d.]+)(?=[L"])/g)].map((m) => m[1]));
    expect(heights).toHaveLength(2);
    expect(heights[0]).toEqual(heights[1]!);
  });

  test('nothing is drawn outside, with one panel or five, whatever turns cost', () => {
    for (const count of [1, 2, 5]) {
      const panels = Array.from({ length: count }, (_, i) => ({
        ...panel(60, `panel ${i}`),
        lines: byContender((name) => panel().lines[name].map((value) => value * 10 ** (count - 2))),
      }));
      const svg = turnChart(panels, 'about', 'foot');
      const [, width, height] = /viewBox="0 0 (\d+) (\d+)"/.exec(svg)!.map(Number);
      for (const [, x, y] of svg.matchAll(/[ML"](-?[\d.]+) (-?[\d.]+)(?=[L"])/g)) {
        expect(Number(x)).toBeWithin(0, width! + 1);
        expect(Number(y)).toBeWithin(0, height! + 1);
      }
      for (const [, x, y] of svg.matchAll(/<text class="\S+" x="(\S+)" y="(\S+)"/g)) {
        expect(Number(x)).toBeWithin(0, width!);
        expect(Number(y)).toBeWithin(0, height!);
      }
      expect(svg.match(/<path class="l /g)).toHaveLength(count * 3);
    }
  });

  test('words are escaped, in the title too', () => {
    const svg = turnChart([panel(3, 'a<b & c>d')], '<script>', 'x & y');
    expect(svg).toContain('>a&lt;b &amp; c&gt;d</text>');
    expect(svg).toContain('<title id="t">&lt;script&gt;</title>');
    expect(svg).toContain('>x &amp; y</text>');
  });

  test('every class that is drawn has a colour in light and in dark', () => {
    const svg = turnChart([panel()], 'about', 'foot');
    const [light, dark] = /<style>(.*)<\/style>/.exec(svg)![1]!.split('@media');
    expect(dark).toStartWith('(prefers-color-scheme:dark)');
    const classes = new Set([...svg.matchAll(/class="([^"]+)"/g)].flatMap((m) => m[1]!.split(' ')));
    // The width of a line and the text of a title are the same in both.
    for (const name of [...classes].filter((one) => one !== 'l' && one !== 'h')) {
      expect(light).toContain(`.${name}{`);
      expect(dark).toContain(`.${name}{`);
    }
  });

  test('ticks are round, few, and reach over the highest value', () => {
    expect(ticksTo(11.3)).toEqual([0, 2, 4, 6, 8, 10, 12]);
    expect(ticksTo(0.6)).toEqual([0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6]);
    fc.assert(
      fc.property(fc.double({ min: 1e-3, max: 1e5, noNaN: true }), (highest) => {
        const ticks = ticksTo(highest);
        expect(ticks.length).toBeWithin(4, 10);
        expect(ticks.at(-1)! * 1.000001).toBeGreaterThanOrEqual(highest);
        expect(ticks.at(-2)!).toBeLessThan(highest);
      }),
    );
  });

  test('names at the ends of lines that meet stand apart, in their order, above the axis', () => {
    expect(spread([10, 100, 200], 16, 300)).toEqual([10, 100, 200]);
    expect(spread([100, 101, 102], 16, 300)).toEqual([100, 116, 132]);
    expect(spread([298, 299, 300], 16, 300)).toEqual([268, 284, 300]);
  });
});

test('a pair that nobody speaks is refused by its name', () => {
  expect(sessionPairs(['messages>chat'])).toEqual([{ client: 'messages', upstream: 'chat' }]);
  expect(sessionPairs()).toHaveLength(16);
  expect(() => sessionPairs(['messages>chat', 'messages>grpc'])).toThrow(
    'unknown pair: messages>grpc',
  );
});
