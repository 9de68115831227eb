/** Before pairing: repairs what a protocol refuses wherever it stands in a history. */

import { instructionsAsUser, mapUnchanged, withParts } from '../../conversation/edit.ts';
import type { Notes } from '../../conversation/notes.ts';
import type { Conversation } from '../../conversation/types.ts';
import { cleanContents } from './google/contents.ts';
import { cleanSystem, cleanTurn } from './messages/blocks.ts';
import type { SealContext } from './messages/thinking.ts';
import { cleanChat } from './openai/chat-messages.ts';
import { cleanItems } from './openai/responses-items.ts';
import type { PairingRules, RepairCounts } from './rules.ts';

/** The conversation without blocks and messages that are refused at any position; the same reference if there are none. */
export function clean(
  conversation: Conversation,
  rules: PairingRules,
  sealContext: SealContext,
  notes: Notes,
  counts: RepairCounts,
): Conversation {
  if (!rules.sameProtocol) return conversation;
  switch (rules.protocol) {
    case 'anthropic-messages': {
      // Before pairing: user text separates calls from their results, asides do not.
      const { turns } = conversation;
      const spoken = rules.asidesAllowed ? turns : instructionsAsUser(turns, notes);
      return withParts(conversation, {
        system: cleanSystem(conversation.system, counts),
        turns: mapUnchanged(spoken, (turn) => cleanTurn(turn, sealContext, counts)),
      });
    }
    case 'openai-chat': {
      const note = (at: number) => notes.add('message_shape_repaired', `/messages/${at}`);
      return withParts(conversation, { turns: cleanChat(conversation.turns, note) });
    }
    case 'openai-responses':
      return withParts(conversation, {
        turns: cleanItems(conversation, conversation.turns, notes),
      });
    case 'google-gemini': {
      const note = (what: string) => notes.add('message_shape_repaired', '/contents', what);
      return withParts(conversation, { turns: cleanContents(conversation.turns, counts, note) });
    }
  }
}
