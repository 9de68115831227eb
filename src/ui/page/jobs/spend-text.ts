/** The expected cost of a job, in words. */

import type { SpendPlan } from '../../api/api.ts';

import { usd as cost, several } from '../kit/format.ts';

/** `Sends 2 requests: glm/glm-4.7 about $0.0021, deepseek/x price unknown.` @param most it ends there at the latest */
export function spendText({ requests, targets, usd, guessed }: SpendPlan, most = false): string {
  const about = most ? 'at most about' : 'about';
  const each = targets.map(({ target, usd: one }) => {
    const price = one === null ? 'price unknown' : `${about} ${cost(one)}`;
    return target === '' ? price : `${target}, ${price}`;
  });
  const sum = targets.length > 1 && usd !== null ? `; ${about} ${cost(usd)} in all` : '';
  const how = guessed && usd !== null ? ' (guessed from the size of the request)' : '';
  return `${most ? 'Up to' : 'Sends'} ${several(requests, 'request')}: ${each.join('; ')}${sum}${how}.`;
}
