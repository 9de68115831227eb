/** Efforts of reasoning, and the token budgets that stand for them where a vendor wants a number. */

import { memberOf } from '../../lib/json/json-members.ts';

/** From the least to the most. */
export const EFFORTS = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const;
export type Effort = (typeof EFFORTS)[number];

/** Tokens, as gateways between these vendors commonly map them. */
export const EFFORT_BUDGETS: Readonly<Record<string, number>> = {
  minimal: 1024,
  low: 2048,
  medium: 8192,
  high: 16_384,
  xhigh: 32_768,
  max: 32_768,
};

/** The effort for a budget in tokens, for vendors that take no number. Other translators use the same bounds. */
export function effortOfBudget(budget: number): 'low' | 'medium' | 'high' {
  if (budget < 4096) return 'low';
  return budget < 16_384 ? 'medium' : 'high';
}

/** The token budget of an effort. An unknown effort, or none, gets that of `medium`. */
export const budgetOfEffort = (effort = 'medium'): number =>
  memberOf(EFFORT_BUDGETS, effort) ?? EFFORT_BUDGETS.medium!;
