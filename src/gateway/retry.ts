/** The order of tries: the same target again, another key, the next target, or none; what rests comes last. */

import { GatewayError } from '../conversation/errors.ts';
import { canActOn } from '../conversation/refusal.ts';
import type { Abort } from '../lib/loop/abort.ts';
import { fractionOf, hashOf } from '../lib/text/rendezvous.ts';
import type { RoutedTarget } from '../routing/index.ts';
import { retryDelay } from '../upstream/classify.ts';
import type { Loan, Place } from '../upstream/health/place.ts';
import { AWAKE, RESTING } from '../upstream/health/rest.ts';
import { type Sign, signOf } from '../upstream/health/signs.ts';
import type { Session } from '../upstream/key-ring.ts';
import type { Upstream } from '../upstream/upstream.ts';
import { hedged, type TryAt } from './hedge.ts';
import type { FailedOutcome, Outcome } from './types.ts';

/** The tries of one hop. */
export interface RetryContext {
  /** Fires when the client goes away. */
  readonly signal: AbortSignal;
  /** By which keys are chosen. */
  readonly session: Session;
  /** Tokens that a target takes; undefined: not known. */
  room?(routed: RoutedTarget): number | undefined;
  upstream(routed: RoutedTarget): Upstream;
  /** `refusal`: the target's error about the history at the attempt before, for the features to act on. */
  attempt(
    routed: RoutedTarget,
    loan: Loan,
    number: number,
    refusal: GatewayError | undefined,
    abort?: Abort,
  ): Promise<Outcome>;
  /** Two tries of this hop may run at the same time. */
  readonly mayHedge: boolean;
  /** A second request is sent beside a slow one. */
  onHedge(routed: RoutedTarget): void;
  /** Would a feature change the request so that it may be taken? */
  canRepair(refusal: GatewayError): boolean;
  onRetry(failed: FailedOutcome): void;
  /** The outcome, and how many attempts it took. */
  onOutcome(outcome: Outcome, attempts: number): void;
}

/**
 * Tries until something answers. Gives the answer, or the failure that says most: the first one that says
 * that the request is too large (a client can act on it), else the last one; a vendor's refusal of the request
 * itself ends it at once. A refusal of the history is answered once, by the same target with what the refusal
 * names taken out. A target that rests or has no room is passed over as long as another one does not.
 * @param equals so many of the first share the sessions: the next one is tried first if it is much faster
 */
export async function retry(
  hop: RetryContext,
  targets: readonly RoutedTarget[],
  equals = 0,
): Promise<Outcome> {
  const left = [...targets];
  let last: FailedOutcome | undefined;
  let tooLarge: FailedOutcome | undefined;
  let tries = 0;
  let mended = false;
  let repeated = false;
  for (
    let routed = nextOf(hop, left, equals);
    routed !== undefined;
    routed = nextOf(hop, left, 0)
  ) {
    const upstream = hop.upstream(routed);
    const { retry } = upstream.config;
    // The words are this target's own: the next one gets the whole history.
    let refusal: GatewayError | undefined;
    // Every key may be refused once without costing one of the target's tries.
    let keysLeft = upstream.keys.size - 1;
    for (let attempt = 1; ; ) {
      tries++;
      const { model } = routed.target;
      const loan = upstream.keys.lend(model, hop.session);
      const wait = hop.mayHedge ? upstream.hedging?.waitFor(model) : undefined;
      let answeredBy = routed;
      let answer: Outcome;
      let sign: Sign;
      if (wait === undefined || refusal !== undefined) {
        answer = await hop.attempt(routed, loan, tries, refusal);
        sign = settle(upstream, loan, answer);
      } else {
        const begun = tries;
        const deciding = await hedged({
          first: { routed, upstream, loan },
          after: wait,
          second: () => secondTry(hop, { routed: answeredBy, upstream, loan }, left),
          run: (at, abort) =>
            hop.attempt(at.routed, at.loan, at.loan === loan ? begun : ++tries, undefined, abort),
          onFailed: (failed) => settle(failed.upstream, failed.loan, failed.answer),
        });
        answeredBy = deciding.routed;
        answer = deciding.answer;
        sign = settle(deciding.upstream, deciding.loan, answer);
      }
      if (answer.kind !== 'failed') return ended(hop, answer, tries);
      last = answer;
      const { error } = answer;
      const mends =
        answeredBy === routed && (canActOn(routed.target, error) || hop.canRepair(error));
      if (!mended && !hop.signal.aborted && mends) {
        mended = true;
        refusal = answer.error;
        hop.onRetry(answer);
        continue;
      }
      const { remedy } = answer;
      if (remedy === 'never' || hop.signal.aborted) return ended(hop, answer, tries);
      if (remedy === 'once') {
        if (repeated) return ended(hop, answer, tries);
        repeated = true;
      }
      if (remedy === 'wider') {
        tooLarge ??= answer;
        if (error.kind === 'context_overflow') keepWider(hop, routed, left);
      }
      if (remedy === 'wider' || remedy === 'next-target') break;
      if ((remedy === 'elsewhere' || remedy === 'once') && left.length > 0) break;
      if (rests(hop, routed) && left.some((other) => !rests(hop, other))) break;
      // A vendor without capacity has none for another key.
      const keyMatters = remedy === 'next-key' || (error.status === 429 && !isOverload(sign));
      if (keyMatters && keysLeft > 0) {
        keysLeft--;
        hop.onRetry(answer);
        continue;
      }
      if (remedy === 'next-key' || attempt >= retry.attempts) break;
      const delay = retryDelay(
        attempt,
        answer.error.retryAfter,
        retry.baseDelayMs,
        retry.maxDelayMs,
      );
      if (delay === undefined) break;
      attempt++;
      hop.onRetry(answer);
      await pause(delay, hop.signal);
    }
    if (left.length > 0) hop.onRetry(last);
  }
  return ended(
    hop,
    tooLarge ??
      last ?? {
        kind: 'failed',
        error: new GatewayError('internal', 'No target was tried.'),
        remedy: 'never',
        target: undefined,
        notes: undefined,
      },
    tries,
  );
}

/** Tells the place what its request came to, and learns how long streams take to begin. */
function settle(upstream: Upstream, loan: Loan, answer: Outcome): Sign {
  const { keys, hedging } = upstream;
  const { now } = keys;
  if (answer.kind === 'failed') {
    const sign = signOf(answer.error, answer.remedy, answer.resetAfter);
    loan.settle(sign, now);
    return sign;
  }
  const streamed = answer.kind === 'stream';
  if (streamed && hedging !== undefined && loan.place !== undefined) {
    hedging.began(loan.place.model, now - loan.sentAt);
  }
  loan.settle('answered', now, streamed);
  return 'answered';
}

/** Another key of the same target, else the next target that is ready; it is left no more. */
function secondTry(hop: RetryContext, first: TryAt, left: RoutedTarget[]): TryAt | undefined {
  const { routed, upstream, loan } = first;
  const key = upstream.keys.lendAnother(loan);
  const at = left.findIndex((other) => {
    const { keys, full } = hop.upstream(other);
    return !full && keys.placeFor(other.target.model, hop.session).standing(keys.now) === AWAKE;
  });
  if ((key === undefined && at < 0) || !upstream.hedging?.take()) {
    key?.settle('neither', upstream.keys.now);
    return undefined;
  }
  if (key !== undefined) {
    hop.onHedge(routed);
    return { routed, upstream, loan: key };
  }
  const next = left.splice(at, 1)[0]!;
  const other = hop.upstream(next);
  hop.onHedge(next);
  return {
    routed: next,
    upstream: other,
    loan: other.keys.lend(next.target.model, hop.session),
  };
}

const isOverload = (sign: Sign): boolean =>
  typeof sign !== 'string' && sign.reason === 'overloaded';

/** A target too small for this request: of the others, those that are known to be no larger need not be tried. */
function keepWider(hop: RetryContext, small: RoutedTarget, left: RoutedTarget[]): void {
  const most = hop.room?.(small);
  if (most === undefined) return;
  const rooms = left.map((routed) => ({ routed, room: hop.room?.(routed) }));
  const wider = rooms.filter(({ room }) => room !== undefined && room > most);
  const unknown = rooms.filter(({ room }) => room === undefined);
  left.splice(0, left.length, ...[...wider, ...unknown].map(({ routed }) => routed));
}

/** All of its keys rest. */
function rests(hop: RetryContext, routed: RoutedTarget): boolean {
  const { keys } = hop.upstream(routed);
  return keys.placeFor(routed.target.model, hop.session).standing(keys.now) === RESTING;
}

/** How good a target is for the next try, the lowest first. */
const READY = 0;
const READY_WITHOUT_ROOM = 1;
const WARMING_UP = 2;
const AT_REST = 3;

/**
 * The first of those that are left that is ready and has room, else one that is ready; when all rest, the one that
 * is due first. It is left no more.
 */
function nextOf(hop: RetryContext, left: RoutedTarget[], equals: number): RoutedTarget | undefined {
  if (left.length < 2) return left.pop();
  let best = 0;
  let bestRank = Number.POSITIVE_INFINITY;
  let bestUntil = 0;
  for (let i = 0; i < left.length; i++) {
    const routed = left[i]!;
    const upstream = hop.upstream(routed);
    const place = upstream.keys.placeFor(routed.target.model, hop.session);
    const rank = rankOf(upstream, place, hop.session);
    if (rank < bestRank || (rank === AT_REST && bestRank === AT_REST && place.until < bestUntil)) {
      best = i;
      bestRank = rank;
      bestUntil = place.until;
    }
    if (rank === READY) break;
  }
  if (best < equals && bestRank === READY) best = fasterOf(hop, left.slice(0, equals), best);
  return left.splice(best, 1)[0];
}

function rankOf({ keys, full }: Upstream, place: Place, session: Session): number {
  const { now } = keys;
  const standing = place.standing(now);
  if (standing === RESTING) return AT_REST;
  if (standing === AWAKE) {
    const share = place.share(now);
    if (share < 1 && fractionOf(session.hash, hashOf(place.model)) >= share) return WARMING_UP;
  }
  return full ? READY_WITHOUT_ROOM : READY;
}

/** The chosen one, or the session's next if that one is much faster now. */
function fasterOf(hop: RetryContext, left: readonly RoutedTarget[], chosen: number): number {
  const placeOf = (index: number) => {
    const routed = left[index]!;
    const upstream = hop.upstream(routed);
    return { upstream, place: upstream.keys.placeFor(routed.target.model, hop.session) };
  };
  const own = placeOf(chosen);
  const { now } = own.upstream.keys;
  if (own.place.standing(now) !== AWAKE) return chosen;
  for (let i = chosen + 1; i < left.length; i++) {
    const { upstream, place } = placeOf(i);
    if (place.standing(upstream.keys.now) !== AWAKE) continue;
    if (rankOf(upstream, place, hop.session) !== READY) continue;
    return own.place.load.isSlowerThan(place.load, now) ? i : chosen;
  }
  return chosen;
}

function ended(hop: RetryContext, answer: Outcome, tries: number): Outcome {
  hop.onOutcome(answer, tries);
  return answer;
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', done, { once: true });
  });
}
