/** The ledger of short results that all replicas share: a result stays as short as it was sent first. */

import type { RoomKind, SharedRoom } from '../../state/shared-entries.ts';
import type { Prefetch } from '../feature.ts';
import type { ShortResultLedger } from './short-result-ledger.ts';

export const SHARED_SHORT_RESULTS: RoomKind = {
  name: 'short',
  ttlMs: 14 * 24 * 3_600_000,
  keep: 'first',
};

export interface SharedShortResultLedger extends ShortResultLedger {
  readonly prefetch: Prefetch;
}

export const sharedShortResultLedger = (room: SharedRoom<number>): SharedShortResultLedger => ({
  limitOf: (key) => room.get(key),
  put: (key, limit) => room.put([key], limit),
  prefetch: (keys) => room.prefetch(keys),
  close: () => {},
});
