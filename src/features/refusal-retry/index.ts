/** Answers a refusal of the history: what the vendor named is taken out, once, for this one try. */

import { withParts } from '../../conversation/edit.ts';
import { historyRefusal } from '../../conversation/refusal.ts';
import type { Conversation } from '../../conversation/types.ts';
import type { Feature } from '../feature.ts';
import { withoutPairs } from './pairs.ts';
import { withoutThinking, withPlaceholders, withUncheckedSignatures } from './thinking.ts';

/**
 * Idle unless the target has just refused the history (`context.refusal`). Put it in front of the
 * feature that pairs calls and results: what it leaves half done is finished there. A client is never
 * told to repair its history: it would send the same one for ever.
 */
export const refusalRetry: Feature = {
  name: 'after-refusal',
  mayApply: (_body, { refusal }) => refusal !== undefined,
  request(conversation, { refusal: error, target, notes }): Conversation {
    const refusal = error && historyRefusal(error);
    if (error === undefined || refusal === undefined) return conversation;
    const own = conversation.origin?.protocol === target.protocol;
    const stripped = (where: string, what: string) =>
      notes.add('stripped_after_refusal', where, what);
    switch (refusal.kind) {
      case 'thinking':
        return withoutThinking(conversation, own ? refusal : {}, stripped);
      case 'thinking-head': {
        const bare = withoutThinking(conversation, {}, stripped);
        const { settings } = bare;
        if (settings.reasoning?.enabled === false) return bare;
        stripped('thinking', 'off for this request: the tool loop does not begin with thinking');
        return withParts(bare, { settings: { ...settings, reasoning: { enabled: false } } });
      }
      case 'thinking-missing':
        return withPlaceholders(conversation, own ? refusal.message : undefined, stripped);
      case 'call-signature':
        return withUncheckedSignatures(conversation, target, stripped);
      case 'pairing':
        return withoutPairs(conversation, error.message, stripped);
      // The profile's rules answer to the one, the body that is written to the other.
      case 'shape':
      case 'fields':
        return conversation;
    }
  },
};
