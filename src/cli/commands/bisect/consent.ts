/** Asks before a bisection spends anything. */

import type { Config } from '../../../config/config.ts';
import { DEFAULT_BUDGET } from '../../../samples/bisect/run.ts';
import { pricesOf } from '../../../samples/replay/cost.ts';
import { checkTarget } from '../../../samples/replay/known-target.ts';
import { outcomeOf } from '../../../samples/replay/outcome.ts';
import { planBisection } from '../../../samples/replay/plan.ts';
import type { ReplaySource } from '../../../samples/replay/source.ts';
import type { Invocation } from '../../command.ts';
import { agreed, planText } from '../replay/spend.ts';

/** Says what the search may cost and asks; one that seeks a failure in a request that worked must be asked for. */
export async function mayBegin(
  config: Config,
  source: ReplaySource,
  invocation: Invocation,
): Promise<boolean> {
  const { deps, err, io, flag, number, text } = invocation;
  const to = text('to');
  if (to !== undefined) checkTarget(to, config);
  const { answer } = source;
  const worked =
    to === undefined &&
    answer !== undefined &&
    outcomeOf(deps.protocols[source.protocol], answer).failure === undefined;
  if (worked && !flag('yes')) {
    err.line(`${source.name} did not fail when it was recorded (${answer.status}).`);
    if (!io.interactive) {
      err.line('--yes looks for a failure that comes and goes all the same.');
      return false;
    }
  }
  const budget = number('budget') ?? DEFAULT_BUDGET;
  const plan = planBisection(source, { to, budget }, pricesOf(config), deps.protocols);
  err.line(planText(plan, true));
  return agreed('Begin?', invocation);
}

/** How many more requests may be sent after so many: a person is asked, `--budget` says it beforehand. */
export async function mayGoOn(spent: number, invocation: Invocation): Promise<number> {
  const { flag, io, number } = invocation;
  if (number('budget') !== undefined || !io.interactive || flag('yes')) return 0;
  const more = await agreed(
    `${spent} requests were sent. Send up to ${DEFAULT_BUDGET} more?`,
    invocation,
  );
  return more ? DEFAULT_BUDGET : 0;
}
