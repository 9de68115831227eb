/** Used and remaining amounts as JSON: of one key for its holder, and of all budgets for the admin API. */

import type { Budget, LimitName, Principal } from '../keys/principal.ts';
import { runInSlices, type Steps } from '../lib/loop/steps.ts';
import { usdOf } from '../lib/text/usd.ts';
import { budgetLimit, keyLimitsOf, limitNameOf } from './key-limits.ts';
import type { Limits, LimitUsage } from './limits.ts';

/** Budgets that are asked about at once. */
const AT_ONCE = 200;

export interface LimitReport {
  /** As in the configuration. */
  readonly limit: LimitName;
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
  /**
   * What the last request might have cost that this process refused because it is more than the whole budget; null:
   * there was none.
   */
  readonly never_fits_usd: number | null;
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

/** Refused amounts in nano-USD, by budget id. */
export type NeverFits = ReadonlyMap<string, number>;

const budgetReport = (
  budget: Budget,
  { limit, used, held, remaining, resetAt }: LimitUsage,
  neverFits: NeverFits,
) => ({
  name: budget.name,
  usd: usdOf(budget.nanoUsd),
  per: budget.per,
  time_zone: budget.timeZone,
  over: budget.over.action === 'route' ? budget.over.route : budget.over.action,
  spent_usd: usdOf(used - held),
  reserved_usd: usdOf(held),
  remaining_usd: usdOf(remaining),
  never_fits_usd: largerThan(budget.nanoUsd, neverFits.get(limit.id)),
  resets_at: resetAt === undefined ? null : new Date(resetAt).toISOString().replace(/\.\d+Z$/, 'Z'),
});

/** Since then the budget may have been made larger. */
const largerThan = (amount: number, asked = 0) => (asked > amount ? usdOf(asked) : null);

const NONE: NeverFits = new Map();

/** Usage and rest of a key's limits and budgets. */
export async function usageReport(
  limits: Limits,
  principal: Principal,
  neverFits = NONE,
): Promise<UsageReport> {
  const keyLimits = keyLimitsOf(principal);
  const usages = keyLimits.all.length === 0 ? [] : await limits.usage(keyLimits.all);
  const reported: LimitReport[] = [];
  const budgets: BudgetReport[] = [];
  for (const usage of usages) {
    const { limit, used, remaining, resetMs } = usage;
    if (limit.kind === 'window') {
      const own = keyLimits.budgets.find((one) => one.limit === limit);
      if (own !== undefined) budgets.push(budgetReport(own.budget, usage, neverFits));
      continue;
    }
    reported.push({
      limit: limitNameOf(limit),
      amount: limit.amount,
      used,
      remaining,
      reset_seconds: resetMs === undefined ? null : Math.ceil(resetMs / 1000),
    });
  }
  return { object: 'usage', key: principal.name, limits: reported, budgets };
}

/** A budget, and whose it is. */
export interface OwnedBudget {
  readonly budget: Budget;
  /** Left out for a budget that several keys share. */
  readonly key?: { readonly id: string; readonly name: string };
  /** Of a shared budget: the labels of its keys. */
  readonly labels?: Readonly<Record<string, string>>;
}

export type OwnedBudgetReport = BudgetReport & {
  readonly id: string;
  /** Shares of the amount at which a warning is sent, ascending. */
  readonly warn: readonly number[];
  readonly key: string | null;
  readonly key_name: string | null;
  readonly labels: Readonly<Record<string, string>> | null;
};

export interface BudgetsReport {
  readonly object: 'list';
  readonly data: readonly OwnedBudgetReport[];
  readonly has_more: boolean;
}

/**
 * `GET /admin/v1/budgets`: how these budgets stand, those first of which the largest share is used.
 * @param owned there may be as many as keys
 */
export async function budgetsReport(
  limits: Limits,
  owned: Iterable<OwnedBudget>,
  limit: number,
  neverFits = NONE,
): Promise<BudgetsReport> {
  const budgets = await runInSlices(listed(owned));
  const usages: LimitUsage[] = [];
  for (let at = 0; at < budgets.length; at += AT_ONCE) {
    const slice = budgets.slice(at, at + AT_ONCE).map(({ budget }) => budgetLimit(budget));
    usages.push(...(await limits.usage(slice)));
  }
  const share = (at: number) => usages[at]!.used / Math.max(1, budgets[at]!.budget.nanoUsd);
  const order = budgets.map((_, at) => at).toSorted((a, b) => share(b) - share(a) || a - b);
  const data = order.slice(0, limit).map((at): OwnedBudgetReport => {
    const { budget, key, labels } = budgets[at]!;
    return {
      id: budget.id,
      ...budgetReport(budget, usages[at]!, neverFits),
      warn: budget.warn,
      key: key?.id ?? null,
      key_name: key?.name ?? null,
      labels: labels ?? null,
    };
  });
  return { object: 'list', data, has_more: order.length > limit };
}

function* listed(owned: Iterable<OwnedBudget>): Steps<readonly OwnedBudget[]> {
  const all: OwnedBudget[] = [];
  for (const one of owned) {
    all.push(one);
    yield;
  }
  return all;
}
