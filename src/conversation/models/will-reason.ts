/** Predicts whether a model will reason. */

import type { Profile } from '../profile-facts.ts';
import type { Conversation, ReasoningSettings } from '../types.ts';

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
