/** From the names in a rule to places to send to: `provider/model`, wildcards, weights, profiles by model. */

import type { ProviderConfig } from '../config/sections/providers.ts';
import type { RouteTo } from '../config/sections/routes.ts';
import type { Facts, ProfileFacts } from '../config/vendors/profile-schema.ts';
import type { Profile } from '../conversation/target.ts';
import { globTest } from '../lib/text/glob.ts';
import type { RoutedTarget } from './request.ts';

export type Providers = Readonly<Record<string, ProviderConfig>>;

/** `provider/model` cut at its first slash; undefined when that is not a provider's name. */
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

/** The place that a provider and a model name are. */
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

interface Variants {
  readonly globs: readonly { readonly test: (text: string) => boolean; readonly facts: Facts }[];
  /** By which globs fit, as bits: there are only as many profiles as the table can make. */
  readonly built: Map<string, Profile>;
}
const variants = new WeakMap<ProfileFacts, Variants>();

/**
 * What is known of this model: the vendor's facts with those of every glob that fits laid over them.
 * The same reference for the same facts.
 */
export function profileFor(facts: ProfileFacts, model: string): Profile {
  if (facts.models === undefined) return facts;
  let known = variants.get(facts);
  if (known === undefined) {
    const globs = Object.entries(facts.models).map(([glob, own]) => ({
      test: globTest(glob),
      facts: own,
    }));
    known = { globs, built: new Map() };
    variants.set(facts, known);
  }
  const fits = known.globs.filter(({ test }) => test(model));
  const key = known.globs.map((glob) => (fits.includes(glob) ? '1' : '0')).join('');
  let profile = known.built.get(key);
  if (profile === undefined) {
    const { models: _, ...base } = facts;
    profile = Object.freeze(Object.assign({ ...base }, ...fits.map((fit) => fit.facts)) as Profile);
    known.built.set(key, profile);
  }
  return profile;
}

/**
 * The targets of a rule in the order to try them, none twice. `*` in the model's place takes the
 * asked name. Where there are weights, one target is picked to begin with and the others keep their
 * order behind it.
 */
function expand(
  to: readonly RouteTo[],
  asked: string,
  affinity: string,
  providers: Providers,
): readonly RoutedTarget[] {
  const out: RoutedTarget[] = [];
  const seen = new Set<string>();
  for (const { target } of weighted(to, affinity)) {
    const parts = splitTarget(target, providers);
    if (parts === undefined) continue;
    // A function, so that `$&` in an asked name is nothing special.
    const model = parts.model.replace('*', () => asked);
    const key = `${parts.provider.name}/${model}`;
    if (model === '' || seen.has(key)) continue;
    seen.add(key);
    out.push(targetOf(parts.provider, model));
  }
  return out;
}

// Clients choose the names: beyond so many the remembered ones are forgotten, and long ones are not kept.
export const MOST_NAMES = 1000;
export const LONG_NAME = 256;

/**
 * {@link expand} for one rule, remembering what came of a name. Where weights pick a target, the
 * affinity decides anew for every request.
 */
export function expander(
  to: readonly RouteTo[],
  providers: Providers,
): (asked: string, affinity: string) => readonly RoutedTarget[] {
  if (isWeighted(to)) return (asked, affinity) => expand(to, asked, affinity, providers);
  const known = new Map<string, readonly RoutedTarget[]>();
  return (asked) => {
    let targets = known.get(asked);
    if (targets === undefined) {
      if (known.size >= MOST_NAMES) known.clear();
      targets = expand(to, asked, '', providers);
      if (asked.length > LONG_NAME) return targets;
      known.set(asked, targets);
    }
    return targets;
  };
}

const isWeighted = (to: readonly RouteTo[]) =>
  to.length > 1 && to.some((one) => one.weight !== undefined);

/**
 * Rendezvous hashing with weights: each target draws -weight / ln(u) with u from the hash of affinity
 * and target, and the highest wins. A session keeps its target as long as that target's share
 * does not shrink, whatever happens to the others.
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
