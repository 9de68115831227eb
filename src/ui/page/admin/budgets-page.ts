/** The budgets: what is spent of each, its limit, when it begins anew, and what happens when it is spent. */

import { type Child, h, replace } from '../kit/dom.ts';
import { percent } from '../kit/format.ts';
import { hashOf } from '../kit/route.ts';
import { dataTable } from '../kit/table.ts';
import type { View } from '../kit/view.ts';
import {
  type BudgetReport,
  type Budgets,
  budgetBar,
  budgetTone,
  getBudgets,
  neverFitsText,
  periodText,
  resetText,
  usedShare,
} from './budgets-api.ts';
import { emptyState, pageFrame, reloadingView } from './page-frame.ts';
import { usd } from './usd.ts';

const RELOAD_AFTER = 10_000;

const EXAMPLE = `budgets:
  - name: web-team
    keys: { team: web }
    usd: 200
    per: month
    warn: [0.5, 0.8]
    over: refuse`;

export function createBudgetsPage(): View {
  const frame = pageFrame({
    title: 'Budgets',
    about: 'What may be spent in a period. The fullest budgets come first.',
  });

  function draw({ data, has_more }: Budgets): void {
    if (data.length === 0) {
      replace(frame.body, noBudgets());
      return;
    }
    const spent = data.filter((budget) => budgetTone(budget) === 'bad').length;
    const tooSmall = data.filter(({ never_fits_usd }) => never_fits_usd !== null).length;
    const warned = data.filter((budget) => budgetTone(budget) === 'warn').length;
    const figure = (name: string, value: number, tone?: string) =>
      h(
        'div',
        { 'data-tone': value > 0 ? tone : undefined },
        h('dt', null, name),
        h('dd', null, value),
      );
    replace(
      frame.body,
      h(
        'dl',
        { class: 'figures' },
        figure('Budgets', data.length),
        figure('Past a warning', warned, 'warn'),
        figure('Used up', spent, 'bad'),
        figure('Too small for a request', tooSmall, 'warn'),
      ),
      table(data),
      has_more &&
        h('p', { class: 'soft admin-more' }, 'There are more budgets, with less of them used.'),
    );
  }

  return reloadingView(frame, RELOAD_AFTER, async (signal) => draw(await getBudgets(signal)));
}

const table = (budgets: readonly BudgetReport[]) =>
  dataTable({
    caption: 'Budgets',
    rows: budgets,
    rowProps: (budget) => ({ 'data-tone': budgetTone(budget) }),
    columns: [
      { title: 'Budget', cell: nameCell, class: 'wraps' },
      { title: 'For', cell: ownerCell, class: 'wraps' },
      { title: 'Used', cell: usedCell, class: 'used' },
      { title: 'Spent', cell: ({ spent_usd }) => usd(spent_usd), num: true },
      {
        title: 'Reserved',
        cell: ({ reserved_usd }) => (reserved_usd === 0 ? '–' : usd(reserved_usd)),
        num: true,
      },
      { title: 'Limit', cell: periodText, num: true },
      { title: 'Resets', cell: resetText },
      { title: 'When spent', cell: overCell },
    ],
  });

/** A key's budget has its key's name in front. */
const nameCell = ({ name, key_name }: BudgetReport): Child =>
  key_name !== null && name.startsWith(`${key_name}: `) ? name.slice(key_name.length + 2) : name;

function ownerCell({ key, key_name, labels }: BudgetReport): Child {
  if (key !== null) {
    return [
      'key ',
      h(
        'a',
        { href: hashOf({ name: 'admin', page: 'keys', id: key, query: {} }) },
        key_name ?? key,
      ),
    ];
  }
  const pairs = Object.entries(labels ?? {});
  return pairs.length === 0
    ? 'all requests'
    : [
        'keys with ',
        pairs.map(([name, value]) => h('span', { class: 'label' }, `${name}: ${value}`)),
      ];
}

const usedCell = (budget: BudgetReport): Child => [
  h(
    'div',
    { class: 'used-bar' },
    budgetBar(budget),
    h('span', { class: 'num' }, percent(usedShare(budget))),
  ),
  neverFitsText(budget),
];

const overCell = ({ over }: BudgetReport): Child =>
  over === 'refuse' ? 'refuse' : over === 'warn' ? 'warn only' : ['route ', h('code', null, over)];

const noBudgets = () =>
  emptyState(
    'There are no budgets yet',
    h(
      'p',
      null,
      'Give a key its own on its page under ',
      h('a', { href: '#/keys' }, 'Keys'),
      ', or let several keys share one in the configuration:',
    ),
    h('div', { class: 'snippet' }, h('pre', null, EXAMPLE)),
    h(
      'p',
      null,
      h('a', { href: '/docs/limits', target: '_blank', rel: 'noopener' }, 'Budgets in the manual'),
    ),
  );
