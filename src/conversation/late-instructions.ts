/** Moves instructions in mid-conversation into user turns, for models that accept them only at the start. */

import { isObject } from '../lib/json/json.ts';
import { mapUnchanged } from './edit.ts';
import type { Notes } from './notes.ts';
import type { Turn } from './types.ts';

/** The turns of a Messages conversation, with each system or developer turn as a user turn and a note. */
export function instructionsAsUser(turns: readonly Turn[], notes: Notes): readonly Turn[] {
  return mapUnchanged(turns, (turn) => {
    if (turn.role !== 'system' && turn.role !== 'developer') return turn;
    notes.add('content_bridged', '/messages', `${turn.role} turn as user text`);
    // Only a system message may carry settings, such as an effort for what follows.
    for (const key of settingsOf(turn)) notes.add('parameter_dropped', `/messages/${key}`);
    return { role: 'user', blocks: turn.blocks };
  });
}

/** The wire message's members other than role and content. */
function settingsOf(turn: Turn): readonly string[] {
  const value = (turn.wire ?? turn.residue)?.value;
  return isObject(value) ? Object.keys(value).filter((key) => !/^(role|content)$/.test(key)) : [];
}
