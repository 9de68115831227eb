/** Before pairing: repairs what a protocol refuses wherever it stands in a history. */

import { instructionsAsUser, mapUnchanged, withParts } from '../../conversation/edit.ts';
import type { Notes } from '../../conversation/notes.ts';
import type { Conversation, Turn } from '../../conversation/types.ts';
import { cleanContents } from './google/contents.ts';
import { cleanSystem, cleanTurn, type SealContext } from './messages/index.ts';
import { cleanChat, cleanItems } from './openai/index.ts';
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
      return withChanges(conversation, {
        system: cleanSystem(conversation.system, counts),
        turns: mapTurns(spoken, (turn) => cleanTurn(turn, sealContext, counts)),
      });
    }
    case 'openai-chat': {
      const note = (at: number) => notes.add('message_shape_repaired', `/messages/${at}`);
      return withChanges(conversation, { turns: cleanChat(conversation.turns, note) });
    }
    case 'openai-responses':
      return withChanges(conversation, {
        turns: cleanItems(conversation, conversation.turns, notes),
      });
    case 'google-gemini': {
      const note = (what: string) => notes.add('message_shape_repaired', '/contents', what);
      return withChanges(conversation, { turns: cleanContents(conversation.turns, counts, note) });
    }
  }
}

/** The conversation with these parts; the same reference if they are its own. */
export function withChanges(
  conversation: Conversation,
  parts: Partial<Pick<Conversation, 'turns' | 'system'>>,
): Conversation {
  const { turns = conversation.turns, system = conversation.system } = parts;
  return turns === conversation.turns && system === conversation.system
    ? conversation
    : withParts(conversation, { turns, system });
}

/** The turns, changed one by one; the same list if none changes. */
export function mapTurns(list: readonly Turn[], change: (turn: Turn) => Turn): readonly Turn[] {
  return mapUnchanged(list, change);
}
