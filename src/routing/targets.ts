/** Turns the targets of a rule into providers and models: `provider/model`, wildcards, weights, profiles by model. */

import { leastCacheLength, modelsFile, vendorFacts } from '../config/models/model-facts.ts';
import type { ModelRule, ModelsFile } from '../config/models/models-file.ts';
import type { ProviderConfig } from '../config/sections/providers.ts';
import type { RouteTo } from '../config/sections/routes.ts';
import type { Profile } from '../conversation/profile-facts.ts';
import type { Target } from '../conversation/target.ts';
import { memberOf } from '../lib/json/json-members.ts';
import { globTest } from '../lib/text/glob.ts';
import { hashOf, scoreOf } from '../lib/text/rendezvous.ts';
import { responsesProfileOf } from '../vendors/index.ts';
import type { ProfileFacts } from '../vendors/vendor.ts';
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

export function targetOf(provider: ProviderConfig, model: string): RoutedTarget {
  const promptCache = promptCacheOf(provider, model);
  const profile = withModelFacts(profileFor(provider.profile, model), provider, model);
  return {
    provider,
    target: {
      provider: provider.name,
      model,
      protocol: provider.protocol,
      profile: hasBreakpoints(profile, provider) ? profile : withoutBreakpoints(profile),
      ...(promptCache !== 'auto' && { promptCache }),
      ...(profile.cacheMarks && { leastCache: leastCacheLength(provider.vendor, model) }),
    },
  };
}

/** By the target that speaks Chat. */
const responsesTargets = new WeakMap<Target, Target>();

/**
 * The same model over Responses, at the same address, for requests with function tools: where Chat refuses tools beside
 * reasoning, and the model cannot be told not to reason. Undefined: the target takes them, or its vendor has no Responses.
 */
export function targetWithTools(provider: ProviderConfig, target: Target): Target | undefined {
  const { protocol, profile, model } = target;
  if (protocol !== 'openai-chat' || profile.chatToolsWhileThinking !== false) return undefined;
  if (profile.efforts?.includes('none') !== false) return undefined;
  let found = responsesTargets.get(target);
  if (found === undefined) {
    const facts = responsesProfileOf(provider.profile.builtIn ?? provider.profile.name);
    if (facts === undefined) return undefined;
    const { profile: _, ...same } = target;
    const own = profileFor(facts, model);
    found = {
      ...same,
      protocol: 'openai-responses',
      profile: hasBreakpoints(own, provider) ? own : withoutBreakpoints(own),
    };
    responsesTargets.set(target, found);
  }
  return found;
}

/** The word of the model itself comes first, then that of the first glob, then the provider's. */
function promptCacheOf({ modelCaches, promptCache = 'auto' }: ProviderConfig, model: string) {
  if (modelCaches === undefined) return promptCache;
  const own = memberOf(modelCaches, model);
  const found = own ?? Object.entries(modelCaches).find(([glob]) => globTest(glob)(model))?.[1];
  return found ?? promptCache;
}

/** Are they taken, if at all, at the address that is asked? */
function hasBreakpoints({ breakpointsAt: host }: Profile, { baseUrl }: ProviderConfig): boolean {
  if (!host) return true;
  const { hostname } = new URL(baseUrl);
  // Regional hosts have a prefix: eu.api.openai.com.
  return hostname === host || hostname.endsWith(`.${host}`);
}

const profilesElsewhere = new WeakMap<Profile, Profile>();

function withoutBreakpoints(profile: Profile): Profile {
  let elsewhere = profilesElsewhere.get(profile);
  if (elsewhere === undefined) {
    const { breakpointsAt: _, ...others } = profile;
    elsewhere = Object.freeze(others);
    profilesElsewhere.set(profile, elsewhere);
  }
  return elsewhere;
}

/** Profiles with the facts of a model, by those facts. */
const factProfiles = new WeakMap<Profile, Map<string, Profile>>();

/**
 * The profile with what is known of the model itself: its largest answer, and that it does not reason. The file's own
 * word comes first, then the profile's, then the catalogue's about this very vendor: other vendors' limits differ.
 */
function withModelFacts(profile: Profile, provider: ProviderConfig, model: string): Profile {
  const own = memberOf(provider.facts, model);
  const listed = vendorFacts(provider.vendor, model);
  if (own === undefined && listed === undefined) return profile;
  const output = own?.output ?? profile.maxOutput ?? listed?.output;
  // Of vendors with a control of their own the profile knows more than the catalogue.
  const silent =
    profile.reasoningParam === undefined || profile.reasoningParam === 'reasoning_effort';
  const unknown = silent && profile.thinkingDefault === undefined && profile.efforts === undefined;
  const reasons = own?.reasoning ?? (unknown ? listed?.reasoning : undefined);
  if (output === profile.maxOutput && reasons !== false) return profile;
  let known = factProfiles.get(profile);
  if (known === undefined) {
    known = new Map();
    factProfiles.set(profile, known);
  }
  const key = `${output} ${reasons}`;
  let fitted = known.get(key);
  if (fitted === undefined) {
    fitted = Object.freeze({
      ...profile,
      ...(output !== undefined && { maxOutput: output }),
      ...(reasons === false && { reasoningParam: 'none', thinkingDefault: 'off' }),
    });
    known.set(key, fitted);
  }
  return fitted;
}

/** The profiles of single models that a vendor's facts give. */
interface ModelProfiles {
  readonly rules: readonly ModelRule[];
  readonly own: readonly ModelRule[];
  /** By the globs that match, as a text of bits; so there are only as many as the globs can combine to. */
  readonly profiles: Map<string, Profile>;
}
const modelProfiles = new WeakMap<ModelsFile, WeakMap<ProfileFacts, ModelProfiles>>();

function modelProfilesOf(facts: ProfileFacts): ModelProfiles {
  const file = modelsFile();
  let all = modelProfiles.get(file);
  if (all === undefined) {
    all = new WeakMap();
    modelProfiles.set(file, all);
  }
  let known = all.get(facts);
  if (known === undefined) {
    const own = Object.entries(facts.models ?? {});
    known = {
      rules: file.rulesOf(facts.builtIn ?? facts.name),
      own: own.map(([glob, of]) => ({ test: globTest(glob), facts: of })),
      profiles: new Map(),
    };
    all.set(facts, known);
  }
  return known;
}

/**
 * The profile of one model: the vendor's facts, with the matching rules of the file of models laid over them, then the
 * matching ones of the profile itself. A model that is newer than the file is what its predecessor is. Equal profiles
 * are the same object.
 */
export function profileFor(facts: ProfileFacts, model: string): Profile {
  const known = modelProfilesOf(facts);
  const { rules, own } = known;
  if (rules.length === 0 && own.length === 0) return facts;
  const name =
    rules.length === 0 || model.length > LONG_NAME
      ? model
      : (modelsFile().predecessor(model)?.id ?? model);
  const matching = [
    ...rules.filter(({ test }) => test(name)),
    ...own.filter(({ test }) => test(model)),
  ];
  const key = [...rules, ...own].map((glob) => (matching.includes(glob) ? '1' : '0')).join('');
  let profile = known.profiles.get(key);
  if (profile === undefined) {
    const { models: _, builtIn: __, ...base } = facts;
    profile = Object.freeze(
      Object.assign({ ...base }, ...matching.map((glob) => glob.facts)) as Profile,
    );
    known.profiles.set(key, profile);
  }
  return profile;
}

/** By target; '': its own facts are known, or it has none. */
const standIns = new WeakMap<ModelsFile, WeakMap<Target, string>>();

/** The older model whose rules a request for this target is fitted to, since the file of models does not have its own. */
export function standInOf({ provider, target }: RoutedTarget): string | undefined {
  const file = modelsFile();
  let all = standIns.get(file);
  if (all === undefined) {
    all = new WeakMap();
    standIns.set(file, all);
  }
  let known = all.get(target);
  if (known === undefined) {
    known = predecessorOf(provider, target, file);
    all.set(target, known);
  }
  return known === '' ? undefined : known;
}

/** '' where there is none that the provider's profile has rules for. */
function predecessorOf(
  { profile }: RoutedTarget['provider'],
  { model }: Target,
  file: ModelsFile,
): string {
  const { rules } = modelProfilesOf(profile);
  if (rules.length === 0 || model.length > LONG_NAME) return '';
  const before = file.predecessor(model)?.id;
  return before !== undefined && rules.some(({ test }) => test(before)) ? before : '';
}

/** A target of a rule with what decides which sessions prefer it. */
interface Candidate {
  readonly routed: RoutedTarget;
  readonly weight: number;
  readonly hash: number;
}

/** The targets of a rule in the order of the file, none twice. A `*` in the model stands for the requested name. */
function expand(
  to: readonly RouteTo[],
  requested: string,
  providers: Providers,
): readonly Candidate[] {
  const out: Candidate[] = [];
  const seen = new Set<string>();
  for (const { target, weight = 1 } of to) {
    const parts = splitTarget(target, providers);
    if (parts === undefined) continue;
    // A function: in a replacement text, `$&` in the requested name would be special.
    const model = parts.model.replace('*', () => requested);
    const key = `${parts.provider.name}/${model}`;
    if (model === '' || seen.has(key)) continue;
    seen.add(key);
    out.push({ routed: targetOf(parts.provider, model), weight, hash: hashOf(key) });
  }
  return out;
}

// Clients choose the names: above this number all are forgotten, and longer names are not remembered.
export const MAX_REMEMBERED = 1000;
export const LONG_NAME = 256;

/**
 * The targets of one rule, remembered by requested name. With weights each session has an order of its own
 * (weighted rendezvous hashing): targets without weight come last, in the order of the file.
 */
export function expander(
  to: readonly RouteTo[],
  providers: Providers,
): (requested: string, affinity: string) => readonly RoutedTarget[] {
  const weighted = isWeighted(to);
  const known = new Map<string, readonly Candidate[]>();
  const inFileOrder = new WeakMap<readonly Candidate[], readonly RoutedTarget[]>();
  return (requested, affinity) => {
    let candidates = known.get(requested);
    if (candidates === undefined) {
      candidates = expand(to, requested, providers);
      if (known.size >= MAX_REMEMBERED) known.clear();
      if (requested.length <= LONG_NAME) known.set(requested, candidates);
    }
    if (weighted) return inSessionOrder(candidates, hashOf(affinity));
    let targets = inFileOrder.get(candidates);
    if (targets === undefined) {
      targets = candidates.map(({ routed }) => routed);
      inFileOrder.set(candidates, targets);
    }
    return targets;
  };
}

export const isWeighted = (to: readonly RouteTo[]) =>
  to.length > 1 && to.some((one) => one.weight !== undefined);

function inSessionOrder(
  candidates: readonly Candidate[],
  session: number,
): readonly RoutedTarget[] {
  return candidates
    .map(({ routed, weight, hash }) => ({ routed, score: scoreOf(session, hash, weight) }))
    .sort((a, b) => b.score - a.score)
    .map(({ routed }) => routed);
}
