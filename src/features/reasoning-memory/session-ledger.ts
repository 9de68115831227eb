/** The session ledger: reasoning, seals and call signatures of answers, which clients may not send back. */

import type { ProtocolName, ReasoningBlock, Sealed } from '../../conversation/types.ts';
import { WITHOUT_TRIGGERS } from '../../state/key-value/file-store.ts';
import type { Entries, RoomKind } from '../../state/key-value/room.ts';

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
  /** Digest of the text up to `end`: a text that the client changed gets no seal. */
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

/**
 * A key never changes its entry: later requests must repeat the history as it was sent, or the vendor's prompt cache
 * is lost.
 */
export type SessionLedger = Entries<LedgerEntry>;

export const ANSWERS: RoomKind<LedgerEntry> = {
  name: 'answers',
  title: 'session ledger',
  keep: 'first',
  ttlMs: 14 * 24 * 3_600_000,
  memory: { entries: 8000, bytes: 32_000_000 },
  sizeOf,
  file: {
    name: 'session.db',
    version: 3,
    upgrades: { 2: WITHOUT_TRIGGERS },
    entries: 50_000,
    bytes: 256 * 1024 * 1024,
    ageMs: 30 * 24 * 3_600_000,
    flushAfterMs: 50,
  },
};

/** The approximate number of characters in an entry. */
function sizeOf({ pieces }: LedgerEntry): number {
  let size = 0;
  for (const piece of pieces) {
    if (piece.type === 'reasoning') {
      size += piece.block.text.length + (piece.block.sealed?.value.length ?? 0);
    } else if (piece.type === 'sealed-text') size += piece.sealed.value.length;
    else if (piece.type === 'call') size += piece.id.length + (piece.sealed?.value.length ?? 0);
  }
  return size;
}
