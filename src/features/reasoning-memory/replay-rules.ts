/** What a target wants back of the reasoning that it made. */

import type { Profile, Target } from '../../conversation/target.ts';
import type { ProtocolName, ReasoningBlock, Sealed } from '../../conversation/types.ts';

export interface ReplayRules {
  /** Which answers get their readable, unsealed reasoning back. */
  readonly text: 'calls' | 'all' | 'none';
  /** Sealed reasoning goes back. */
  readonly sealed: boolean;
}

/**
 * Chat vendors that sign or encrypt want it back, those with a field for it want it where the model
 * called tools (their own documents say that reasoning of plain answers is ignored or refused), and
 * those of `reasoningReplay: all` everywhere. Messages and Responses take sealed reasoning alone,
 * except that a vendor may say that it reads the text (DeepSeek's Responses).
 */
export function replayRules({ protocol, profile }: Target): ReplayRules {
  const { reasoningField, reasoningReplay } = profile;
  if (protocol === 'anthropic-messages') return { text: 'none', sealed: true };
  if (reasoningField === 'none') {
    return { text: 'none', sealed: protocol === 'openai-responses' };
  }
  const reads = protocol === 'openai-chat' || reasoningField === 'reasoning_content';
  return { text: reads ? (reasoningReplay ?? 'calls') : 'none', sealed: true };
}

/** Does this seal open anything for a target of this protocol? */
export function isGenuine(
  sealed: Sealed | undefined,
  protocol: ProtocolName,
  profile: Profile,
): sealed is Sealed {
  if (sealed === undefined || sealed.protocol !== protocol) return false;
  return (
    sealed.value !== '' || (protocol === 'anthropic-messages' && profile.anySignature === true)
  );
}

/** Does the target get this block back on an answer with (or without) calls? */
export function isReplayed(
  block: ReasoningBlock,
  { protocol, profile }: Target,
  wanted: ReplayRules,
  calls: boolean,
): boolean {
  if (isGenuine(block.sealed, protocol, profile)) return wanted.sealed;
  if (block.text.trim() === '') return false;
  return wanted.text === 'all' || (calls && wanted.text === 'calls');
}

/**
 * Aggregators serve models of many makers under one roof (`anthropic/claude-…`, `google/gemini-…`),
 * and what one maker sealed the other cannot read.
 */
export function sameMaker(a: string, b: string): boolean {
  return makerOf(a) === makerOf(b);
}

const makerOf = (model: string) => (model.includes('/') ? model.slice(0, model.indexOf('/')) : '');
