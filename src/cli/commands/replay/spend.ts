/** Says what requests may cost before they are sent, and asks where many would be. */

import type { SpendPlan } from '../../../samples/replay/types.ts';
import type { Invocation } from '../../command.ts';
import { Cancelled, openQuestions } from '../../questions.ts';
import { plural } from '../../terminal.ts';
import { usd } from '../samples/units.ts';

/** `Sends 3 requests: glm/glm-4.7 about $0.0021, deepseek/x (price unknown).` */
export function planText(
  { requests, targets, usd: all, guessed }: SpendPlan,
  most = false,
): string {
  const about = most ? 'at most about' : 'about';
  const each = targets.map(({ target, usd: one }) => {
    const price = one === null ? '(price unknown)' : `${about} ${usd(one)}`;
    return target === '' ? price : `${target} ${price}`;
  });
  const sum = targets.length > 1 && all !== null ? `; ${about} ${usd(all)} in all` : '';
  const how = guessed && all !== null ? ' (guessed from the size of the request)' : '';
  const upTo = most ? 'up to ' : '';
  return `Sends ${upTo}${plural(requests, 'request')}: ${each.join(', ')}${sum}${how}.`;
}

/** Whether to go on: `--yes`, a person who says so, or nobody there who could be asked. */
export async function agreed(question: string, { flag, io, err }: Invocation): Promise<boolean> {
  if (flag('yes') || !io.interactive) return true;
  const questions = openQuestions(io, err);
  try {
    return await questions.confirm(question, false);
  } catch (thrown) {
    if (thrown instanceof Cancelled) return false;
    throw thrown;
  } finally {
    questions.close();
  }
}
