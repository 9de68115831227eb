/** What both protocols of OpenAI say and refuse in the same way. */

import type { Notes } from './notes.ts';

// Longer ones are refused: `Invalid 'user': string too long`.
const USER_LIMIT = 64;

/** A `user` as OpenAI takes it; undefined, with a note, where it is too long. */
export function takenUser(user: string | undefined, notes: Notes): string | undefined {
  if (user === undefined || user.length <= USER_LIMIT) return user;
  notes.add('parameter_dropped', 'user', 'too long');
  return undefined;
}
