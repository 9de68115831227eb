/** A prefill: a last turn of the assistant, which the model is to continue. */

import { willReason } from './models/will-reason.ts';
import type { Target } from './target.ts';
import type { Conversation } from './types.ts';

/**
 * The text that the target gets as a marked message; undefined: it gets none. Chat clients mark their messages
 * themselves.
 */
export function markedPrefill(
  conversation: Conversation,
  { profile, protocol }: Target,
): string | undefined {
  if (profile.prefill === undefined || protocol !== 'openai-chat') return undefined;
  const { origin, turns } = conversation;
  if (origin?.protocol === protocol) return undefined;
  if (profile.prefillWhileThinking === false && willReason(conversation, profile)) return undefined;
  // Responses splits an answer into turns.
  const texts: string[] = [];
  for (let at = turns.length - 1; turns[at]?.role === 'assistant'; at--) {
    let text = '';
    for (const block of turns[at]!.blocks) {
      if (block.type === 'text') text += block.text;
      else if (block.type !== 'reasoning') return undefined;
    }
    if (text !== '') texts.push(text);
  }
  return texts.length === 0 ? undefined : texts.reverse().join('\n\n');
}
