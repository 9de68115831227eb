/** How much a model may be asked to reason, and whether it will. */

import { withParts } from '../../conversation/edit.ts';
import type { Profile } from '../../conversation/target.ts';
import type { Conversation, ReasoningSettings } from '../../conversation/types.ts';
import { memberOf } from '../../lib/json/json-members.ts';
import type { FitContext, FitRule } from './rule.ts';

const EFFORTS = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'];

/** Tokens that stand for an effort, by the bounds that translators between these vendors agree on. */
const BUDGETS: Readonly<Record<string, number>> = {
  minimal: 1024,
  low: 2048,
  medium: 8192,
  high: 16_384,
  xhigh: 32_768,
  max: 32_768,
};

const isOff = (wish: ReasoningSettings | undefined) =>
  wish?.enabled === false || wish?.effort === 'none';

const asksForReasoning = (wish: ReasoningSettings | undefined) =>
  wish !== undefined &&
  (wish.enabled === true ||
    wish.adaptive === true ||
    wish.effort !== undefined ||
    wish.budget !== undefined);

/** Will the model reason on this request, as far as its profile tells? */
export function willReason({ settings }: Conversation, profile: Profile): boolean {
  const { thinkingDefault } = profile;
  if (thinkingDefault === 'always') return true;
  if (isOff(settings.reasoning)) return false;
  return asksForReasoning(settings.reasoning) || thinkingDefault === 'on';
}

/** Can reasoning be switched off by what the target can be told? */
export function canBeOff({ profile, protocol }: FitContext): boolean {
  if (profile.thinkingDefault === 'always') return false;
  if (protocol !== 'openai-chat') return true;
  const param = profile.reasoningParam ?? 'reasoning_effort';
  if (param === 'none') return false;
  return param !== 'reasoning_effort' || (profile.efforts?.includes('none') ?? false);
}

/** The wish as this model can follow it: no "off" where there is none, an effort that it knows, its own form. */
export const fitReasoning: FitRule = (conversation, fit) => {
  const before = conversation.settings.reasoning;
  if (before === undefined) return conversation;
  const after = supportedForm(nearestEffort(withoutOff(before, fit), fit), fit);
  if (after === before) return conversation;
  return withParts(conversation, { settings: { ...conversation.settings, reasoning: after } });
};

type RequestedReasoning = ReasoningSettings | undefined;

/** The lowest effort is nearest to "off" for a model that always reasons. */
function withoutOff(wish: ReasoningSettings, { profile, notes }: FitContext): RequestedReasoning {
  if (!isOff(wish) || profile.thinkingDefault !== 'always') return wish;
  const least = profile.efforts?.find((effort) => effort !== 'none');
  if (least === undefined) {
    notes.add('parameter_dropped', 'reasoning', 'this model always reasons');
    return undefined;
  }
  notes.add('parameter_mapped', 'reasoning', `off as ${least}: this model always reasons`);
  return { effort: least };
}

function nearestEffort(
  wish: RequestedReasoning,
  { profile, notes }: FitContext,
): RequestedReasoning {
  const { efforts } = profile;
  const effort = wish?.effort;
  if (wish === undefined || effort === undefined || efforts === undefined) return wish;
  if (effort === 'none' || (efforts as readonly string[]).includes(effort)) return wish;
  const rank = EFFORTS.indexOf(effort);
  const known = efforts.filter((one) => one !== 'none');
  if (rank < 0 || known.length === 0) return wish;
  const distance = (one: string) => {
    const far = EFFORTS.indexOf(one) - rank;
    // Between two that are equally far the larger one: no answer becomes worse than was asked.
    return Math.abs(far) * 2 - (far > 0 ? 1 : 0);
  };
  const nearest = [...known].sort((a, b) => distance(a) - distance(b))[0]!;
  notes.add('parameter_mapped', 'reasoning', `effort ${effort} as ${nearest}`);
  return { ...wish, effort: nearest };
}

/** Messages: the older models take a budget, the newest ones take none. */
function supportedForm(
  wish: RequestedReasoning,
  { profile, notes, protocol, sameProtocol }: FitContext,
): RequestedReasoning {
  if (wish === undefined || !sameProtocol || protocol !== 'anthropic-messages' || isOff(wish))
    return wish;
  if (wish.adaptive === true && profile.adaptiveThinking === false) {
    const { adaptive: _adaptive, effort, ...rest } = wish;
    const budget = memberOf(BUDGETS, effort ?? 'medium') ?? BUDGETS.medium!;
    notes.add('parameter_mapped', 'thinking', `adaptive as a budget of ${budget} tokens`);
    return { ...rest, enabled: true, budget };
  }
  if (wish.budget !== undefined && profile.budgetThinking === false) {
    const { budget, ...rest } = wish;
    const effort = wish.effort ?? effortOf(budget);
    notes.add('parameter_mapped', 'thinking', `a budget of ${budget} tokens as effort ${effort}`);
    return { ...rest, enabled: true, adaptive: true, effort };
  }
  return wish;
}

function effortOf(budget: number): string {
  if (budget <= 2048) return 'low';
  if (budget <= 10_240) return 'medium';
  return budget <= 24_576 ? 'high' : 'xhigh';
}
