/** Remembers which tool results were sent short, so that later requests send the same short text. */

import { unwrapRepeatedId } from '../../conversation/tools/call-ids.ts';
import { intoEntries } from '../../state/key-value/file-store.ts';
import type { Entries, RoomKind } from '../../state/key-value/room.ts';

/**
 * Maps a key (see {@link resultKey}) to the limit in characters that was used (0: none), from which the
 * same short text is made again. A result stays as short as it was sent first.
 */
export type ShortResultLedger = Entries<number>;

export const SHORT_RESULTS: RoomKind<number> = {
  name: 'short',
  title: 'ledger of short tool results',
  keep: 'first',
  ttlMs: 14 * 24 * 3_600_000,
  memory: { entries: 50_000, bytes: Number.POSITIVE_INFINITY },
  file: {
    name: 'sent-short.db',
    version: 2,
    upgrades: {
      1: intoEntries('SELECT key, chars AS value, used FROM sent_short', 'sent_short'),
    },
    entries: 50_000,
    bytes: Number.POSITIVE_INFINITY,
    ageMs: Number.POSITIVE_INFINITY,
    flushAfterMs: 500,
  },
};

/** The key of a result: the call's id and a hash of the content that the client sent. */
export function resultKey(callId: string, content: string): string {
  // Looked up with the vendor's id, read ahead with the client's.
  const id = unwrapRepeatedId(callId).slice(0, 128);
  return `${id} ${Bun.hash.xxHash64(content).toString(36)} ${content.length.toString(36)}`;
}
