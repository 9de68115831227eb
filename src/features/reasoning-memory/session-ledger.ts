/** The session ledger: reasoning, seals and call signatures of answers, which clients may not send back. */

import type { ProtocolName, ReasoningBlock, Sealed } from '../../conversation/types.ts';

/** One part of an answer, in order. A text piece holds only its position. */
export type AnswerPiece =
  | { readonly type: 'reasoning'; readonly block: ReasoningBlock }
  | { readonly type: 'call'; readonly id: string; readonly sealed?: Sealed }
  | { readonly type: 'text' }
  | SealedText;

/** A seal of the text of the answer, or a seal of its own behind a piece of it. */
export interface SealedText {
  readonly type: 'sealed-text';
  readonly sealed: Sealed;
  /** Where the sealed text begins and ends in the answer's whole text, in UTF-16 units. */
  readonly start: number;
  readonly end: number;
  /** Of the whole text up to `end`: a text that the client changed gets no seal. */
  readonly digest: string;
  /** The call that it came behind, instead of a text. */
  readonly call?: string;
}

/** One answer of a model. */
export interface LedgerEntry {
  /** Identifies the entry; derived from its keys. */
  readonly id: string;
  readonly provider: string;
  readonly protocol: ProtocolName;
  readonly model: string;
  readonly pieces: readonly AnswerPiece[];
}

export interface SessionLedger {
  /** The ledger has no entries, so no request can be completed. */
  readonly empty: boolean;
  /** The entry of the first known key. */
  find(keys: readonly string[]): LedgerEntry | undefined;
  /**
   * Stores an entry under those keys that are free. A key never changes its entry: later requests must
   * repeat the history as it was sent, or the vendor's prompt cache is lost.
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

/** A ledger in memory. Drops the least recently used answers first. */
export function memorySessionLedger(limits: Partial<MemoryLimits> = {}): SessionLedger {
  const { entries: maxEntries, chars: maxChars } = { ...DEFAULT_LIMITS, ...limits };
  /** In order of use. */
  const entriesById = new Map<string, { readonly entry: LedgerEntry; readonly keys: string[] }>();
  const idOf = new Map<string, string>();
  let chars = 0;
  const drop = (id: string) => {
    const known = entriesById.get(id);
    if (known === undefined) return;
    entriesById.delete(id);
    chars -= sizeOf(known.entry);
    for (const key of known.keys) idOf.delete(key);
  };
  return {
    get empty() {
      return entriesById.size === 0;
    },
    find(keys) {
      for (const key of keys) {
        const id = idOf.get(key);
        const known = id === undefined ? undefined : entriesById.get(id);
        if (id === undefined || known === undefined) continue;
        entriesById.delete(id);
        entriesById.set(id, known);
        return known.entry;
      }
      return undefined;
    },
    put(keys, entry) {
      const free = keys.filter((key) => !idOf.has(key));
      const size = sizeOf(entry);
      if (free.length === 0 || size > maxChars) return;
      for (const key of free) idOf.set(key, entry.id);
      const known = entriesById.get(entry.id);
      if (known !== undefined) {
        known.keys.push(...free);
        return;
      }
      entriesById.set(entry.id, { entry, keys: free });
      chars += size;
      for (const id of entriesById.keys()) {
        if (entriesById.size <= maxEntries && chars <= maxChars) break;
        drop(id);
      }
    },
    close: () => {},
  };
}

/** The approximate number of characters in an entry. */
export function sizeOf({ pieces }: LedgerEntry): number {
  let size = 0;
  for (const piece of pieces) {
    if (piece.type === 'reasoning') {
      size += piece.block.text.length + (piece.block.sealed?.value.length ?? 0);
    } else if (piece.type === 'sealed-text') size += piece.sealed.value.length;
    else if (piece.type === 'call') size += piece.id.length + (piece.sealed?.value.length ?? 0);
  }
  return size;
}
