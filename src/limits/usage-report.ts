/** What is used and left, as JSON: of one key for its holder, and of all budgets for the admin API. */

import type { Budget, Principal } from '../keys/principal.ts';
import { usdOf } from '../lib/text/usd.ts';
import { budgetLaw, lawsOf } from './laws-of.ts';
import type { Limits, Standing } from './limits.ts';

export interface LimitReport {
  /** As in the configuration. */
  readonly limit: 'requests_per_minute' | 'tokens_per_minute' | 'concurrent';
  readonly amount: number;
  readonly used: number;
  readonly remaining: number;
  /** Until all of it is free again; null for `concurrent`. */
  readonly reset_seconds: number | null;
}

export interface BudgetReport {
  readonly name: string;
  readonly usd: number;
  readonly per: string;
  readonly time_zone: string;
  readonly over: string;
  readonly spent_usd: number;
  /** By requests that still run. */
  readonly reserved_usd: number;
  readonly remaining_usd: number;
  /** Null: never. */
  readonly resets_at: string | null;
}

/** `GET /v1/usage` */
export interface UsageReport {
  readonly object: 'usage';
  readonly key: string;
  readonly limits: readonly LimitReport[];
  readonly budgets: readonly BudgetReport[];
}

const budgetReport = (budget: Budget, { used, held, remaining, resetAt }: Standing) => ({
  name: budget.name,
  usd: usdOf(budget.nanoUsd),
  per: budget.per,
  time_zone: budget.timeZone,
  over: budget.over.action === 'route' ? budget.over.route : budget.over.action,
  spent_usd: usdOf(used - held),
  reserved_usd: usdOf(held),
  remaining_usd: usdOf(remaining),
  resets_at: resetAt === undefined ? null : new Date(resetAt).toISOString().replace(/\.\d+Z$/, 'Z'),
});

/** What is used and left of a key's limits and budgets. */
export async function usageReport(limits: Limits, principal: Principal): Promise<UsageReport> {
  const laws = lawsOf(principal);
  const standings = laws.all.length === 0 ? [] : await limits.standing(laws.all);
  const reported: LimitReport[] = [];
  const budgets: BudgetReport[] = [];
  for (const standing of standings) {
    const { law, used, remaining, resetMs } = standing;
    if (law.kind === 'window') {
      const own = laws.budgets.find((one) => one.law === law);
      if (own !== undefined) budgets.push(budgetReport(own.budget, standing));
      continue;
    }
    reported.push({
      limit:
        law.kind === 'slots'
          ? 'concurrent'
          : law.unit === 'requests'
            ? 'requests_per_minute'
            : 'tokens_per_minute',
      amount: law.amount,
      used,
      remaining,
      reset_seconds: resetMs === undefined ? null : Math.ceil(resetMs / 1000),
    });
  }
  return { object: 'usage', key: principal.name, limits: reported, budgets };
}

/** `GET /admin/v1/budgets`: how these budgets stand, in their order. */
export async function budgetsReport(
  limits: Limits,
  budgets: readonly Budget[],
): Promise<{ readonly object: 'list'; readonly data: readonly (BudgetReport & { id: string })[] }> {
  const standings = budgets.length === 0 ? [] : await limits.standing(budgets.map(budgetLaw));
  const data = budgets.map((budget, i) => ({
    id: budget.id,
    ...budgetReport(budget, standings[i]!),
  }));
  return { object: 'list', data };
}
