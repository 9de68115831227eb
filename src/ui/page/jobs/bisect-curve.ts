/** The chart of a bisection: size of the smallest failing request by number of probes. */

import type { BisectProbe } from '../../api/api.ts';
import { ticks } from '../charts/scale.ts';
import { h, s } from '../kit/dom.ts';
import { bytes, count } from '../kit/format.ts';

const WIDTH = 720;
const HEIGHT = 200;
const LEFT = 56;
const BOTTOM = 24;
const TOP = 10;

/** Bytes of the smallest request that failed the same way, after each probe; 0 before the first failure. */
export function smallestSoFar(probes: readonly BisectProbe[]): readonly number[] {
  let least = 0;
  return probes.map(({ verdict, bytes: size }) => {
    if (verdict === 'same' && (least === 0 || size < least)) least = size;
    return least;
  });
}

export function bisectCurve(probes: readonly BisectProbe[]): HTMLElement {
  const most = Math.max(10, ...probes.map(({ spent }) => spent));
  const best = smallestSoFar(probes);
  const sizes = probes.map((probe) => probe.bytes).filter((size) => size > 0);
  // On a logarithmic axis every halving looks the same.
  const high = Math.ceil(Math.log10(Math.max(...sizes, 10)) * 2) / 2;
  const low = Math.min(high - 1, Math.floor(Math.log10(Math.max(1, Math.min(...sizes))) * 2) / 2);
  const x = (spent: number) => LEFT + (spent / most) * (WIDTH - LEFT - 12);
  const y = (size: number) =>
    TOP + ((high - Math.log10(Math.max(1, size))) / (high - low)) * (HEIGHT - TOP - BOTTOM);
  const first = best.findIndex((size) => size > 0);
  const path = probes
    .map(({ spent }, i) => {
      if (first < 0 || i < first) return '';
      return i === first ? `M${x(spent)} ${y(best[i]!)}` : `H${x(spent)} V${y(best[i]!)}`;
    })
    .join(' ');
  const decades = Array.from(
    { length: Math.floor(high) - Math.ceil(low) + 1 },
    (_, i) => 10 ** (Math.ceil(low) + i),
  );
  const last = probes.at(-1)!;
  return h(
    'figure',
    { class: 'curve' },
    h('figcaption', null, 'Size of the smallest request that fails'),
    s(
      'svg',
      {
        viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
        role: 'img',
        'aria-label': `From ${bytes(best[Math.max(0, first)]!)} down to ${bytes(best.at(-1)!)} in ${count(last.spent)} requests`,
      },
      decades.map((size) => [
        s('line', { class: 'grid', x1: LEFT, x2: WIDTH - 12, y1: y(size), y2: y(size) }),
        s(
          'text',
          { class: 'tick-text', x: LEFT - 8, y: y(size) + 4, 'text-anchor': 'end' },
          bytes(size),
        ),
      ]),
      ticks(0, most, 8)
        .filter(Number.isInteger)
        .map((spent) =>
          s(
            'text',
            { class: 'tick-text', x: x(spent), y: HEIGHT - 6, 'text-anchor': 'middle' },
            count(spent),
          ),
        ),
      s('path', { class: 'best', d: path }),
      probes.map((probe) =>
        s(
          'circle',
          { class: `probe ${probe.verdict}`, cx: x(probe.spent), cy: y(probe.bytes), r: 3 },
          s('title', null, `${probe.spent}: ${bytes(probe.bytes)}, ${probe.phase}`),
        ),
      ),
    ),
    h(
      'p',
      { class: 'legend' },
      [
        ['same', 'fails the same way'],
        ['passes', 'passes'],
        ['other', 'fails differently'],
      ].map(([verdict, label]) =>
        h('span', null, h('i', { class: `key probe-${verdict}` }), label),
      ),
    ),
  );
}
