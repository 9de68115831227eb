/** The order of tries: the same target again, another key, the next target, or none. */

import { GatewayError } from '../conversation/errors.ts';
import { historyRefusal } from '../conversation/refusal.ts';
import type { RoutedTarget } from '../routing/index.ts';
import { retryDelay } from '../upstream/classify.ts';
import type { Upstream } from '../upstream/upstream.ts';
import type { Answer, Failed } from './answer.ts';

export interface TriesOptions {
  readonly targets: readonly RoutedTarget[];
  readonly upstream: (routed: RoutedTarget) => Upstream;
  /** `refusal`: what the target said of the history on the try before, for the features to act on. */
  readonly attempt: (
    routed: RoutedTarget,
    number: number,
    refusal?: GatewayError,
  ) => Promise<Answer>;
  readonly signal: AbortSignal;
  readonly onRetry: (failed: Failed) => void;
  /** Told what came of it, and after how many tries. */
  readonly tally: { tried(answer: Answer, tries: number): void };
}

/**
 * Tries until something answers. Gives the answer, or the failure that says most: the last target's,
 * except that a vendor's refusal of the request itself ends it at once. A refusal of the history is
 * answered once, by the same target with what the refusal names taken out.
 */
export async function runTries(options: TriesOptions): Promise<Answer> {
  let last: Failed | undefined;
  let tries = 0;
  let mended = false;
  for (const routed of options.targets) {
    const upstream = options.upstream(routed);
    const { retry } = upstream.config;
    // The words are this target's own: the next one gets the whole history.
    let refusal: GatewayError | undefined;
    // Every key may be refused once without costing one of the target's tries.
    let keysLeft = upstream.keys.size - 1;
    for (let attempt = 1; ; ) {
      tries++;
      const answer = await options.attempt(routed, tries, refusal);
      if (answer.kind !== 'failed') return ended(options, answer, tries);
      last = answer;
      if (!mended && !options.signal.aborted && historyRefusal(answer.error) !== undefined) {
        mended = true;
        refusal = answer.error;
        options.onRetry(answer);
        continue;
      }
      if (answer.remedy === 'never' || options.signal.aborted) return ended(options, answer, tries);
      if (answer.remedy === 'next-target') break;
      if ((answer.remedy === 'next-key' || answer.error.status === 429) && keysLeft > 0) {
        keysLeft--;
        options.onRetry(answer);
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
      options.onRetry(answer);
      await pause(delay, options.signal);
    }
    if (last !== undefined) options.onRetry(last);
  }
  return ended(
    options,
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

function ended({ tally }: TriesOptions, answer: Answer, tries: number): Answer {
  tally.tried(answer, tries);
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
