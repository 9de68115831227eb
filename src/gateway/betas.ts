/** Drops the betas that a Messages vendor refuses, as its profile says: the flag and the fields that belong to it, together. */

import type { Notes } from '../conversation/notes.ts';
import type { Profile } from '../conversation/profile-facts.ts';
import { FlatHeaders, type ReadonlyHeaders } from '../lib/http/headers.ts';
import { isObject, type Json, type JsonObject } from '../lib/json/json.ts';
import { globTest } from '../lib/text/glob.ts';

/**
 * Fields of a Messages body that belong to a beta, each with the flags (globs) of which one is needed. A star in a
 * path stands for every item of a list.
 * https://docs.claude.com/en/api/beta-headers
 */
const BETA_FIELDS: readonly (readonly [path: string, flags: readonly string[]])[] = [
  ['context_management', ['context-management-*', 'compact-*']],
  ['mcp_servers', ['mcp-client-*']],
  ['container', ['code-execution-*', 'skills-*']],
  ['speed', ['fast-mode-*']],
  ['safeguards', ['dangerous-tool-use-*']],
  ['output_format', ['structured-outputs-*']],
  ['output_config.format', ['structured-outputs-*']],
  ['output_config.effort', ['effort-*']],
  ['output_config.task_budget', ['task-budgets-*']],
  ['tools.*.strict', ['structured-outputs-*']],
  ['tools.*.defer_loading', ['tool-search-tool-*', 'advanced-tool-use-*']],
  ['tools.*.input_examples', ['tool-examples-*', 'advanced-tool-use-*']],
  ['tools.*.allowed_callers', ['advanced-tool-use-*']],
  ['tools.*.eager_input_streaming', ['fine-grained-tool-streaming-*']],
  ['tools.*.cache_control.scope', ['prompt-caching-scope-*']],
  ['system.*.cache_control.scope', ['prompt-caching-scope-*']],
  ['messages.*.content.*.cache_control.scope', ['prompt-caching-scope-*']],
  ['cache_control.scope', ['prompt-caching-scope-*']],
];

/**
 * A field that is refused without its flag ("safeguards: Extra inputs are not permitted", BerriAI/litellm's tests of
 * September 2026). Clients send it with the flag, and what stands between may drop one of the two.
 */
const SAFEGUARDS = { field: 'safeguards', flag: 'dangerous-tool-use-2026-09-03' };

/** What of the betas a profile's vendor takes. */
interface BetaRules {
  readonly takes: (flag: string) => boolean;
  /** Paths of the fields that go, split at the dots. */
  readonly fields: readonly (readonly string[])[];
  /** The last names of these paths, as they stand in a body. */
  readonly names: readonly string[];
}

const known = new WeakMap<Profile, BetaRules>();

function rulesOf(profile: Profile): BetaRules | undefined {
  const { betas, refusedBetas, dropParams } = profile;
  const dropped = dropParams?.includes(SAFEGUARDS.field) === true;
  if (betas === undefined && refusedBetas === undefined && !dropped) return undefined;
  let rules = known.get(profile);
  if (rules === undefined) {
    rules = makeRules(profile, dropped);
    known.set(profile, rules);
  }
  return rules;
}

function makeRules(
  { betas, betaFields = [], refusedBetas = [] }: Profile,
  dropped: boolean,
): BetaRules {
  const tests = (betas ?? ['*']).map(globTest);
  const refused = refusedBetas.map(globTest);
  const takes = (flag: string) =>
    tests.some((test) => test(flag)) &&
    !refused.some((test) => test(flag)) &&
    !(dropped && flag === SAFEGUARDS.flag);
  // Either may be a name or a family of names.
  const isTaken = (family: string) =>
    !refusedBetas.some(globTest(family)) &&
    (betas === undefined || betas.some(globTest(family)) || takes(family));
  const fields = BETA_FIELDS.filter(
    ([path, flags]) => !betaFields.includes(path) && !flags.some(isTaken),
  ).map(([path]) => path.split('.'));
  return { takes, fields, names: [...new Set(fields.map((path) => `"${path.at(-1)}"`))] };
}

const BETA = 'anthropic-beta';

/** The headers with the flag that the body's `safeguards` need, where it is missing and this vendor takes it. */
export function withSafeguardsFlag(
  headers: ReadonlyHeaders,
  profile: Profile,
  notes: Notes,
): ReadonlyHeaders {
  const { flag, field } = SAFEGUARDS;
  const written = headers.get(BETA);
  if (written?.includes(flag) === true || rulesOf(profile)?.takes(flag) === false) return headers;
  notes.add('parameter_defaulted', BETA, `${field} need ${flag}`);
  const out = FlatHeaders.from(headers).where((name) => name !== BETA);
  out.set(BETA, written === null || written === '' ? flag : `${written},${flag}`);
  return out;
}

/** The client's headers without the flags that this vendor refuses; the same object where there is none. */
export function withoutRefusedBetas(
  headers: ReadonlyHeaders,
  profile: Profile,
  notes: Notes,
): ReadonlyHeaders {
  const written = headers.get(BETA);
  const rules = written === null ? undefined : rulesOf(profile);
  return written === null || rules === undefined
    ? headers
    : withTakenFlags(headers, written, profile, rules, notes);
}

function withTakenFlags(
  headers: ReadonlyHeaders,
  written: string,
  profile: Profile,
  rules: BetaRules,
  notes: Notes,
): ReadonlyHeaders {
  const flags = written.split(',').map((flag) => flag.trim());
  const left = takenFlags(flags, profile, rules, notes);
  if (left.length === flags.length && left.every((flag, i) => flag === flags[i])) return headers;
  const out = FlatHeaders.from(headers).where((name) => name !== BETA);
  if (left.length > 0) out.set(BETA, left.join(','));
  return out;
}

function takenFlags(
  flags: readonly string[],
  profile: Profile,
  { takes }: BetaRules,
  notes: Notes,
): readonly string[] {
  const left = new Set<string>();
  for (const flag of flags) {
    const here = profile.renameBetas?.[flag] ?? flag;
    if (flag === '') continue;
    if (!takes(here)) {
      notes.add('parameter_dropped', BETA, `${profile.name} does not take ${flag.slice(0, 100)}`);
      continue;
    }
    if (here !== flag) notes.add('parameter_mapped', BETA, `${profile.name} calls ${flag} ${here}`);
    left.add(here);
  }
  return [...left];
}

/** May this body hold a field that goes? Reads its bytes only. */
export function mayHoldRefusedBetas(body: Buffer, profile: Profile): boolean {
  const rules = rulesOf(profile);
  if (rules === undefined) return false;
  return body.includes('"anthropic_beta"') || rules.names.some((name) => body.includes(name));
}

/** The body without the fields of betas that this vendor refuses; the same object where there is none. */
export function withoutRefusedBetaFields(
  body: JsonObject,
  profile: Profile,
  notes: Notes,
): JsonObject {
  const rules = rulesOf(profile);
  if (rules === undefined) return body;
  let out: Json = body;
  for (const path of rules.fields) {
    const cut: Json = without(out, path, 0);
    if (cut === out) continue;
    out = cut;
    notes.add('parameter_dropped', path.join('.'), `${profile.name} does not take its beta`);
  }
  const shaped = out as JsonObject;
  const listed = shaped.anthropic_beta;
  if (!Array.isArray(listed)) return shaped;
  const flags = listed.filter((flag): flag is string => typeof flag === 'string');
  const left = takenFlags(flags, profile, rules, notes);
  if (left.length === listed.length && left.every((flag, i) => flag === listed[i])) return shaped;
  const { anthropic_beta: _, ...rest } = shaped;
  return left.length === 0 ? rest : { ...rest, anthropic_beta: left };
}

/** The value without what is at the path; the very value where nothing is. An object that becomes empty goes, too. */
function without(value: Json, path: readonly string[], depth: number): Json {
  const name = path[depth]!;
  if (name === '*') {
    if (!Array.isArray(value)) return value;
    let changed = false;
    const items = value.map((item) => {
      const cut = without(item, path, depth + 1);
      changed ||= cut !== item;
      return cut;
    });
    return changed ? items : value;
  }
  if (!isObject(value) || !Object.hasOwn(value, name)) return value;
  const { [name]: member, ...rest } = value;
  if (depth === path.length - 1) return rest;
  const cut = without(member!, path, depth + 1);
  if (cut === member) return value;
  return isObject(cut) && Object.keys(cut).length === 0 ? rest : { ...value, [name]: cut };
}
