/** The hop ledger: the hops of an answer that the client never saw, stored for the client's next request. */

import { callKey, textKeys, withoutSpace } from '../../conversation/session/answer-keys.ts';
import type { Turn } from '../../conversation/types.ts';
import { WITHOUT_TRIGGERS } from '../../state/key-value/file-store.ts';
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
    version: 3,
    upgrades: { 2: WITHOUT_TRIGGERS },
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

interface SeenAnswer {
  /** Ids of the client's own calls. */
  readonly clientIds: readonly string[];
  /** Ids of the calls that it was shown. */
  readonly shownIds: readonly string[];
  readonly text: string;
}

/** The keys of an answer, in the order in which they are looked up. */
export function answerKeys(
  owner: string,
  { clientIds, shownIds, text }: SeenAnswer,
  turnBefore: Turn | undefined,
): readonly string[] {
  const before = () => withoutSpace(textOf(turnBefore));
  const around = () => `${withoutSpace(text)}\0${before()}`;
  const byCall = [...clientIds, ...shownIds].map((id) => callKey(owner, id, around));
  return clientIds.length > 0 ? byCall : [...byCall, ...textKeys(owner, text, before)];
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
