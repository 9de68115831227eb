/** The hop ledger that all replicas share: what one answered, any other continues. */

import type { RoomKind, SharedRoom } from '../../state/shared-entries.ts';
import type { Prefetch } from '../feature.ts';
import type { HopEntry, HopLedger } from './hop-ledger.ts';

/** Answers with hidden hops. */
export const SHARED_HOPS: RoomKind = { name: 'hops', ttlMs: 14 * 24 * 3_600_000, keep: 'newest' };

/** Turns that wait for the results of the client's own calls, and hold what must not outlive them. */
export const SHARED_TURNS: RoomKind = { name: 'turns', ttlMs: 6 * 3_600_000, keep: 'newest' };

export interface SharedHopLedger extends HopLedger {
  readonly prefetch: Prefetch;
}

/** @param group the memory space of the entries, with which they are erased; for one exchange */
export function sharedHopLedger(room: SharedRoom<HopEntry>, group?: string): SharedHopLedger {
  let epoch: string | undefined;
  return {
    // Other replicas may have entries.
    empty: false,
    find(keys) {
      for (const key of keys) {
        const entry = room.get(key, group);
        if (entry !== undefined) return entry;
      }
      return undefined;
    },
    put(keys, entry) {
      if (group === undefined) room.put(keys, entry);
      else if (epoch !== undefined) room.put(keys, entry, group, epoch);
    },
    prefetch(keys) {
      const learn = () => {
        if (group !== undefined) epoch ??= room.epochOf(group);
      };
      const reading = room.prefetch(keys, group);
      if (reading === undefined) learn();
      return reading?.then(learn);
    },
    flush: () => {},
    close: () => {},
  };
}
