/**
 * Facts learnt from refusals, kept for a provider's model as long as its configuration stays the same. They hold for the
 * requests of the key that met the refusal alone: vendors repeat what a request says, so that a client can write one.
 */

import type { GatewayError } from '../../conversation/errors.ts';
import { canActOn, targetLearning } from '../../conversation/refusal/refusal.ts';
import type { Target } from '../../conversation/target.ts';
import type { RoutedTarget } from '../../routing/index.ts';

/** Clients choose the names of models: above this number for a provider, all are forgotten. */
const MAX_KEPT = 1000;

/** The target before a refusal taught something, by the target after it. */
const before = new WeakMap<Target, Target>();
const learnt = new WeakMap<RoutedTarget['provider'], Map<string, Target>>();

const keyOf = (owner: string, { model }: Target): string => `${owner}\n${model}`;

/** The target with what it has taught this owner. */
export const learntTarget = ({ provider, target }: RoutedTarget, owner: string): Target =>
  learnt.get(provider)?.get(keyOf(owner, target)) ?? target;

/**
 * Would acting on this refusal change the request? What it teaches about every later one is kept.
 * @param asked the target as it was known when the request was made for it
 */
export function canLearnFrom(
  refusal: GatewayError,
  routed: RoutedTarget,
  owner: string,
  asked: Target = routed.target,
): boolean {
  const acts = canActOn(asked, refusal);
  const known = learntTarget(routed, owner);
  const after = targetLearning(known, refusal);
  if (after === known) return acts;
  let models = learnt.get(routed.provider);
  if (models === undefined || models.size >= MAX_KEPT) {
    models = new Map();
    learnt.set(routed.provider, models);
  }
  models.set(keyOf(owner, routed.target), after);
  before.set(after, routed.target);
  return acts;
}

/** Learnt facts of these providers' models as text, of all owners: profile facts and omitted fields. */
export function learntFacts(
  providers: Iterable<RoutedTarget['provider']>,
): readonly { readonly target: string; readonly facts: readonly string[] }[] {
  return [...providers].flatMap((provider) => {
    const ofModels = new Map<string, Set<string>>();
    for (const target of learnt.get(provider)?.values() ?? []) {
      const own = before.get(target)?.profile as Readonly<Record<string, unknown>> | undefined;
      const facts = Object.entries(target.profile).flatMap(([fact, value]) =>
        Bun.deepEquals(own?.[fact], value) ? [] : [`${fact}: ${JSON.stringify(value)}`],
      );
      const fields = (target.refusedFields ?? []).map((path) => `without ${path.join('.')}`);
      const name = `${provider.name}/${target.model}`;
      ofModels.set(name, new Set([...(ofModels.get(name) ?? []), ...facts, ...fields]));
    }
    return [...ofModels].map(([target, facts]) => ({ target, facts: [...facts] }));
  });
}
