/** Runs the hops that follow the first one: a continuation gives a conversation, which is sent. */

import { asGatewayError } from '../conversation/errors.ts';
import type { Exchange, FailedOutcome, FollowUp, RunHop, WholeOutcome } from './types.ts';

/** For a stream; hops are numbered from 2. */
export function followUps(runHop: RunHop): FollowUp {
  let number = 1;
  return async (conversation, before) => {
    number++;
    const answer = await runHop({ number, conversation, client: before.pipeline.client });
    if (answer.kind === 'stream') return answer;
    return answer.kind === 'failed'
      ? answer.error
      : asGatewayError(new Error('a whole answer where a stream was requested'));
  };
}

/** All hops of an answer that is not streamed, one after another. */
export async function finishWhole(
  first: WholeOutcome,
  runHop: RunHop,
  exchange: Exchange,
): Promise<WholeOutcome | FailedOutcome> {
  let answer = first;
  for (let number = 2; answer.continuation !== undefined; number++) {
    const { next, events, finish } = answer.continuation;
    const all = [...events];
    const conversation = await next.run(exchange.signal, (more) => all.push(...more));
    if (next.last === true) return finish(all);
    const following = await runHop({ number, conversation, events: all });
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
