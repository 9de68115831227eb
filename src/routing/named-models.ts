/** Models that a body names beside `model`: those that a vendor may answer with, or ask, on its own. */

import type { ProtocolName } from '../conversation/types.ts';
import type { Policy, Principal } from '../keys/principal.ts';
import { isObject, type Json, type Member, topLevel, tryParse } from '../lib/json/json.ts';
import { refusedModel } from './permitted.ts';
import type { RoutedTarget } from './request.ts';

/**
 * - OpenRouter (https://openrouter.ai/docs/features/model-routing, …/plugins): `models`, `plugins`, and tools of its own
 * - Anthropic (beta `server-side-fallback`): `fallbacks`, and the tool `advisor`
 * - LiteLLM (https://docs.litellm.ai/docs/proxy/reliability): `fallbacks`, `context_window_fallbacks`,
 *   `content_policy_fallbacks`
 * - Vercel's gateway: `providerOptions.gateway.models`
 * - Groq's compound systems: `compound_custom.models`
 */
const LISTS = [
  'models',
  'fallbacks',
  'fallback_models',
  'context_window_fallbacks',
  'content_policy_fallbacks',
  'plugins',
  'providerOptions',
  'provider_options',
  'compound_custom',
];
/** Stored at the vendor under a name; the gateway cannot see its models. */
const STORED = ['preset'];
/** Fields of a declared tool that are the client's own words. */
const CLIENTS_OWN: ReadonlySet<string> = new Set([
  'function',
  'input_schema',
  'input_examples',
  'functionDeclarations',
  'function_declarations',
]);
const NAMES_MODELS = /model|fallbacks/i;
/** Fields are not nested deeper. */
const MAX_DEPTH = 8;
/** Nobody lists more. */
const MAX_NAMES = 1000;

interface AskedBody {
  readonly bytes: Uint8Array;
  readonly members?: ReadonlyMap<string, Member> | undefined;
}

/**
 * The targets at which the key may use every model that the body names. Elsewhere than in the client's own protocol such
 * fields are not sent.
 * @throws GatewayError permission if none is left
 */
export function targetsForNamed(
  { policy }: Principal,
  asked: AskedBody,
  client: ProtocolName,
  targets: readonly RoutedTarget[],
): readonly RoutedTarget[] {
  return policy.everyModel ? targets : allowedForNamed(policy, asked, client, targets);
}

function allowedForNamed(
  policy: Policy,
  asked: AskedBody,
  client: ProtocolName,
  targets: readonly RoutedTarget[],
): readonly RoutedTarget[] {
  const { bytes, members = topLevel(bytes) } = asked;
  const named = members && namedModels(bytes, members);
  if (named === undefined) return targets;
  const allowed = targets.filter(
    ({ target: { protocol, provider } }) =>
      protocol !== client ||
      (named.stored === undefined &&
        named.models.every((model) => policy.allowsTarget(model, { provider, model }))),
  );
  if (allowed.length > 0) return allowed;
  const { provider } = targets[0]!.target;
  const refused =
    named.stored ?? named.models.find((model) => !policy.allowsTarget(model, { provider, model }));
  throw refusedModel(refused ?? '', named.field);
}

interface NamedModels {
  readonly models: readonly string[];
  /** The name of something that is kept at the vendor. */
  readonly stored: string | undefined;
  /** Where the first one stands. */
  readonly field: string;
}

function namedModels(
  bytes: Uint8Array,
  members: ReadonlyMap<string, Member>,
): NamedModels | undefined {
  const valueAt = (field: string): Json | undefined => {
    const member = members.get(field);
    if (member === undefined) return undefined;
    return tryParse(Buffer.from(bytes.subarray(member.valueStart, member.valueEnd)).toString());
  };
  const models: string[] = [];
  let first: string | undefined;
  for (const field of LISTS) {
    const value = valueAt(field);
    if (value === undefined) continue;
    const before = models.length;
    collect(value, NAMES_MODELS.test(field), models, 0);
    if (models.length > before) first ??= field;
  }
  const tools = valueAt('tools');
  if (Array.isArray(tools)) {
    const before = models.length;
    for (const tool of tools)
      if (isObject(tool) && isVendors(tool)) collect(tool, false, models, 0);
    if (models.length > before) first ??= 'tools';
  }
  const stored = STORED.map(valueAt).find((value) => typeof value === 'string' && value !== '');
  if (models.length === 0 && stored === undefined) return undefined;
  return { models, stored: stored as string | undefined, field: first ?? STORED[0]! };
}

/** A tool that the vendor runs: its declaration is no schema of the client's. */
const isVendors = (tool: Readonly<Record<string, Json | undefined>>): boolean =>
  typeof tool.type === 'string' && tool.type !== 'function' && tool.type !== 'custom';

/** @param isName strings here are names of models */
function collect(value: Json, isName: boolean, into: string[], depth: number): void {
  if (depth > MAX_DEPTH || into.length >= MAX_NAMES) return;
  if (typeof value === 'string') {
    if (isName && value !== '') into.push(value);
  } else if (Array.isArray(value)) {
    for (const item of value) collect(item, isName, into, depth + 1);
  } else if (isObject(value)) {
    for (const key of Object.keys(value)) {
      if (CLIENTS_OWN.has(key)) continue;
      const named = NAMES_MODELS.test(key);
      // LiteLLM: `fallbacks: [{"asked": ["instead"]}]`.
      const isList = isName && Array.isArray(value[key]);
      collect(value[key] ?? null, named || isList, into, depth + 1);
    }
  }
}
