/** The hops that follow the first one of an answer that is not streamed: a continuation gives a conversation, which is sent. */

import { type RunningExchange, runHop } from './run-hop.ts';
import type { FailedOutcome, WholeOutcome } from './types.ts';

/** All of them, one after another. */
export async function finishWhole(
  first: WholeOutcome,
  running: RunningExchange,
): Promise<WholeOutcome | FailedOutcome> {
  let answer = first;
  for (let number = 2; answer.continuation !== undefined; number++) {
    const { next, events, finish } = answer.continuation;
    const all = [...events];
    const conversation = await next.run(running.exchange.signal, (more) => all.push(...more));
    if (next.last === true) return finish(all);
    const { target } = answer;
    const following = await runHop(running, { number, conversation, after: target, events: all });
    if (following.kind === 'failed') {
      // The vendor's own error answer is about a request that the client never made: only its meaning is passed on.
      const { raw: _, ...failed } = following;
      return failed;
    }
    if (following.kind === 'stream') {
      throw new Error('a stream where a whole answer was requested');
    }
    answer = following;
  }
  return answer;
}
