/** The time line of a session: a lane for each conversation, with its exchanges, hops and tools; pauses are shortened. */

import type { SessionStep, SessionView } from '../../api/api.ts';
import { h, s } from '../kit/dom.ts';
import { clock, millis } from '../kit/format.ts';

const WIDTH = 1000;
const LANE = 22;
/** Share of the busy time that a pause takes at most: a night between two turns must not hide them. */
const MAX_PAUSE = 0.04;

/** Places on a line where long pauses are cut short. */
function scaleOf(steps: readonly SessionStep[]): (time: number) => number {
  const busy: { from: number; to: number }[] = [];
  for (const { row } of steps.toSorted((a, b) => a.row.time - b.row.time)) {
    const to = row.time + Math.max(1, row.total_ms ?? 1);
    const last = busy.at(-1);
    if (last !== undefined && row.time <= last.to) last.to = Math.max(last.to, to);
    else busy.push({ from: row.time, to });
  }
  const worked = busy.reduce((sum, { from, to }) => sum + to - from, 0);
  const pause = Math.max(1, worked * MAX_PAUSE);
  let at = 0;
  const parts = busy.map(({ from, to }, i) => {
    if (i > 0) at += Math.min(pause, from - busy[i - 1]!.to);
    const part = { from, to, at };
    at += to - from;
    return part;
  });
  const end = Math.max(1, at);
  return (time) => {
    const part = parts.findLast(({ from }) => from <= time) ?? parts[0];
    if (part === undefined) return 0;
    return ((part.at + Math.min(time, part.to) - part.from) / end) * WIDTH;
  };
}

/** @param open called with the id of the exchange that was clicked */
export function timeLine({ steps, threads }: SessionView, open: (id: string) => void): HTMLElement {
  const x = scaleOf(steps);
  const height = Math.max(1, threads.length) * LANE;
  const bars = steps.flatMap((step) => bar(step, x, open));
  return h(
    'div',
    { class: 'session-line' },
    s(
      'svg',
      {
        viewBox: `0 0 ${WIDTH} ${height}`,
        preserveAspectRatio: 'none',
        height,
        role: 'img',
        'aria-label': 'The exchanges of the session over time',
      },
      bars,
    ),
    h(
      'p',
      { class: 'legend' },
      h('span', null, h('i', { class: 'key wait' }), 'exchange'),
      h('span', null, h('i', { class: 'key stream' }), 'at the vendor'),
      h('span', null, h('i', { class: 'key tool' }), 'tool run by the gateway'),
      h('span', null, h('i', { class: 'key failed' }), 'failed'),
      h('span', null, h('i', { class: 'key lost' }), 'cache lost'),
    ),
  );
}

function bar(step: SessionStep, x: (time: number) => number, open: (id: string) => void) {
  const { row, spans, thread, cache } = step;
  const top = thread * LANE;
  const end = row.time + Math.max(1, row.total_ms ?? 1);
  const rect = (cls: string, from: number, to: number, y: number, height: number) =>
    s('rect', { class: cls, x: x(from), width: Math.max(2, x(to) - x(from)), y, height });
  return [
    s(
      'g',
      { class: 'session-bar', on: { click: () => open(row.id) } },
      s('title', null, `${clock(row.time)} ${row.target} ${millis(row.total_ms)}`),
      rect('span wait', row.time, end, top + 4, LANE - 8),
      spans.map(({ kind, from, to }) =>
        rect(
          `span ${kind === 'hop' ? 'stream' : kind}`,
          row.time + from,
          row.time + to,
          top + (kind === 'tool' ? 7 : 5),
          kind === 'tool' ? LANE - 14 : LANE - 10,
        ),
      ),
      cache?.lost != null &&
        s('rect', { class: 'span lost', x: x(row.time), width: 3, y: top + 1, height: LANE - 2 }),
    ),
  ];
}
