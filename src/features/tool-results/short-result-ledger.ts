/** Remembers which tool results were sent short, so that later requests send the same short text. */

import { unwrapRepeatedId } from '../../conversation/tools/call-ids.ts';

/**
 * Maps a key (see {@link resultKey}) to the limit in characters that was used (0: none), from which the
 * same short text is made again. Bounded; the least recently used entries are dropped first.
 */
export interface ShortResultLedger {
  limitOf(key: string): number | undefined;
  put(key: string, limit: number): void;
  /** Writes pending entries and releases the file. */
  close(): void;
}

export const DEFAULT_ROWS = 50_000;

/** The key of a result: the call's id and a hash of the content that the client sent. */
export function resultKey(callId: string, content: string): string {
  // Looked up with the vendor's id, read ahead with the client's.
  const id = unwrapRepeatedId(callId).slice(0, 128);
  return `${id} ${Bun.hash.xxHash64(content).toString(36)} ${content.length.toString(36)}`;
}

/** A ledger in memory; it lasts as long as the process. */
export function memoryShortResultLedger(rows = DEFAULT_ROWS): ShortResultLedger {
  const known = new Map<string, number>();
  return {
    limitOf(key) {
      const limit = known.get(key);
      if (limit === undefined) return undefined;
      known.delete(key);
      known.set(key, limit);
      return limit;
    },
    put(key, limit) {
      known.delete(key);
      known.set(key, limit);
      if (known.size > rows) known.delete(known.keys().next().value!);
    },
    close: () => known.clear(),
  };
}
