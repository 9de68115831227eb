/** Facts learnt from refusals, kept for a provider's model as long as its configuration stays the same. */

import type { GatewayError } from '../../conversation/errors.ts';
import { canActOn, targetLearning } from '../../conversation/refusal/refusal.ts';
import type { Target } from '../../conversation/target.ts';
import type { RoutedTarget } from '../../routing/index.ts';

/** Clients choose the names of models: above this number of a provider's, all are forgotten. */
const MAX_MODELS = 1000;

/** The target before a refusal taught something, by the target after it. */
const before = new WeakMap<Target, Target>();
const learnt = new WeakMap<RoutedTarget['provider'], Map<string, Target>>();

/** The target with what it has taught. */
export const learntTarget = ({ provider, target }: RoutedTarget): Target =>
  learnt.get(provider)?.get(target.model) ?? target;

/**
 * Would acting on this refusal change the request? Then what it teaches about every later one is kept.
 * @param asked the target as it was known when the request was made for it
 */
export function canLearnFrom(
  refusal: GatewayError,
  routed: RoutedTarget,
  asked: Target = routed.target,
): boolean {
  if (!canActOn(asked, refusal)) return false;
  const known = learntTarget(routed);
  const after = targetLearning(known, refusal);
  if (after === known) return true;
  let models = learnt.get(routed.provider);
  if (models === undefined || models.size >= MAX_MODELS) {
    models = new Map();
    learnt.set(routed.provider, models);
  }
  models.set(routed.target.model, after);
  before.set(after, routed.target);
  return true;
}

/** Learnt facts of these providers' models as text: profile facts and omitted fields. */
export function learntFacts(
  providers: Iterable<RoutedTarget['provider']>,
): readonly { readonly target: string; readonly facts: readonly string[] }[] {
  return [...providers].flatMap((provider) =>
    [...(learnt.get(provider) ?? [])].map(([model, target]) => {
      const own = before.get(target)?.profile as Readonly<Record<string, unknown>> | undefined;
      const facts = Object.entries(target.profile).flatMap(([fact, value]) =>
        Bun.deepEquals(own?.[fact], value) ? [] : [`${fact}: ${JSON.stringify(value)}`],
      );
      const fields = (target.refusedFields ?? []).map((path) => `without ${path.join('.')}`);
      return { target: `${provider.name}/${model}`, facts: [...facts, ...fields] };
    }),
  );
}
