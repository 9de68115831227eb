/** The charts page: figures over time for the exchanges that match the filters. */

import type { Info, Stats } from '../../api/api.ts';
import { cost } from '../exchange/money.ts';
import { getStats } from '../kit/api-calls.ts';
import { button, type Child, h, replace } from '../kit/dom.ts';
import { failureText } from '../kit/fetching.ts';
import { count, millis, percent, short } from '../kit/format.ts';
import {
  currentRoute,
  filtersOf,
  go,
  hashOf,
  type Query,
  type Route,
  withQuery,
} from '../kit/route.ts';
import { boxedTable } from '../kit/table.ts';
import type { View } from '../kit/view.ts';
import { createKeepLine } from '../list/keep-line.ts';
import { createFilters } from '../list/list-filters.ts';
import { type Chart, createChart } from './chart.ts';
import { chartsOf } from './chart-data.ts';

const RANGES = [
  ['15m', '15 min'],
  ['1h', '1 h'],
  ['6h', '6 h'],
  ['24h', '24 h'],
  ['7d', '7 days'],
] as const;
const RANGE = '1h';
const BUCKETS = 60;
/** Milliseconds between two reloads. */
const RELOAD_AFTER = 10_000;

export function createChartsPage(info: Info): View {
  let stats: Stats | undefined;
  let current = info;
  let charts: Chart[] = [];
  let stop = new AbortController();
  let timer = 0;
  let shown = '';
  const change = (changes: Query) => {
    const route = currentRoute();
    go(withQuery(route, changes) as Route, true);
  };
  const filters = createFilters(change);
  const ranges = h('div', { class: 'segments', role: 'group', 'aria-label': 'Time' });
  const figures = h('dl', { class: 'figures' });
  const grid = h('div', { class: 'chart-grid' });
  const targets = h('section', { class: 'targets' });
  const problem = h('p', { class: 'problem', role: 'alert', hidden: true });
  // What is drawn is what is recorded.
  const keeps = createKeepLine((next) => {
    current = next;
    keeps.show(next);
    if (stats !== undefined) draw(stats);
  });
  keeps.show(info);
  const node = h(
    'section',
    { class: 'charts-page', 'aria-label': 'Charts' },
    h('h1', { class: 'sr' }, 'Charts'),
    h('div', { class: 'charts-bar' }, ranges, filters.node),
    keeps.node,
    problem,
    figures,
    grid,
    targets,
  );

  const point = (index: number | undefined) => {
    for (const chart of charts) chart.point(index);
  };
  const choose = (index: number) => {
    const bucket = stats?.buckets[index];
    if (bucket === undefined || stats === undefined) return;
    const query = filtersOf(currentRoute().query);
    go({
      name: 'list',
      query: { ...query, since: String(bucket.time), until: String(bucket.time + stats.bucket_ms) },
    });
  };

  async function load(query: Query): Promise<void> {
    stop.abort();
    stop = new AbortController();
    const { signal } = stop;
    clearTimeout(timer);
    try {
      stats = await getStats({ ...query, since: query.since ?? RANGE }, BUCKETS, signal);
      problem.hidden = true;
      draw(stats);
    } catch (thrown) {
      const message = failureText(thrown);
      if (message === undefined) return;
      problem.hidden = false;
      replace(problem, message);
    }
    if (!signal.aborted) timer = window.setTimeout(() => void load(query), RELOAD_AFTER);
  }

  function draw(next: Stats): void {
    const all = chartsOf(next, info.priced);
    while (charts.length < all.length) {
      const chart = createChart(point, choose);
      charts.push(chart);
      grid.append(chart.node);
    }
    for (const extra of charts.splice(all.length)) extra.node.remove();
    all.forEach((data, i) => {
      charts[i]!.draw(data);
    });
    replace(figures, figureList(next, current.samples.mode));
    replace(targets, targetTable(next, info.priced));
  }

  return {
    node,
    show(route) {
      const query = filtersOf(route.query);
      filters.show(query);
      const range = query.since ?? RANGE;
      replace(
        ranges,
        RANGES.map(([value, text]) =>
          button(text, () => change({ since: value, until: '' }), {
            'aria-pressed': String(value === range),
          }),
        ),
      );
      const next = JSON.stringify(query);
      if (next === shown) return;
      shown = next;
      void load(query);
    },
    press(event) {
      if (event.key !== '/') return false;
      filters.search();
      return true;
    },
    close() {
      stop.abort();
      clearTimeout(timer);
      charts = [];
    },
  };
}

/** Without successes, a share of what is recorded says nothing of all requests. */
function figureList({ all }: Stats, mode: Info['samples']['mode']): Child {
  const figure = (name: string, value: string, tone?: string) =>
    h('div', { 'data-tone': tone }, h('dt', null, name), h('dd', null, value));
  // An exchange that failed has an error; one that a later try made good has none.
  const failed = Object.values(all.errors).reduce((sum, one) => sum + one, 0);
  const share = (of: number) => {
    if (mode !== 'all') return count(of);
    return all.requests === 0 ? '–' : `${count(of)} (${percent(of / all.requests)})`;
  };
  return [
    figure(mode === 'all' ? 'Requests' : 'Recorded', count(all.requests)),
    figure('Failed', share(failed), failed > 0 ? 'bad' : undefined),
    figure('Retried', share(Math.max(0, all.failed - failed))),
    figure(
      'First byte p50 / p95',
      all.first_byte_ms === null
        ? '–'
        : `${millis(all.first_byte_ms.p50)} / ${millis(all.first_byte_ms.p95)}`,
    ),
    figure(
      'Total p50 / p95',
      all.total_ms === null ? '–' : `${millis(all.total_ms.p50)} / ${millis(all.total_ms.p95)}`,
    ),
    figure('Cache hits', all.cache_hit_rate === null ? '–' : percent(all.cache_hit_rate)),
    figure('Tokens in / out', `${short(all.input_tokens)} / ${short(all.output_tokens)}`),
    all.cost !== null && figure('Cost', cost(all.cost)),
  ];
}

function targetTable({ targets }: Stats, priced: boolean): Child {
  if (targets.length === 0) return null;
  const query = filtersOf(currentRoute().query);
  const num = (text: string) => h('td', { class: 'num' }, text);
  const head = [
    'Target',
    'Requests',
    'Failed',
    'First byte p50',
    'Total p50',
    'Total p95',
    'Cache hits',
    'Tokens in',
    'Tokens out',
    ...(priced ? ['Cost'] : []),
  ];
  return [
    h('h2', null, 'By target'),
    boxedTable(
      head.map((text, i) => h('th', { scope: 'col', class: i > 0 ? 'num' : undefined }, text)),
      targets.map((one) =>
        h(
          'tr',
          null,
          h(
            'th',
            { scope: 'row' },
            h(
              'a',
              { href: hashOf({ name: 'list', query: { ...query, model: one.target } }) },
              one.target || '(none)',
            ),
          ),
          num(count(one.requests)),
          h(
            'td',
            { class: 'num', 'data-tone': one.failed > 0 ? 'bad' : undefined },
            count(one.failed),
          ),
          num(millis(one.first_byte_ms?.p50)),
          num(millis(one.total_ms?.p50)),
          num(millis(one.total_ms?.p95)),
          num(one.cache_hit_rate === null ? '–' : percent(one.cache_hit_rate)),
          num(short(one.input_tokens)),
          num(short(one.output_tokens)),
          priced && num(cost(one.cost)),
        ),
      ),
    ),
  ];
}
