/** Turns the targets of a rule into providers and models: `provider/model`, wildcards, weights, profiles by model. */

import type { ProviderConfig } from '../config/sections/providers.ts';
import type { RouteTo } from '../config/sections/routes.ts';
import type { Facts, ProfileFacts } from '../config/vendors/profile-schema.ts';
import type { Profile } from '../conversation/target.ts';
import { globTest } from '../lib/text/glob.ts';
import type { RoutedTarget } from './request.ts';

export type Providers = Readonly<Record<string, ProviderConfig>>;

/** `provider/model` split at its first slash; undefined when the first part is no provider's name. */
export function splitTarget(
  name: string,
  providers: Providers,
): { provider: ProviderConfig; model: string } | undefined {
  const slash = name.indexOf('/');
  if (slash <= 0 || slash === name.length - 1) return undefined;
  const provider = name.slice(0, slash);
  return Object.hasOwn(providers, provider)
    ? { provider: providers[provider]!, model: name.slice(slash + 1) }
    : undefined;
}

/** The target for a model of a provider. */
export function targetOf(provider: ProviderConfig, model: string): RoutedTarget {
  return {
    provider,
    target: {
      provider: provider.name,
      model,
      protocol: provider.protocol,
      profile: profileFor(provider.profile, model),
    },
  };
}

/** The profiles of single models that a vendor's facts give. */
interface ModelProfiles {
  readonly globs: readonly { readonly test: (text: string) => boolean; readonly facts: Facts }[];
  /** By the globs that match, as a text of bits; so there are only as many as the globs can combine to. */
  readonly profiles: Map<string, Profile>;
}
const modelProfiles = new WeakMap<ProfileFacts, ModelProfiles>();

/**
 * The profile of one model: the vendor's facts, with those of every matching glob laid over them.
 * Equal profiles are the same object.
 */
export function profileFor(facts: ProfileFacts, model: string): Profile {
  if (facts.models === undefined) return facts;
  let known = modelProfiles.get(facts);
  if (known === undefined) {
    const globs = Object.entries(facts.models).map(([glob, own]) => ({
      test: globTest(glob),
      facts: own,
    }));
    known = { globs, profiles: new Map() };
    modelProfiles.set(facts, known);
  }
  const matching = known.globs.filter(({ test }) => test(model));
  const key = known.globs.map((glob) => (matching.includes(glob) ? '1' : '0')).join('');
  let profile = known.profiles.get(key);
  if (profile === undefined) {
    const { models: _, ...base } = facts;
    profile = Object.freeze(
      Object.assign({ ...base }, ...matching.map((glob) => glob.facts)) as Profile,
    );
    known.profiles.set(key, profile);
  }
  return profile;
}

/**
 * The targets of a rule in the order to try them, none twice. A `*` in the model stands for the requested
 * name. With weights, one target is picked as the first and the others keep their order after it.
 */
function expand(
  to: readonly RouteTo[],
  requested: string,
  affinity: string,
  providers: Providers,
): readonly RoutedTarget[] {
  const out: RoutedTarget[] = [];
  const seen = new Set<string>();
  for (const { target } of weighted(to, affinity)) {
    const parts = splitTarget(target, providers);
    if (parts === undefined) continue;
    // A function: in a replacement text, `$&` in the requested name would be special.
    const model = parts.model.replace('*', () => requested);
    const key = `${parts.provider.name}/${model}`;
    if (model === '' || seen.has(key)) continue;
    seen.add(key);
    out.push(targetOf(parts.provider, model));
  }
  return out;
}

// Clients choose the names: above this number all are forgotten, and longer names are not remembered.
export const MAX_REMEMBERED = 1000;
export const LONG_NAME = 256;

/** {@link expand} for one rule. Remembers the targets by name; with weights, the affinity decides for each request. */
export function expander(
  to: readonly RouteTo[],
  providers: Providers,
): (requested: string, affinity: string) => readonly RoutedTarget[] {
  if (isWeighted(to)) return (requested, affinity) => expand(to, requested, affinity, providers);
  const known = new Map<string, readonly RoutedTarget[]>();
  return (requested) => {
    let targets = known.get(requested);
    if (targets === undefined) {
      if (known.size >= MAX_REMEMBERED) known.clear();
      targets = expand(to, requested, '', providers);
      if (requested.length > LONG_NAME) return targets;
      known.set(requested, targets);
    }
    return targets;
  };
}

const isWeighted = (to: readonly RouteTo[]) =>
  to.length > 1 && to.some((one) => one.weight !== undefined);

/**
 * Weighted rendezvous hashing: each target scores -weight / ln(u), with u from the hash of affinity and
 * target, and the highest score wins. A session keeps its target as long as that target's share does
 * not shrink, whatever happens to the others.
 */
function weighted(to: readonly RouteTo[], affinity: string): readonly RouteTo[] {
  if (!isWeighted(to)) return to;
  let best: RouteTo | undefined;
  let bestScore = 0;
  for (const one of to) {
    const hash = Bun.hash.xxHash32(`${affinity}\0${one.target}`);
    const score = -(one.weight ?? 1) / Math.log((hash + 0.5) / 2 ** 32);
    if (score > bestScore) {
      best = one;
      bestScore = score;
    }
  }
  return best === undefined ? to : [best, ...to.filter((one) => one !== best)];
}
