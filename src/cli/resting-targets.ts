/** Asks a running gateway of this configuration which targets rest. */

import type { Config } from '../config/config.ts';
import { isObject, type Json } from '../lib/json/json.ts';
import { objects } from '../lib/json/typed-reads.ts';
import { printableLine } from '../lib/text/printable-text.ts';
import type { RestingTarget } from '../routing/index.ts';
import { askGateway } from './running-gateway.ts';

/** Empty if no gateway answers at the configuration's address. */
export async function restingTargets(
  config: Config,
  fetch: typeof globalThis.fetch,
): Promise<readonly RestingTarget[]> {
  const answer = await askGateway(config, fetch, '/health/targets');
  return answer?.status === 200 ? restsIn(answer.body) : [];
}

/** @param answer that of `GET /health/targets` */
export function restsIn(answer: Json | undefined): readonly RestingTarget[] {
  if (!isObject(answer)) return [];
  const rests = objects(answer.rests);
  const lessons = objects(answer.learnt);
  return objects(answer.targets).flatMap(({ target, state }) => {
    if (typeof target !== 'string') return [];
    const own = rests.filter(
      ({ provider, model }) =>
        target === `${provider}/${model}` ||
        (model === undefined && target.startsWith(`${provider}/`)),
    );
    const facts = lessons.find((one) => one.target === target)?.facts;
    const learnt = Array.isArray(facts)
      ? facts.flatMap((fact) => (typeof fact === 'string' ? [printableLine(fact, 200)] : []))
      : [];
    if (own.length === 0 && learnt.length === 0) return [];
    return [
      {
        target,
        passedOver: state === 'resting',
        rests: own.map((rest) => words(rest, Date.now())),
        ...(learnt.length > 0 && { learnt }),
      },
    ];
  });
}

function words(
  { model, key, reason, status, until }: Readonly<Record<string, Json | undefined>>,
  now: number,
) {
  const what = [key ?? 'all keys', model === undefined ? ', every model' : ''].join('');
  const why = status === 0 ? reason : `${reason}, status ${status}`;
  const isOver = typeof until === 'string' && Date.parse(until) <= now;
  const when = isOver ? 'until the next request has tried it' : `until ${until}`;
  return printableLine(`${what} (${why}) ${when}`, 200);
}
