/** A second try beside a slow first one: the first that begins to answer is the answer, the other is cancelled. */

import { GatewayError } from '../../conversation/errors.ts';
import { Abort, within } from '../../lib/loop/abort.ts';
import type { FailedOutcome, Succeeded } from '../types.ts';
import type { TryAt } from './attempt-place.ts';

export interface EndedTry<A extends Succeeded> extends TryAt {
  readonly answer: A | FailedOutcome;
}

export interface HedgeOptions<A extends Succeeded> {
  readonly first: TryAt;
  /** Milliseconds until the second try. */
  readonly after: number;
  /** Where the second try goes; undefined: it is not made. */
  second(): TryAt | undefined;
  run(at: TryAt, abort: Abort): Promise<A | FailedOutcome>;
  /** A try failed while the other one goes on. */
  onFailed(ended: EndedTry<A>): void;
  /** Cancels an answer that no client receives, because another one began at the same moment. */
  discard(answer: A): void;
}

interface RunningTry<A extends Succeeded> {
  readonly abort: Abort;
  readonly ended: Promise<EndedTry<A>>;
}

/** The try that decides; its lease is the caller's to settle. Rejects only if `run` does. */
export async function hedged<A extends Succeeded>(options: HedgeOptions<A>): Promise<EndedTry<A>> {
  const begin = (at: TryAt): RunningTry<A> => {
    const abort = new Abort();
    return { abort, ended: options.run(at, abort).then((answer) => ({ ...at, answer })) };
  };
  const first = begin(options.first);
  if (await isOver(first.ended, options.after)) return first.ended;
  const at = options.second();
  if (at === undefined) return first.ended;
  const second = begin(at);
  const earlier = await Promise.race([
    first.ended.then((ended) => ({ ended, other: second })),
    second.ended.then((ended) => ({ ended, other: first })),
  ]);
  const { ended, other } = earlier;
  const { answer } = ended;
  // What refuses the second, a budget or another vendor, says nothing of the first.
  if (answer.kind === 'failed' && (answer.remedy !== 'never' || other === first)) {
    options.onFailed(ended);
    return other.ended;
  }
  cancel(other, options);
  return ended;
}

/** Is it over within so many milliseconds? */
const isOver = (ended: Promise<unknown>, ms: number): Promise<boolean> =>
  within(
    ms,
    ended.then(() => true),
    () => false,
  );

function cancel<A extends Succeeded>(
  { abort, ended }: RunningTry<A>,
  { discard }: HedgeOptions<A>,
): void {
  abort.abort(hedgeLost());
  void ended.then(({ lease, upstream, answer }) => {
    lease.settle('neither', upstream.keys.now);
    if (answer.kind !== 'failed') discard(answer);
  });
}

const HEDGE_LOST = 'hedge_lost';

const hedgeLost = (): GatewayError =>
  new GatewayError('timeout', 'Another try was faster.', {
    status: 499,
    code: HEDGE_LOST,
    retryable: false,
  });

/** Was the try cancelled because another one was faster? */
export const isHedgeLost = ({ code, fromUpstream }: GatewayError): boolean =>
  code === HEDGE_LOST && !fromUpstream;
