/** Fits the reasoning settings to the model. */

import { withParts } from '../../conversation/edit.ts';
import { budgetOfEffort, EFFORTS, effortOfBudget } from '../../conversation/models/efforts.ts';
import { asksForReasoning, isOff } from '../../conversation/models/will-reason.ts';
import type { Block, Conversation, ReasoningSettings } from '../../conversation/types.ts';
import { isObject } from '../../lib/json/json.ts';
import type { FitContext, FitRule } from './rule.ts';

/** Can a request to this target turn reasoning off? */
export function canBeOff({ profile, protocol }: FitContext): boolean {
  if (profile.thinkingDefault === 'always') return false;
  if (protocol !== 'openai-chat') return true;
  const param = profile.reasoningParam ?? 'reasoning_effort';
  if (param === 'none') return false;
  return param !== 'reasoning_effort' || (profile.efforts?.includes('none') ?? false);
}

/** Maps the requested reasoning to what the model supports: no "off" if it always reasons, a known effort, its own form. */
export const fitReasoning: FitRule = (conversation, context) => {
  const before = conversation.settings.reasoning;
  if (before === undefined) return conversation;
  if (context.profile.reasoningParam === 'none') return withoutReasoning(conversation, context);
  const after = supportedForm(nearestEffort(withoutOff(before, context), context), context);
  if (after === before) return conversation;
  return withParts(conversation, { settings: { ...conversation.settings, reasoning: after } });
};

/** Chat: with function tools some models must be told not to reason, even where nothing was asked for. */
export const fitChatTools: FitRule = (conversation, { profile, protocol, notes }) => {
  const { settings, tools } = conversation;
  if (protocol !== 'openai-chat' || profile.chatToolsWhileThinking !== false) return conversation;
  if (!tools.some(({ type }) => type === 'function')) return conversation;
  const { reasoning } = settings;
  if (reasoning?.effort === 'none' || profile.efforts?.includes('none') === false) {
    return conversation;
  }
  const what = asksForReasoning(reasoning) ? `effort ${reasoning?.effort ?? 'on'}` : 'not set';
  notes.add(
    'parameter_mapped',
    'reasoning',
    `${what} as none: over Chat no tools beside reasoning`,
  );
  return withParts(conversation, { settings: { ...settings, reasoning: { effort: 'none' } } });
};

/** Messages: asks the vendor to drop thinking of the history that no longer fits its prefix, instead of refusing it. */
export const fitBoundThinking: FitRule = (conversation, { profile, protocol, notes }) => {
  const { boundThinking } = profile;
  if (boundThinking === undefined || protocol !== 'anthropic-messages') return conversation;
  const { turns, settings, origin } = conversation;
  if (settings.reasoning?.dropUnbound === true) return conversation;
  if (origin?.protocol === protocol) {
    const { thinking } = origin.value;
    if (isObject(thinking) && thinking.block_binding !== undefined) return conversation;
    const { parts } = origin;
    const changed =
      turns !== parts.turns ||
      conversation.tools !== parts.tools ||
      conversation.system !== parts.system;
    if (!changed && boundThinking !== 'always') return conversation;
  }
  const thinks = turns.some(({ blocks }) =>
    blocks.some(({ type, sealed }: Block & { sealed?: unknown }) =>
      type === 'reasoning' ? sealed !== undefined : false,
    ),
  );
  if (!thinks) return conversation;
  notes.add('parameter_mapped', 'thinking', 'blocks of another prefix are dropped');
  const reasoning = { ...settings.reasoning, dropUnbound: true } as const;
  return withParts(conversation, { settings: { ...settings, reasoning } });
};

/** The model has no setting for it; sealed reasoning exists only where a model reasons. */
function withoutReasoning(
  conversation: Conversation,
  { profile, notes }: FitContext,
): Conversation {
  const { reasoning, include, ...settings } = conversation.settings;
  // Off is what a model without reasoning does anyway.
  if (asksForReasoning(reasoning)) notes.add('parameter_dropped', 'reasoning');
  const kept =
    profile.thinkingDefault === 'off'
      ? include?.filter((item) => item !== 'reasoning.encrypted_content')
      : include;
  const left = kept?.length === include?.length ? include : kept;
  return withParts(conversation, {
    settings: { ...settings, ...(left !== undefined && left.length > 0 && { include: left }) },
  });
}

type RequestedReasoning = ReasoningSettings | undefined;

/** A model that always reasons gets its lowest effort instead of "off". */
function withoutOff(
  requested: ReasoningSettings,
  { profile, notes }: FitContext,
): RequestedReasoning {
  if (!isOff(requested) || profile.thinkingDefault !== 'always') return requested;
  const least = profile.efforts?.find((effort) => effort !== 'none');
  if (least === undefined) {
    notes.add('parameter_dropped', 'reasoning', 'this model always reasons');
    return undefined;
  }
  notes.add('parameter_mapped', 'reasoning', `off as ${least}: this model always reasons`);
  return { effort: least };
}

/** The effort that the codec is going to write for a budget. */
function effortOfNumber(
  requested: RequestedReasoning,
  { profile, protocol }: FitContext,
): string | undefined {
  const { budget } = requested ?? {};
  if (budget === undefined || isOff(requested)) return undefined;
  const asEffort =
    protocol === 'openai-responses' ||
    (protocol === 'openai-chat' &&
      (profile.reasoningParam ?? 'reasoning_effort') === 'reasoning_effort');
  return asEffort ? effortOfBudget(budget) : undefined;
}

const rankOf = (effort: string): number => (EFFORTS as readonly string[]).indexOf(effort);

function nearestEffort(requested: RequestedReasoning, context: FitContext): RequestedReasoning {
  const { profile, notes } = context;
  const { efforts } = profile;
  const effort = requested?.effort ?? effortOfNumber(requested, context);
  if (requested === undefined || effort === undefined || efforts === undefined) return requested;
  if (effort === 'none' || (efforts as readonly string[]).includes(effort)) return requested;
  const rank = rankOf(effort);
  const known = efforts.filter((one) => one !== 'none');
  if (rank < 0) return requested;
  if (known.length === 0) {
    // It can only be switched off: it reasons as much as it likes otherwise.
    notes.add('parameter_dropped', 'reasoning', `effort ${effort}`);
    return undefined;
  }
  const distance = (one: string) => {
    const far = rankOf(one) - rank;
    // Of two that are equally near, the larger one: the answer should not become worse.
    return Math.abs(far) * 2 - (far > 0 ? 1 : 0);
  };
  const nearest = [...known].sort((a, b) => distance(a) - distance(b))[0]!;
  notes.add('parameter_mapped', 'reasoning', `effort ${effort} as ${nearest}`);
  return { ...requested, effort: nearest };
}

/** Messages: older models accept only a budget, the newest ones none. */
function supportedForm(
  requested: RequestedReasoning,
  { profile, notes, protocol, sameProtocol }: FitContext,
): RequestedReasoning {
  if (requested === undefined || !sameProtocol || protocol !== 'anthropic-messages') {
    return requested;
  }
  if (isOff(requested)) {
    const { thinkingOff = 'disabled' } = profile;
    if (thinkingOff === 'disabled' || requested.adaptive === false) return requested;
    notes.add('parameter_mapped', 'thinking', `disabled as ${thinkingOff}`);
    // Another object, so that the codec writes it.
    return { enabled: false, adaptive: false };
  }
  if (requested.adaptive === true && profile.adaptiveThinking === false) {
    const { adaptive: _adaptive, effort, ...rest } = requested;
    const budget = budgetOfEffort(effort);
    notes.add('parameter_mapped', 'thinking', `adaptive as a budget of ${budget} tokens`);
    return { ...rest, enabled: true, budget };
  }
  if (requested.budget !== undefined && profile.budgetThinking === false) {
    const { budget, ...rest } = requested;
    const effort = requested.effort ?? effortOf(budget);
    notes.add('parameter_mapped', 'thinking', `a budget of ${budget} tokens as effort ${effort}`);
    return { ...rest, enabled: true, adaptive: true, effort };
  }
  return requested;
}

function effortOf(budget: number): string {
  if (budget <= 2048) return 'low';
  if (budget <= 10_240) return 'medium';
  return budget <= 24_576 ? 'high' : 'xhigh';
}
