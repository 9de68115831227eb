/** The order of tries: the same target again, another key, the next target, or none; what cools down comes last. */

import { GatewayError } from '../../conversation/errors.ts';
import { faultOf } from '../../conversation/refusal/refusal.ts';
import { type Target, targetName } from '../../conversation/target.ts';
import type { Abort } from '../../lib/loop/abort.ts';
import { printableLine } from '../../lib/text/printable-text.ts';
import { redactText } from '../../lib/text/redact.ts';
import type { RoutedTarget } from '../../routing/index.ts';
import { retryDelay } from '../../upstream/classify.ts';
import type { Lease, PlaceFailure } from '../../upstream/health/place.ts';
import { type Sign, signOf } from '../../upstream/health/signs.ts';
import type { Upstream } from '../../upstream/upstream.ts';
import type { FailedOutcome, Outcome, Succeeded } from '../types.ts';
import type { TryAt } from './attempt-place.ts';
import { coolsDown, keepWider, nextOf, secondTry, type TargetChoice } from './choose-target.ts';
import { type EndedTry, hedged } from './hedge.ts';

/** The tries of one hop, or of a request to another endpoint, whose answers are of another type. */
export interface RetryContext<A extends Succeeded = Exclude<Outcome, FailedOutcome>>
  extends TargetChoice {
  /** Fires when the client goes away. */
  readonly signal: AbortSignal;
  /** `refusals`: the target's errors about this request at the attempts before, for the features to act on. */
  attempt(
    routed: RoutedTarget,
    lease: Lease,
    number: number,
    refusals: readonly GatewayError[] | undefined,
    abort?: Abort,
  ): Promise<A | FailedOutcome>;
  /** Two tries of this hop may run at the same time. */
  readonly mayHedge: boolean;
  /** Cancels an answer that no client receives, because another one began at the same moment. */
  discard(answer: A): void;
  /**
   * Would the request be changed so that the target may take it?
   * @param asked the target as it was known when the request was made for it
   */
  canRepair(refusal: GatewayError, routed: RoutedTarget, asked: Target | undefined): boolean;
  onRetry(failed: FailedOutcome): void;
  /** The outcome, and how many attempts it took. */
  onOutcome(outcome: A | FailedOutcome, attempts: number): void;
}

/** So many refusals of one request are answered by changing it. */
const MAX_MENDS = 4;

/**
 * Tries until something answers. Gives the answer, or the failure that says most: the first one that says
 * that the request is too large (a client can act on it), else the last one; a vendor's refusal of the request
 * itself ends it at once. The same target is asked again without what its refusal of the history or of a setting names,
 * once for each fault. A target that cools down or has no room is passed over as long as another one does not.
 * @param equals so many of the first share the sessions: the next one is tried first if it is much faster
 */
export async function retry<A extends Succeeded>(
  hop: RetryContext<A>,
  targets: readonly RoutedTarget[],
  equals = 0,
): Promise<A | FailedOutcome> {
  const left = [...targets];
  let last: FailedOutcome | undefined;
  let tooLarge: FailedOutcome | undefined;
  let tries = 0;
  let mended: Set<string> | undefined;
  let repeated = false;
  for (
    let routed = nextOf(hop, left, equals);
    routed !== undefined;
    routed = nextOf(hop, left, 0)
  ) {
    const upstream = hop.upstream(routed);
    const { retry } = upstream.config;
    // The words are this target's own: the next one gets the whole history.
    let refusals: readonly GatewayError[] | undefined;
    // Every key may be refused once without costing one of the target's tries.
    let keysLeft = upstream.keys.size - 1;
    for (let attempt = 1; ; ) {
      tries++;
      const { model } = routed.target;
      const lease = upstream.keys.lease(model, hop.session);
      const { hedging } = upstream;
      const wait = hedging !== undefined && hop.mayHedge ? hedging.waitFor(model) : undefined;
      let answeredBy: RoutedTarget = routed;
      let answer: A | FailedOutcome;
      let sign: Sign;
      if (wait === undefined || refusals !== undefined) {
        answer = await hop.attempt(routed, lease, tries, refusals);
        sign = settle(upstream, lease, answer);
      } else {
        const deciding = await tryWithHedge(hop, { routed, upstream, lease }, wait, tries, left);
        tries = deciding.tries;
        answeredBy = deciding.routed;
        answer = deciding.answer;
        sign = settle(deciding.upstream, deciding.lease, answer);
      }
      if (answer.kind !== 'failed') return ended(hop, answer, tries);
      last = answer;
      const { error } = answer;
      if (
        answeredBy === routed &&
        !hop.signal.aborted &&
        // Another target may take the whole.
        !(error.kind === 'too_large' && left.length > 0) &&
        hop.canRepair(error, routed, answer.target)
      ) {
        const fault = `${targetName(routed.target)} ${faultOf(error)}`;
        mended ??= new Set();
        if (!mended.has(fault) && mended.size < MAX_MENDS) {
          mended.add(fault);
          refusals = [...(refusals ?? []), error];
          hop.onRetry(answer);
          continue;
        }
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
      if (coolsDown(hop, routed) && !allCoolDown(hop, left)) break;
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

/** A try, and a second one beside it where it is slow. @param number of the first */
async function tryWithHedge<A extends Succeeded>(
  hop: RetryContext<A>,
  first: TryAt,
  after: number,
  number: number,
  left: RoutedTarget[],
): Promise<EndedTry<A> & { readonly tries: number }> {
  let tries = number;
  const deciding = await hedged<A>({
    first,
    after,
    second: () => secondTry(hop, first, left),
    run: (at, abort) =>
      hop.attempt(
        at.routed,
        at.lease,
        at.lease === first.lease ? number : ++tries,
        undefined,
        abort,
      ),
    onFailed: (failed) => settle(failed.upstream, failed.lease, failed.answer),
    discard: (lost) => hop.discard(lost),
  });
  return { ...deciding, tries };
}

const allCoolDown = (hop: TargetChoice, targets: readonly RoutedTarget[]): boolean =>
  targets.every((routed) => coolsDown(hop, routed));

/** Tells the place what its request came to, and learns how long streams take to begin. */
function settle(upstream: Upstream, lease: Lease, answer: Succeeded | FailedOutcome): Sign {
  const { keys, hedging } = upstream;
  const { now } = keys;
  if (answer.kind === 'failed') {
    const sign =
      answer.repeats === true ? 'neither' : signOf(answer.error, answer.remedy, answer.resetAfter);
    if (sign !== 'neither') lease.noteFailure(failureOf(answer.error));
    lease.settle(sign, now);
    return sign;
  }
  const streamed = answer.kind === 'stream';
  if (streamed && hedging !== undefined && lease.place !== undefined) {
    hedging.began(lease.place.model, now - lease.sentAt);
  }
  lease.settle('answered', now, streamed);
  return 'answered';
}

const LONG_MESSAGE = 300;

/** The message may repeat what was sent. */
const failureOf = ({ kind, status, message, fromUpstream }: GatewayError): PlaceFailure => ({
  time: Date.now(),
  kind,
  status: fromUpstream ? status : 0,
  message: printableLine(redactText(message).text, LONG_MESSAGE),
});

const isOverload = (sign: Sign): boolean =>
  typeof sign !== 'string' && sign.reason === 'overloaded';

function ended<A extends Succeeded, B extends A | FailedOutcome>(
  hop: RetryContext<A>,
  answer: B,
  tries: number,
): B {
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
