/** Budgets by the admin API, and one of them as a bar with its warning marks. */

import { type Child, h, s } from '../kit/dom.ts';
import { percent } from '../kit/format.ts';
import { when } from '../kit/when.ts';
import { adminJson } from './admin-api.ts';
import { usd } from './usd.ts';

export interface BudgetReport {
  readonly id: string;
  readonly name: string;
  readonly usd: number;
  readonly per: string;
  readonly time_zone: string;
  readonly over: string;
  readonly spent_usd: number;
  readonly reserved_usd: number;
  readonly remaining_usd: number;
  readonly never_fits_usd: number | null;
  readonly resets_at: string | null;
  readonly warn: readonly number[];
  readonly key: string | null;
  readonly key_name: string | null;
  readonly labels: Readonly<Record<string, string>> | null;
}

export interface Budgets {
  readonly data: readonly BudgetReport[];
  readonly has_more: boolean;
}

const MAX = 1000;

export const getBudgets = (signal: AbortSignal) =>
  adminJson<Budgets>('/budgets', { query: { limit: MAX }, signal });

export const usedShare = ({ usd: amount, spent_usd, reserved_usd }: BudgetReport): number =>
  amount === 0 ? 1 : (spent_usd + reserved_usd) / amount;

/** `ok`, `warn` past its first mark, `bad` when it is spent. */
export function budgetTone(budget: BudgetReport): 'ok' | 'warn' | 'bad' {
  const share = usedShare(budget);
  if (share >= 1) return 'bad';
  if (budget.never_fits_usd !== null) return 'warn';
  return budget.warn.some((mark) => share >= mark) ? 'warn' : 'ok';
}

export const periodText = ({ usd: amount, per }: BudgetReport): string =>
  per === 'total' ? `${usd(amount)} in all` : `${usd(amount)} a ${per}`;

/** What is spent and reserved of a budget, with a mark at each warning. */
export function budgetBar(budget: BudgetReport): Child {
  const { usd: amount, spent_usd, reserved_usd, warn } = budget;
  const width = (value: number) =>
    `${Math.min(100, amount === 0 ? 100 : (value / amount) * 100).toFixed(2)}%`;
  const share = usedShare(budget);
  return s(
    'svg',
    {
      class: 'budget-bar',
      'data-tone': budgetTone(budget),
      role: 'img',
      'aria-label': `${percent(share)} used, warnings at ${warn.map((mark) => percent(mark)).join(' and ') || 'no share'}`,
    },
    s('rect', { class: 'whole', width: '100%', height: 8, y: 3, rx: 4 }),
    s('rect', {
      class: 'reserved',
      width: width(spent_usd + reserved_usd),
      height: 8,
      y: 3,
      rx: 4,
    }),
    s('rect', { class: 'spent', width: width(spent_usd), height: 8, y: 3, rx: 4 }),
    warn
      .filter((mark) => mark > 0 && mark < 1)
      .map((mark) => {
        const x = `${mark * 100}%`;
        return s('line', { class: 'mark-line', x1: x, x2: x, y1: 0, y2: 14 });
      }),
  );
}

/** Such a budget shows nothing as spent, and refuses all the same. */
export const neverFitsText = ({ never_fits_usd }: BudgetReport): Child =>
  never_fits_usd !== null &&
  h(
    'small',
    { class: 'problem' },
    `refuses requests of ${usd(never_fits_usd)}: more than all of it`,
  );

export const resetText = ({ resets_at }: BudgetReport): Child =>
  resets_at === null ? h('span', { class: 'soft' }, 'never') : when(resets_at);

/** In a narrow place: amounts above the bar. */
export const budgetLine = (budget: BudgetReport): HTMLElement =>
  h(
    'div',
    { class: 'budget-line' },
    h(
      'div',
      { class: 'split' },
      h('b', null, usd(budget.spent_usd)),
      h('span', { class: 'soft' }, `of ${periodText(budget)}`),
    ),
    budgetBar(budget),
    neverFitsText(budget),
    budget.resets_at !== null && h('small', null, 'resets ', when(budget.resets_at)),
  );
