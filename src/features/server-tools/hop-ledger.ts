/** The hop ledger: the hops of an answer that the client never saw, stored for the client's next request. */

import {
  isRandom,
  keyHash,
  MIN_DISTINCTIVE,
  withoutSpace,
} from '../../conversation/session/answer-keys.ts';
import type { Turn } from '../../conversation/types.ts';
import { ENTRIES, TOTALS, WITHOUT_TRIGGERS } from '../../state/key-value/file-store.ts';
import type { Entries, RoomKind } from '../../state/key-value/room.ts';
import type { NumberedSource } from './citations/sources.ts';

/** One answer as the upstream knows it: every turn from the first held call to the end of the answer. */
export interface HopEntry {
  readonly turns: readonly Turn[];
  /** The numbered sources that those turns mention. */
  readonly sources: readonly NumberedSource[];
  /** Ids of the client's own calls in the last turn, in order. */
  readonly clientCalls: readonly string[];
}

export type HopLedger = Entries<HopEntry>;

/** Answers with hidden hops. */
export const HOPS: RoomKind<HopEntry> = {
  name: 'hops',
  title: 'hop ledger',
  keep: 'newest',
  ttlMs: 14 * 24 * 3_600_000,
  memory: { entries: 1000, bytes: Number.POSITIVE_INFINITY },
  file: {
    name: 'hops.db',
    migrations: [ENTRIES, TOTALS, WITHOUT_TRIGGERS],
    entries: 20_000,
    bytes: 256 * 1024 * 1024,
    ageMs: 30 * 24 * 3_600_000,
    // Another process may get the client's next request, and a client's own tool can be that fast.
    flushAfterMs: 20,
  },
};

/** Turns that wait for the results of the client's own calls, and hold what must not outlive them. */
export const TURNS: RoomKind<HopEntry> = {
  name: 'turns',
  title: 'turns of memory spaces',
  keep: 'newest',
  hasGroups: true,
  ttlMs: 6 * 3_600_000,
  memory: { entries: 1000, bytes: Number.POSITIVE_INFINITY },
};

/**
 * The key of a call that the client saw, its own or a shown one. Some vendors number their calls
 * (`call_0`, `functions.Bash:0`): such an id identifies a call only together with the text around it.
 * @param text the visible text of the answer
 * @param textBefore the text of the turn before it
 */
export function callKey(owner: string, id: string, text: string, textBefore: string): string {
  const context = isRandom(id) ? '' : `\0${withoutSpace(text)}\0${withoutSpace(textBefore)}`;
  return keyHash(`call\0${owner}\0${id}${context}`);
}

/**
 * The keys of an answer by its visible text. A short one ("Done.") is recognised only together with the
 * text before it; a long one also by itself, since clients edit earlier turns.
 */
export function textKeys(owner: string, text: string, textBefore: string): readonly string[] {
  const bare = withoutSpace(text);
  if (bare === '') return [];
  const exact = keyHash(`said\0${owner}\0${bare}\0${withoutSpace(textBefore)}`);
  return bare.length < MIN_DISTINCTIVE ? [exact] : [exact, keyHash(`said\0${owner}\0${bare}`)];
}

/** The text of a turn, tool results included. */
export function textOf(turn: Turn | undefined): string {
  let text = '';
  for (const block of turn?.blocks ?? []) {
    if (block.type === 'text' || block.type === 'refusal') text += block.text;
    else if (block.type === 'tool-result') {
      for (const part of block.content) if (part.type === 'text') text += part.text;
    }
  }
  return text;
}
