/** Instructions amid the dialogue, for models that take them only in front of it. */

import { isObject } from '../lib/json/json.ts';
import { mapUnchanged } from './edit.ts';
import type { Notes } from './notes.ts';
import type { Turn } from './types.ts';

/** Turns of Messages with the instructions among them as the user's words, each with a note. */
export function instructionsAsUser(turns: readonly Turn[], notes: Notes): readonly Turn[] {
  return mapUnchanged(turns, (turn) => {
    if (turn.role !== 'system' && turn.role !== 'developer') return turn;
    notes.add('content_bridged', '/messages', `${turn.role} turn as user text`);
    // Only a system message may carry settings (an effort from there on).
    for (const key of settingsOf(turn)) notes.add('parameter_dropped', `/messages/${key}`);
    return { role: 'user', blocks: turn.blocks };
  });
}

/** Members of the wire's message beside role and content. */
function settingsOf(turn: Turn): readonly string[] {
  const value = (turn.wire ?? turn.residue)?.value;
  return isObject(value) ? Object.keys(value).filter((key) => !/^(role|content)$/.test(key)) : [];
}
