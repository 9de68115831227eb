/** Efforts of reasoning, and the token budgets that stand for them where a vendor wants a number. */

import { memberOf } from '../../lib/json/json-members.ts';
import type { Profile } from '../profile-facts.ts';
import type { Conversation, ReasoningSettings } from '../types.ts';

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

export const isOff = (requested: ReasoningSettings | undefined) =>
  requested?.enabled === false || requested?.effort === 'none';

export const asksForReasoning = (requested: ReasoningSettings | undefined) =>
  requested !== undefined &&
  (requested.enabled === true ||
    requested.adaptive === true ||
    requested.effort !== undefined ||
    requested.budget !== undefined);

/** Will the model reason on this request, according to its profile? */
export function willReason({ settings }: Conversation, profile: Profile): boolean {
  const { thinkingDefault } = profile;
  if (thinkingDefault === 'always') return true;
  if (isOff(settings.reasoning)) return false;
  return asksForReasoning(settings.reasoning) || thinkingDefault === 'on';
}
