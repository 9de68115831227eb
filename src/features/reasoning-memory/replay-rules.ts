/** Which reasoning a target expects to get back in later requests. */

import type { Profile } from '../../conversation/profile-facts.ts';
import type { Target } from '../../conversation/target.ts';
import type { ProtocolName, ReasoningBlock, Sealed } from '../../conversation/types.ts';

export interface ReplayRules {
  /** Which answers get their readable (unsealed) reasoning back. */
  readonly text: 'calls' | 'all' | 'none';
  /** Sealed reasoning is sent back. */
  readonly sealed: boolean;
}

/**
 * Chat vendors get sealed reasoning back. If they have a field for reasoning text, they get the text for
 * answers that called tools (according to their documentation they ignore or refuse it for other answers),
 * and with `reasoningReplay: all` for all answers. Messages and Responses take only sealed reasoning,
 * unless the profile says that the vendor reads the text (DeepSeek's Responses).
 */
export function replayRules({ protocol, profile }: Target): ReplayRules {
  const { reasoningField, reasoningReplay, callSignatures } = profile;
  if (protocol === 'anthropic-messages') return { text: 'none', sealed: true };
  if (reasoningField === 'none') {
    return { text: 'none', sealed: protocol === 'openai-responses' || callSignatures === true };
  }
  const reads = protocol === 'openai-chat' || reasoningField === 'reasoning_content';
  return { text: reads ? (reasoningReplay ?? 'calls') : 'none', sealed: true };
}

/** Can a target of this protocol use this seal? */
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

/** Is this block sent back to the target? `calls`: its answer called tools. */
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
 * Aggregators serve models of many makers (`anthropic/claude-…`, `google/gemini-…`). A maker cannot read
 * what another one sealed.
 */
export function sameMaker(a: string, b: string): boolean {
  return makerOf(a) === makerOf(b);
}

const makerOf = (model: string) => (model.includes('/') ? model.slice(0, model.indexOf('/')) : '');
