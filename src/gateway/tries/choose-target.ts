/** Which of the targets that are left is tried next: what cools down or has no room comes last. */

import { fractionOf, hashOf } from '../../lib/text/rendezvous.ts';
import type { RoutedTarget } from '../../routing/index.ts';
import { AVAILABLE, COOLING } from '../../upstream/health/cooldown.ts';
import type { Place } from '../../upstream/health/place.ts';
import type { Session } from '../../upstream/key-ring.ts';
import type { Upstream } from '../../upstream/upstream.ts';
import type { TryAt } from './attempt-place.ts';

/** What the choice among targets needs. */
export interface TargetChoice {
  /** By which keys are chosen. */
  readonly session: Session;
  upstream(routed: RoutedTarget): Upstream;
  /** Tokens that a target takes; undefined: not known. */
  room?(routed: RoutedTarget): number | undefined;
  /** Has it refused before what this request holds? */
  refuses?(routed: RoutedTarget): boolean;
  /** A second request is sent beside a slow one. */
  onHedge(routed: RoutedTarget): void;
}

/**
 * A target was too small for this request: of the others, those that are known to be larger come first, and those that
 * are known to be smaller need not be tried. One of the same size may be the same model with other limits.
 */
export function keepWider(by: TargetChoice, small: RoutedTarget, left: RoutedTarget[]): void {
  const most = by.room?.(small);
  if (most === undefined) return;
  const rooms = left.map((routed) => ({ routed, room: by.room?.(routed) }));
  const wider = rooms.filter(({ room }) => room !== undefined && room > most);
  const unknown = rooms.filter(({ room }) => room === undefined);
  const equal = rooms.filter(({ room }) => room === most);
  left.splice(0, left.length, ...[...wider, ...unknown, ...equal].map(({ routed }) => routed));
}

/** All of its keys cool down. */
export function coolsDown(
  by: Pick<TargetChoice, 'session' | 'upstream'>,
  routed: RoutedTarget,
): boolean {
  const { keys } = by.upstream(routed);
  return keys.placeFor(routed.target.model, by.session).availability(keys.now) === COOLING;
}

/** How good a target is for the next try, the lowest first. */
const READY = 0;
const READY_WITHOUT_ROOM = 1;
const WARMING_UP = 2;
const COOLING_DOWN = 3;
const REFUSING = 4;

/**
 * The first of those that are left that is ready and has room, else one that is ready; when all cool down, the one that
 * is due first. It is left no more.
 */
export function nextOf(
  by: TargetChoice,
  left: RoutedTarget[],
  equals: number,
): RoutedTarget | undefined {
  if (left.length < 2) return left.pop();
  let best = 0;
  let bestRank = Number.POSITIVE_INFINITY;
  let bestUntil = 0;
  for (let i = 0; i < left.length; i++) {
    const routed = left[i]!;
    const place = placeOf(by, routed);
    const rank = rankOf(by, routed, place);
    if (
      rank < bestRank ||
      (rank === COOLING_DOWN && bestRank === COOLING_DOWN && place.until < bestUntil)
    ) {
      best = i;
      bestRank = rank;
      bestUntil = place.until;
    }
    if (rank === READY) break;
  }
  if (best < equals && bestRank === READY) best = fasterOf(by, left.slice(0, equals), best);
  return left.splice(best, 1)[0];
}

const placeOf = (by: TargetChoice, routed: RoutedTarget): Place =>
  by.upstream(routed).keys.placeFor(routed.target.model, by.session);

function rankOf(by: TargetChoice, routed: RoutedTarget, place: Place): number {
  if (by.refuses?.(routed)) return REFUSING;
  const { keys, full } = by.upstream(routed);
  const { now } = keys;
  const availability = place.availability(now);
  if (availability === COOLING) return COOLING_DOWN;
  if (availability === AVAILABLE) {
    const share = place.share(now);
    if (share < 1 && fractionOf(by.session.hash, hashOf(place.model)) >= share) return WARMING_UP;
  }
  return full ? READY_WITHOUT_ROOM : READY;
}

/** The chosen one, or the session's next if that one is much faster now. */
function fasterOf(by: TargetChoice, left: readonly RoutedTarget[], chosen: number): number {
  const own = placeOf(by, left[chosen]!);
  const { now } = by.upstream(left[chosen]!).keys;
  if (own.availability(now) !== AVAILABLE) return chosen;
  for (let i = chosen + 1; i < left.length; i++) {
    const routed = left[i]!;
    const place = placeOf(by, routed);
    if (place.availability(by.upstream(routed).keys.now) !== AVAILABLE) continue;
    if (rankOf(by, routed, place) !== READY) continue;
    return own.load.isSlowerThan(place.load, now) ? i : chosen;
  }
  return chosen;
}

/** Another key of the same target, else the next target that is ready; it is left no more. */
export function secondTry(by: TargetChoice, first: TryAt, left: RoutedTarget[]): TryAt | undefined {
  const { routed, upstream, lease } = first;
  const key = upstream.keys.leaseAnother(lease);
  const at = left.findIndex((other) => {
    const { keys, full } = by.upstream(other);
    return (
      !full &&
      !by.refuses?.(other) &&
      keys.placeFor(other.target.model, by.session).availability(keys.now) === AVAILABLE
    );
  });
  if ((key === undefined && at < 0) || !upstream.hedging?.take()) {
    key?.settle('neither', upstream.keys.now);
    return undefined;
  }
  if (key !== undefined) {
    by.onHedge(routed);
    return { routed, upstream, lease: key };
  }
  const next = left.splice(at, 1)[0]!;
  const other = by.upstream(next);
  by.onHedge(next);
  return {
    routed: next,
    upstream: other,
    lease: other.keys.lease(next.target.model, by.session),
  };
}
