/** The order of tries: the same target again, another key, the next target, or none. */

import { GatewayError } from '../conversation/errors.ts';
import type { Target } from '../conversation/target.ts';
import type { RoutedTarget } from '../routing/index.ts';
import { retryDelay } from '../upstream/classify.ts';
import type { Upstream } from '../upstream/upstream.ts';
import type { FailedOutcome, Outcome, Succeeded } from './types.ts';

/** The tries of one hop, or of a request to another endpoint, whose answers are of another type. */
export interface RetryContext<A extends Succeeded = Exclude<Outcome, FailedOutcome>> {
  /** Fires when the client goes away. */
  readonly signal: AbortSignal;
  upstream(routed: RoutedTarget): Upstream;
  /** `refusal`: the target's error about the history at the attempt before, for the features to act on. */
  attempt(
    routed: RoutedTarget,
    number: number,
    refusal: GatewayError | undefined,
  ): Promise<A | FailedOutcome>;
  /** Would the request be changed so that the target may take it? */
  canRepair(refusal: GatewayError, target: Target): boolean;
  onRetry(failed: FailedOutcome): void;
  /** The outcome, and how many attempts it took. */
  onOutcome(outcome: A | FailedOutcome, attempts: number): void;
}

/**
 * Tries until something answers. Gives the answer, or the failure that says most: the first one that says
 * that the request is too large (a client can act on it), else the last one; a vendor's refusal of the request
 * itself ends it at once. A refusal of the history is answered once, by the same target with what the refusal
 * names taken out. A target without room is passed over as long as another one has some.
 */
export async function retry<A extends Succeeded>(
  hop: RetryContext<A>,
  targets: readonly RoutedTarget[],
): Promise<A | FailedOutcome> {
  const left = [...targets];
  let last: FailedOutcome | undefined;
  let tooLarge: FailedOutcome | undefined;
  let tries = 0;
  let mended = false;
  let repeated = false;
  for (let routed = nextOf(hop, left); routed !== undefined; routed = nextOf(hop, left)) {
    const upstream = hop.upstream(routed);
    const { retry } = upstream.config;
    // The words are this target's own: the next one gets the whole history.
    let refusal: GatewayError | undefined;
    // Every key may be refused once without costing one of the target's tries.
    let keysLeft = upstream.keys.size - 1;
    for (let attempt = 1; ; ) {
      tries++;
      const answer = await hop.attempt(routed, tries, refusal);
      if (answer.kind !== 'failed') return ended(hop, answer, tries);
      last = answer;
      const { error } = answer;
      if (!mended && !hop.signal.aborted && hop.canRepair(error, routed.target)) {
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
      if (remedy === 'wider') tooLarge ??= answer;
      if (remedy === 'wider' || remedy === 'next-target') break;
      if ((remedy === 'elsewhere' || remedy === 'once') && left.length > 0) break;
      if ((remedy === 'next-key' || answer.error.status === 429) && keysLeft > 0) {
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

/** The first of those that are left that has room, else the first; it is left no more. */
function nextOf(
  hop: Pick<RetryContext, 'upstream'>,
  left: RoutedTarget[],
): RoutedTarget | undefined {
  if (left.length < 2) return left.pop();
  const free = left.findIndex((routed) => !hop.upstream(routed).full);
  return left.splice(Math.max(0, free), 1)[0];
}

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
