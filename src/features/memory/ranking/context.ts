/** Relevance that an event gains from the events around it: an answer shares few words with its question. */

import type { EventKind } from './event-kinds.ts';
import type { WeighedTerm } from './ranking.ts';

/** An event among its neighbours. */
export interface Placed {
  readonly time: number;
  /** Shares of the question's terms, as of `termShares`. */
  readonly shares: Float64Array;
  /** Their sum, and what its vector adds. */
  readonly own: number;
  readonly kind: EventKind;
  readonly source: string;
  /** Places of the events right before and after it; undefined where they are unknown or there are none. */
  readonly before: number | undefined;
  readonly after: number | undefined;
}

/** Milliseconds between neighbours that belong together, and between events of one talk. */
const NEIGHBOUR_MS = 10 * 60_000;
const TALK_MS = 60 * 60_000;
/** Share of a neighbour's relevance that is added, counted above a share of the best relevance. */
const BEFORE = 0.4;
const AFTER = 0.1;
const MIN_SHARE = 0.3;
/** Share of a conversation's joint relevance that is added, counted above a share of its best event's. */
const TALK = 0.4;
const TALK_ALONE = 0.5;
/** The share of either that stays where one source speaks alone: an answer is somebody else's. */
const ALONE = 0.5;
/** Events on each side. */
const TALK_EVENTS = 2;
/** A term that more of the events hold says nothing of a talk. */
const TALK_TERMS = 0.1;

/** Events of the very same time were brought in together, and are no talk. */
function isNear({ time }: Placed, other: Placed, ms: number): boolean {
  const apart = Math.abs(time - other.time);
  return apart > 0 && apart <= ms;
}

/** The added relevance of each event. @param events in the order of time */
export function contextOf(
  events: readonly Placed[],
  terms: readonly WeighedTerm[],
): readonly number[] {
  const least = MIN_SHARE * Math.max(0, ...events.map(({ own }) => own));
  const counted = terms.flatMap(({ share }, term) => (share <= TALK_TERMS ? [term] : []));
  const alone = events.map(({ shares }) => counted.reduce((sum, term) => sum + shares[term]!, 0));
  return events.map((event, at) =>
    // A question is not the answer to the one before it.
    event.kind === 'request'
      ? 0
      : BEFORE * lent(event, events[event.before ?? -1], least) +
        AFTER * lent(event, events[event.after ?? -1], least) +
        TALK * talkAround(events, at, { counted, alone }),
  );
}

/** Relevance that an event gains from one right beside it. */
function lent(event: Placed, other: Placed | undefined, least: number): number {
  if (other === undefined || other.own <= least || other.kind === 'filler') return 0;
  if (!isNear(event, other, NEIGHBOUR_MS)) return 0;
  return (other.source === event.source ? ALONE : 1) * (other.own - least);
}

/**
 * @param counted places of terms
 * @param alone what each event holds of them
 */
function talkAround(
  events: readonly Placed[],
  at: number,
  { counted, alone }: { readonly counted: readonly number[]; readonly alone: readonly number[] },
): number {
  let first = at;
  let last = at;
  const near = (one: number, next: number) =>
    events[next] !== undefined && isNear(events[one]!, events[next]!, TALK_MS);
  while (first > at - TALK_EVENTS && near(first, first - 1)) first--;
  while (last < at + TALK_EVENTS && near(last, last + 1)) last++;
  if (first === last) return 0;
  let best = 0;
  let isOneAlone = true;
  for (let one = first; one <= last; one++) {
    best = Math.max(best, alone[one]!);
    if (events[one]!.source !== events[at]!.source) isOneAlone = false;
  }
  let together = 0;
  for (const term of counted) {
    let most = 0;
    for (let one = first; one <= last; one++) most = Math.max(most, events[one]!.shares[term]!);
    together += most;
  }
  return (isOneAlone ? ALONE : 1) * Math.max(0, together - TALK_ALONE * best);
}
