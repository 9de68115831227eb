/** Usage over time: cost, tokens or tries by key, model, target, session or label, as a chart, a table and CSV. */

import { type Chart, createChart } from '../charts/chart.ts';
import { saveFile } from '../kit/copy.ts';
import { button, type Child, h, replace } from '../kit/dom.ts';
import { count, percent, short } from '../kit/format.ts';
import { currentRoute, go, hashOf, type Query, withQuery } from '../kit/route.ts';
import { dataTable } from '../kit/table.ts';
import type { View } from '../kit/view.ts';
import { admin } from './admin-api.ts';
import { emptyState, pageFrame } from './page-frame.ts';
import { getUsage, tokensIn, tokensOut, type Usage, type UsageGroup } from './usage-api.ts';
import {
  MEASURES,
  type Measure,
  measureOf,
  nameOf,
  stepOf,
  usageChart,
  VALUES,
} from './usage-chart.ts';
import { usd } from './usd.ts';

const BY = [
  ['key', 'Key'],
  ['model', 'Model'],
  ['target', 'Target'],
  ['session', 'Session'],
] as const;
const RANGES = [
  ['24h', '24 h'],
  ['7d', '7 days'],
  ['30d', '30 days'],
  ['90d', '90 days'],
  ['365d', '1 year'],
] as const;
const RANGE = '30d';
const STEPS = ['hour', 'day', 'month'] as const;
/** Series with their own colour. */
const NAMED = 7;
const ROWS = 200;
/** Rows of single tries that are fetched as one file. */
const MAX_ROWS = 200_000;

export function createUsagePage(): View {
  const frame = pageFrame({
    title: 'Usage',
    about: 'What was used and what it cost. Days and hours are in UTC.',
  });
  const bar = h('div', { class: 'usage-bar' });
  const figures = h('dl', { class: 'figures' });
  const picture = h('div', { class: 'usage-chart' });
  const groups = h('div');
  let chart: Chart | undefined;
  let shown = '';
  let labels: readonly string[] = [];

  const change = (changes: Query) => {
    const route = currentRoute();
    if (route.name === 'admin') go(withQuery(route, changes), true);
  };

  /** The parameters of the API for a state of the page. */
  const asked = (query: Query) => ({
    by: query.by ?? 'key',
    from: query.from ?? RANGE,
    to: query.to,
    key: query.key,
  });

  const load = (query: Query) =>
    frame.run(async (signal) => {
      const step = stepOf(query, RANGE);
      const wanted = asked(query);
      const [totals, over] = await Promise.all([
        getUsage({ ...wanted, limit: ROWS }, signal),
        getUsage({ ...wanted, step, top: NAMED }, signal),
      ]);
      labels = totals.labels;
      drawBar(query);
      draw(query, step, totals, over);
    });

  function draw(query: Query, step: 'hour' | 'day' | 'month', totals: Usage, over: Usage): void {
    const measure = measureOf(query.show);
    const { data } = totals;
    if (data.length === 0) {
      chart = undefined;
      replace(frame.body, bar, nothing());
      return;
    }
    if (chart === undefined) {
      const created: Chart = createChart(
        (index) => created.point(index),
        () => {},
      );
      chart = created;
      replace(picture, created.node);
    }
    replace(frame.body, bar, figures, picture, groups);
    replace(figures, figureList(data));
    chart.draw(usageChart(over, { measure, step, from: totals.from, to: totals.to }));
    replace(groups, groupTable(query, measure, data), downloads(query, step, data));
  }

  function drawBar(query: Query): void {
    const by = query.by ?? 'key';
    const range = query.from ?? RANGE;
    const step = stepOf(query, RANGE);
    const segments = <V extends string>(
      name: string,
      label: string,
      options: readonly (readonly [V, string])[],
      now: string,
      more: Query = {},
    ) =>
      h(
        'div',
        { class: 'segments', role: 'group', 'aria-label': label },
        options.map(([value, text]) =>
          button(text, () => change({ ...more, [name]: value }), {
            'aria-pressed': String(value === now),
          }),
        ),
      );
    const date = (name: 'from' | 'to', label: string) => {
      const input = h('input', { type: 'date', 'aria-label': label });
      input.value = /^\d{4}-\d{2}-\d{2}/.test(query[name] ?? '') ? query[name]!.slice(0, 10) : '';
      input.addEventListener('change', () => change({ [name]: input.value }));
      return input;
    };
    const by2 = [...BY, ...labels.map((name) => [`label.${name}`, `${name} (label)`] as const)];
    replace(
      bar,
      segments('by', 'Sum by', by2, by),
      segments('show', 'Show', MEASURES, measureOf(query.show)),
      h('i', { class: 'break' }),
      segments('from', 'Time', RANGES, query.to === undefined ? range : '', { to: '', step: '' }),
      h('div', { class: 'dates' }, date('from', 'From'), ' – ', date('to', 'To')),
      segments(
        'step',
        'Step',
        STEPS.filter((one) => one !== 'hour' || by !== 'session').map((one) => [one, one] as const),
        step,
      ),
      query.key !== undefined &&
        h(
          'span',
          { class: 'chip' },
          'key ',
          h('code', null, query.key),
          button('×', () => change({ key: '' }), { class: 'tiny', 'aria-label': 'Show all keys' }),
        ),
    );
  }

  function downloads(query: Query, step: string, data: readonly UsageGroup[]): Child {
    const save = (path: string, more: Query, name: string) =>
      frame.run(async (signal) => {
        const { by, from, to, key } = asked(query);
        const rows = path === '/spend';
        const answer = await admin(path, {
          query: { format: 'csv', from, to, key, ...(!rows && { by }), ...more },
          signal,
        });
        saveFile(name, await answer.blob());
      });
    const tries = data.reduce((sum, group) => sum + group.tries, 0);
    return h(
      'p',
      { class: 'admin-more downloads' },
      'CSV: ',
      button('these totals', () => void save('/usage', { limit: '10000' }, 'usage.csv')),
      button(
        `by ${step}`,
        () => void save('/usage', { limit: '10000', step }, `usage-by-${step}.csv`),
      ),
      tries <= MAX_ROWS
        ? button('every try', () => void save('/spend', {}, 'spend.csv'))
        : h(
            'span',
            { class: 'soft' },
            'every try: choose a shorter time, or use ',
            h('code', null, 'hopgate usage --csv'),
          ),
    );
  }

  return {
    node: frame.node,
    show({ query }) {
      const next = JSON.stringify(query);
      if (next === shown) return;
      shown = next;
      drawBar(query);
      void load(query);
    },
    press(event) {
      if (event.key !== 'r') return false;
      void load(currentRoute().query);
      return true;
    },
    close: frame.close,
  };
}

function figureList(data: readonly UsageGroup[]): Child {
  const sum = (of: (group: UsageGroup) => number) =>
    data.reduce((all, group) => all + of(group), 0);
  const figure = (name: string, value: string, tone?: string, title?: string) =>
    h('div', { 'data-tone': tone, title }, h('dt', null, name), h('dd', null, value));
  const input = sum(tokensIn);
  const cached = sum(({ tokens }) => tokens.cache_read);
  const unpriced = sum((group) => group.unpriced);
  const estimated = sum((group) => group.estimated);
  return [
    figure('Cost', usd(sum((group) => group.cost_usd))),
    figure('Tries', count(sum((group) => group.tries))),
    figure('Tokens in', short(input)),
    figure('From the cache', input === 0 ? '–' : percent(cached / input)),
    figure('Tokens out', short(sum(tokensOut))),
    unpriced > 0 &&
      figure(
        'Without a price',
        count(unpriced),
        'warn',
        'Tries of models whose price is not known: their cost is missing here',
      ),
    estimated > 0 &&
      figure(
        'Estimated',
        count(estimated),
        undefined,
        'Tries whose tokens the vendor did not report',
      ),
  ];
}

function groupTable(query: Query, measure: Measure, data: readonly UsageGroup[]): Child {
  const by = query.by ?? 'key';
  const of = VALUES[measure];
  const all = data.reduce((sum, group) => sum + of(group), 0);
  const most = Math.max(...data.map(of), 0);
  const sorted = [...data].sort((a, b) => of(b) - of(a));
  return dataTable({
    caption: 'Usage in all',
    rows: sorted,
    columns: [
      {
        title: BY.find(([value]) => value === by)?.[1] ?? by.replace('label.', ''),
        cell: (group) => groupName(by, group),
        class: 'wraps',
      },
      { title: 'Share', cell: (group) => shareBar(of(group), most, all), class: 'used' },
      { title: 'Cost', cell: (group) => costCell(group), num: true },
      { title: 'Tries', cell: ({ tries }) => count(tries), num: true },
      {
        title: 'Tokens in',
        cell: (group) => short(tokensIn(group)),
        num: true,
      },
      { title: 'Cached', cell: cachedCell, num: true },
      {
        title: 'Tokens out',
        cell: (group) => short(tokensOut(group)),
        num: true,
      },
    ],
  });
}

function groupName(by: string, group: UsageGroup): Child {
  const { name } = group;
  const text = nameOf(group);
  if (by === 'key' && name !== null && name !== '' && !name.startsWith('jwt:')) {
    return h('a', { href: hashOf({ name: 'admin', page: 'keys', id: name, query: {} }) }, text);
  }
  return name === null || name === '' ? h('span', { class: 'soft' }, text) : text;
}

const shareBar = (value: number, most: number, all: number): Child =>
  h(
    'div',
    { class: 'used-bar' },
    h('meter', { min: 0, max: most === 0 ? 1 : most, value, 'aria-hidden': 'true' }),
    h('span', { class: 'num' }, all === 0 ? '–' : percent(value / all)),
  );

function costCell({ cost_usd, unpriced, tries }: UsageGroup): Child {
  if (unpriced === tries)
    return h('span', { class: 'soft', title: 'No price is known' }, 'no price');
  return [
    usd(cost_usd),
    unpriced > 0 &&
      h(
        'span',
        {
          class: 'soft',
          title: unpriced === 1 ? '1 try has no price' : `${count(unpriced)} tries have no price`,
        },
        ' +',
      ),
  ];
}

function cachedCell(group: UsageGroup): string {
  const all = tokensIn(group);
  return all === 0 ? '–' : percent(group.tokens.cache_read / all);
}

const nothing = () =>
  emptyState(
    'Nothing was used in this time',
    h(
      'p',
      null,
      'Each request that reaches a vendor appears here within a second, with its tokens and cost. Choose a longer period, or send a request.',
    ),
    h(
      'p',
      null,
      h('a', { href: '/docs/money', target: '_blank', rel: 'noopener' }, 'Costs in the manual'),
    ),
  );
