/** From one hop to the next: what was held is run, and the conversation that comes of it is sent. */

import { asGatewayError } from '../conversation/errors.ts';
import type { Exchange, FailedOutcome, FollowUp, RunHop, WholeOutcome } from './types.ts';

/** Runs further hops of a stream. Their numbers count up from the one returned function's first call. */
export function followUps(runHop: RunHop): FollowUp {
  let number = 1;
  return async (conversation, before) => {
    number++;
    const answer = await runHop({ number, conversation, client: before.pipeline.client });
    if (answer.kind === 'stream') return answer;
    return answer.kind === 'failed'
      ? answer.error
      : asGatewayError(new Error('a whole answer where a stream was asked for'));
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
      // What the vendor said of a request that the client never made is no answer in its own words.
      const { raw: _, ...failed } = following;
      return failed;
    }
    if (following.kind === 'stream') {
      throw new Error('a stream where a whole answer was asked for');
    }
    answer = following;
  }
  return answer;
}
