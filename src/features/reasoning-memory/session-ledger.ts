/** What a session's answers were made with and clients do not give back: reasoning, seals, signatures of calls. */

import type { ProtocolName, ReasoningBlock, Sealed } from '../../conversation/types.ts';

/** One part of an answer, in its order. Text only says where it stood. */
export type AnswerPiece =
  | { readonly type: 'reasoning'; readonly block: ReasoningBlock }
  | { readonly type: 'call'; readonly id: string; readonly sealed?: Sealed }
  | { readonly type: 'text' };

/** One answer of a model. */
export interface LedgerEntry {
  /** Says which entry it is; made of its keys. */
  readonly id: string;
  readonly provider: string;
  readonly protocol: ProtocolName;
  readonly model: string;
  readonly pieces: readonly AnswerPiece[];
}

export interface SessionLedger {
  /** Nothing is kept: no request needs a look. */
  readonly empty: boolean;
  /** The entry behind the first of the keys that is known. */
  find(keys: readonly string[]): LedgerEntry | undefined;
  /**
   * Keeps an entry under those of the keys that are free. What a key once stood for stays: the
   * history that was sent with it must be sent so again, or the vendor's prompt cache is lost.
   */
  put(keys: readonly string[], entry: LedgerEntry): void;
  close(): void;
}

export interface MemoryLimits {
  readonly entries: number;
  /** Characters of reasoning and seals. */
  readonly chars: number;
}

const DEFAULT_LIMITS: MemoryLimits = { entries: 4000, chars: 32_000_000 };

/** A ledger in memory alone, the least recently used answers first to go. */
export function memorySessionLedger(limits: Partial<MemoryLimits> = {}): SessionLedger {
  const { entries: most, chars: room } = { ...DEFAULT_LIMITS, ...limits };
  /** In order of use. */
  const kept = new Map<string, { readonly entry: LedgerEntry; readonly keys: string[] }>();
  const idOf = new Map<string, string>();
  let chars = 0;
  const drop = (id: string) => {
    const known = kept.get(id);
    if (known === undefined) return;
    kept.delete(id);
    chars -= sizeOf(known.entry);
    for (const key of known.keys) idOf.delete(key);
  };
  return {
    get empty() {
      return kept.size === 0;
    },
    find(keys) {
      for (const key of keys) {
        const id = idOf.get(key);
        const known = id === undefined ? undefined : kept.get(id);
        if (id === undefined || known === undefined) continue;
        kept.delete(id);
        kept.set(id, known);
        return known.entry;
      }
      return undefined;
    },
    put(keys, entry) {
      const free = keys.filter((key) => !idOf.has(key));
      const size = sizeOf(entry);
      if (free.length === 0 || size > room) return;
      for (const key of free) idOf.set(key, entry.id);
      const known = kept.get(entry.id);
      if (known !== undefined) {
        known.keys.push(...free);
        return;
      }
      kept.set(entry.id, { entry, keys: free });
      chars += size;
      for (const id of kept.keys()) {
        if (kept.size <= most && chars <= room) break;
        drop(id);
      }
    },
    close: () => {},
  };
}

/** Characters that an entry holds, roughly. */
export function sizeOf({ pieces }: LedgerEntry): number {
  let size = 0;
  for (const piece of pieces) {
    if (piece.type === 'reasoning') {
      size += piece.block.text.length + (piece.block.sealed?.value.length ?? 0);
    } else if (piece.type === 'call') size += piece.id.length + (piece.sealed?.value.length ?? 0);
  }
  return size;
}
