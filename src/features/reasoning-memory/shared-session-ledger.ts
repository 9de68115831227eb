/** The session ledger that all replicas share: the first entry of a key stays. */

import type { RoomKind, SharedRoom } from '../../state/shared-entries.ts';
import type { Prefetch } from '../feature.ts';
import type { LedgerEntry, SessionLedger } from './session-ledger.ts';

export const SHARED_ANSWERS: RoomKind = {
  name: 'answers',
  ttlMs: 14 * 24 * 3_600_000,
  keep: 'first',
};

export interface SharedSessionLedger extends SessionLedger {
  readonly prefetch: Prefetch;
}

export const sharedSessionLedger = (room: SharedRoom<LedgerEntry>): SharedSessionLedger => ({
  // Other replicas may have entries.
  empty: false,
  find(keys) {
    for (const key of keys) {
      const entry = room.get(key);
      if (entry !== undefined) return entry;
    }
    return undefined;
  },
  put: (keys, entry) => room.put(keys, entry),
  prefetch: (keys) => room.prefetch(keys),
  close: () => {},
});
