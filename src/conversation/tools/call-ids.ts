/** Call ids for vendors and protocols that restrict them: stable between requests, and unique. */

import type { Turn } from '../types.ts';

/**
 * New ids for those call ids of a history that are not `legal`, by the old id. A new id depends on the old
 * one alone, so that a call has the same id in every later request and prompt caches hit. Only if the new id
 * is already in use, a number is added to the seed.
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

/** The prefix of an id that wraps another id. */
const ENVELOPE_PREFIX = 'toolu_hg1_';

// messages.N.content.M.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'
export const MESSAGES_CALL_ID = /^[a-zA-Z0-9_-]+$/;

/**
 * A call id that Messages accepts. An id that it refuses (Kimi's `functions.f:0`) is encoded into one that it
 * accepts. {@link unwrapCallId} restores it without stored state, so the vendor gets its own id back.
 */
export function wrapCallId(id: string): string {
  if (MESSAGES_CALL_ID.test(id) && !id.startsWith(ENVELOPE_PREFIX)) return id;
  return ENVELOPE_PREFIX + Buffer.from(id).toString('base64url');
}

/** The id inside an id made by {@link wrapCallId}; any other id unchanged. */
export function unwrapCallId(id: string): string {
  if (!id.startsWith(ENVELOPE_PREFIX)) return id;
  const opened = Buffer.from(id.slice(ENVELOPE_PREFIX.length), 'base64url').toString();
  return opened !== '' && wrapCallId(opened) === id ? opened : id;
}

/** An id that an earlier call has already: a count, then the id, in characters that every protocol accepts. */
const REPEATED = /^toolu_hg2_(0|[1-9]\d{0,14})_([a-zA-Z0-9_-]+)$/;

/** A new id for a call whose vendor gave it the id of an earlier call. It differs for each count. */
export const wrapRepeatedId = (id: string, count: number): string =>
  `toolu_hg2_${count}_${Buffer.from(id).toString('base64url')}`;

/** The id inside an id made by {@link wrapRepeatedId}; any other id unchanged. */
export function unwrapRepeatedId(id: string): string {
  const found = id.startsWith('toolu_hg2_') ? REPEATED.exec(id) : null;
  if (found === null) return id;
  const opened = Buffer.from(found[2]!, 'base64url').toString();
  return wrapRepeatedId(opened, Number(found[1])) === id ? opened : id;
}
