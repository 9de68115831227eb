/** The memory of which tool results were sent short, so that they stay short once they are history. */

/**
 * Keys are opaque (see {@link resultKey}); the value is the limit in characters that a text was cut to (0:
 * none), from which the same short text is made again. Bounded: the least recently used go first.
 */
export interface ShortResultLedger {
  limitOf(key: string): number | undefined;
  put(key: string, limit: number): void;
  /** Writes down what is still in memory and lets go of it. */
  close(): void;
}

export const DEFAULT_ROWS = 50_000;

/** The key of a result: its call's id and a hash of what the client sent as its content. */
export function resultKey(callId: string, content: string): string {
  return `${callId.slice(0, 128)} ${Bun.hash.xxHash64(content).toString(36)} ${content.length.toString(36)}`;
}

/** A ledger that lives as long as the process. */
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
