/** Ids of calls for a wire that takes only some shapes of them: stable from request to request, never two alike. */

import type { Turn } from '../types.ts';

/**
 * New ids for those of a history that are not `legal`, by the old ones; empty where all are. An id is
 * made from the old one alone, so that the same call has the same id in every later request (prompt
 * caches); only where it is taken already, from the old one and a number.
 */
export function legalCallIds(
  turns: readonly Turn[],
  legal: RegExp,
  make: (seed: string) => string,
): ReadonlyMap<string, string> {
  const taken = new Set<string>();
  const refused = new Set<string>();
  for (const turn of turns) {
    for (const block of turn.blocks) {
      const id =
        block.type === 'tool-call'
          ? block.id
          : block.type === 'tool-result'
            ? block.callId
            : undefined;
      if (id !== undefined) (legal.test(id) ? taken : refused).add(id);
    }
  }
  const made = new Map<string, string>();
  for (const id of refused) {
    let name = make(id);
    for (let i = 1; taken.has(name); i++) name = make(`${id}\0${i}`);
    taken.add(name);
    made.set(id, name);
  }
  return made;
}

/** What an id of a call begins with that stands for another one. */
const ENVELOPE_PREFIX = 'toolu_hg1_';

// messages.N.content.M.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'
export const MESSAGES_CALL_ID = /^[a-zA-Z0-9_-]+$/;

/**
 * An id as Messages takes it. One that it refuses (`functions.f:0` of Kimi) is carried whole in one that
 * it takes, so that {@link unwrapCallId} gives it back without any memory: the vendor that made it gets
 * its own id again.
 */
export function wrapCallId(id: string): string {
  if (MESSAGES_CALL_ID.test(id) && !id.startsWith(ENVELOPE_PREFIX)) return id;
  return ENVELOPE_PREFIX + Buffer.from(id).toString('base64url');
}

/** The id that a client was given by {@link wrapCallId}; any other id is itself. */
export function unwrapCallId(id: string): string {
  if (!id.startsWith(ENVELOPE_PREFIX)) return id;
  const opened = Buffer.from(id.slice(ENVELOPE_PREFIX.length), 'base64url').toString();
  return opened !== '' && wrapCallId(opened) === id ? opened : id;
}
