/** The numbers of a chart as a table, for screen readers and exact values. */

import { type Child, h } from '../kit/dom.ts';
import { type ChartData, span } from './chart-series.ts';

/** One line for each bucket with a value. */
export function chartTable({ title, times, series, format, bucketMs }: ChartData): Child {
  const rows = times
    .map((time, i) => ({ time, values: series.map(({ values }) => values[i] ?? null) }))
    .filter(({ values }) => values.some((value) => value !== null && value !== 0));
  if (rows.length === 0) return h('p', { class: 'soft' }, 'Nothing in this time.');
  const names = series.map(({ name }) => h('th', { scope: 'col', class: 'num' }, name));
  const cell = (value: number | null) =>
    h('td', { class: 'num' }, value === null ? '–' : format(value));
  return h(
    'table',
    null,
    h('caption', { class: 'sr' }, title),
    h('thead', null, h('tr', null, h('th', { scope: 'col' }, 'Time'), names)),
    h(
      'tbody',
      null,
      rows.map(({ time, values }) =>
        h('tr', null, h('th', { scope: 'row' }, span(time, bucketMs)), values.map(cell)),
      ),
    ),
  );
}
