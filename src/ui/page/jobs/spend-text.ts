/** The expected cost of a job, in words. */

import type { SpendPlan } from '../../api/api.ts';
import { usd as cost, several } from '../kit/format.ts';
import { t } from '../kit/language.ts';

/** `Sends 2 requests: glm/glm-4.7 about $0.0021, deepseek/x price unknown.` @param most it ends there at the latest */
export function spendText({ requests, targets, usd, guessed }: SpendPlan, most = false): string {
  const about = (amount: number) =>
    most ? t`at most about ${cost(amount)}` : t`about ${cost(amount)}`;
  const each = targets.map(({ target, usd: one }) => {
    const price = one === null ? t`price unknown` : about(one);
    return target === '' ? price : `${target}, ${price}`;
  });
  const all = [...each, ...(targets.length > 1 && usd !== null ? [t`${about(usd)} in all`] : [])];
  const prices =
    all.join('; ') + (guessed && usd !== null ? t` (guessed from the size of the request)` : '');
  const number = several(requests, 'request');
  return most ? t`Up to ${number}: ${prices}.` : t`Sends ${number}: ${prices}.`;
}
