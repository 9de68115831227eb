/** The table of tokens and costs by hop, with bars for their shares. */

import type { Usage } from '../../../conversation/usage.ts';
import type { SampleDetail } from '../../api/api.ts';
import { h } from '../kit/dom.ts';
import { count, percent } from '../kit/format.ts';
import { boxedTable } from '../kit/table.ts';
import { cost } from './money.ts';
import { totalInput, totalOutput } from './usage.ts';

const PARTS = [
  ['input', 'Input'],
  ['cacheRead', 'Cached'],
  ['cacheWrite', 'Cache write'],
  ['output', 'Output'],
  ['reasoning', 'Reasoning'],
] as const;

const all = (usage: Usage) => totalInput(usage) + totalOutput(usage);

export function tokenTable({ hops, usage, cost: total }: SampleDetail): HTMLElement {
  const most = Math.max(1, ...hops.map((hop) => (hop.usage === null ? 0 : all(hop.usage))));
  const priced = hops.some((hop) => hop.cost !== null);
  const known = hops.flatMap((hop) => (hop.usage === null ? [] : [hop.usage]));
  // Columns without any value are left out.
  const parts = PARTS.filter(
    ([name]) =>
      name === 'input' || name === 'output' || known.some((one) => one[name] !== undefined),
  );
  const line = (name: string, one: Usage | null, price: number | null, cls?: string) =>
    h(
      'tr',
      { class: cls },
      h('th', { scope: 'row' }, name),
      h('td', { class: 'barcell' }, one !== null && cls === undefined && bar(one, most)),
      parts.map(([part]) => h('td', { class: 'num' }, one === null ? '–' : count(one[part]))),
      h('td', { class: 'num' }, one === null ? '–' : hitRate(one)),
      priced && h('td', { class: 'num' }, cost(price)),
    );
  return boxedTable(
    [
      h('th', { scope: 'col' }, 'Hop'),
      h('th', { scope: 'col', class: 'barcell' }, h('span', { class: 'sr' }, 'Share')),
      parts.map(([part, text]) =>
        h('th', { scope: 'col', class: 'num' }, h('i', { class: `key ${part}` }), text),
      ),
      h('th', { scope: 'col', class: 'num' }, 'Cache hits'),
      priced && h('th', { scope: 'col', class: 'num' }, 'Cost'),
    ],
    [
      hops.map((hop) => line(`hop ${hop.hop}`, hop.usage, hop.cost)),
      hops.length > 1 && line('total', usage, total, 'sum'),
    ],
    { class: 'tokens' },
  );
}

const hitRate = (usage: Usage): string =>
  usage.cacheRead === undefined || totalInput(usage) === 0
    ? '–'
    : percent(usage.cacheRead / totalInput(usage));

function bar(usage: Usage, most: number): HTMLElement {
  return h(
    'span',
    { class: 'tokenbar', 'aria-hidden': 'true' },
    PARTS.map(([part]) => {
      const value = usage[part] ?? 0;
      return (
        value > 0 &&
        h('i', { class: part, vars: { '--part': `${((value / most) * 100).toFixed(3)}%` } })
      );
    }),
  );
}
