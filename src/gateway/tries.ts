/** The order of tries: the same target again, another key, the next target, or none. */

import { GatewayError } from '../conversation/errors.ts';
import { historyRefusal } from '../conversation/refusal.ts';
import type { RoutedTarget } from '../routing/index.ts';
import { retryDelay } from '../upstream/classify.ts';
import type { Upstream } from '../upstream/upstream.ts';
import type { Answer, Failed } from './answer.ts';

/** The tries of one hop. */
export interface Tries {
  /** Fires when the client goes away. */
  readonly signal: AbortSignal;
  upstream(routed: RoutedTarget): Upstream;
  /** `refusal`: what the target said of the history on the try before, for the features to act on. */
  attempt(routed: RoutedTarget, number: number, refusal: GatewayError | undefined): Promise<Answer>;
  onRetry(failed: Failed): void;
  /** Told what came of it, and after how many tries. */
  tried(answer: Answer, tries: number): void;
}

/**
 * Tries until something answers. Gives the answer, or the failure that says most: the last target's,
 * except that a vendor's refusal of the request itself ends it at once. A refusal of the history is
 * answered once, by the same target with what the refusal names taken out.
 */
export async function runTries(hop: Tries, targets: readonly RoutedTarget[]): Promise<Answer> {
  let last: Failed | undefined;
  let tries = 0;
  let mended = false;
  for (const routed of targets) {
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
      if (!mended && !hop.signal.aborted && historyRefusal(answer.error) !== undefined) {
        mended = true;
        refusal = answer.error;
        hop.onRetry(answer);
        continue;
      }
      if (answer.remedy === 'never' || hop.signal.aborted) return ended(hop, answer, tries);
      if (answer.remedy === 'next-target') break;
      if ((answer.remedy === 'next-key' || answer.error.status === 429) && keysLeft > 0) {
        keysLeft--;
        hop.onRetry(answer);
        continue;
      }
      if (answer.remedy === 'next-key' || attempt >= retry.attempts) break;
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
    if (last !== undefined) hop.onRetry(last);
  }
  return ended(
    hop,
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

function ended(hop: Tries, answer: Answer, tries: number): Answer {
  hop.tried(answer, tries);
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
