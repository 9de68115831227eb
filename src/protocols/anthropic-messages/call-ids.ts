/** Ids of calls as Messages accepts them: legal, stable from request to request, never two alike. */

import type { Turn } from '../../conversation/types.ts';

const LEGAL = /^[a-zA-Z0-9_-]+$/;

/**
 * The way from the ids of a history to ids for the wire. A legal id stays; another becomes
 * `toolu_<16 hex digits>` of itself, so that the same call has the same id in every later request
 * (prompt caches) and its result follows it.
 */
export function callIds(turns: readonly Turn[]): (id: string) => string {
  const legal = new Set<string>();
  const foreign = new Set<string>();
  for (const turn of turns) {
    for (const block of turn.blocks) {
      const id =
        block.type === 'tool-call'
          ? block.id
          : block.type === 'tool-result'
            ? block.callId
            : undefined;
      if (id !== undefined) (LEGAL.test(id) ? legal : foreign).add(id);
    }
  }
  if (foreign.size === 0) return (id) => id;
  const made = new Map<string, string>();
  for (const id of foreign) {
    let name = hashed(id);
    for (let i = 1; legal.has(name); i++) name = hashed(`${id}\0${i}`);
    legal.add(name);
    made.set(id, name);
  }
  return (id) => made.get(id) ?? id;
}

const hashed = (id: string) => `toolu_${Bun.hash.xxHash64(id).toString(16).padStart(16, '0')}`;
