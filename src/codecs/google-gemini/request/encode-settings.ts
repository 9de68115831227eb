/** Encodes settings as `generationConfig`, `toolConfig` and other members of a Gemini request. */

import { noteLostSettings } from '../../../conversation/lost-fields.ts';
import { EFFORT_BUDGETS } from '../../../conversation/models/efforts.ts';
import type { Notes } from '../../../conversation/notes.ts';
import type { Target } from '../../../conversation/target.ts';
import type {
  Conversation,
  OutputFormat,
  ReasoningSettings,
  Settings,
  ToolChoice,
} from '../../../conversation/types.ts';
import type { Json, JsonObject } from '../../../lib/json/json.ts';
import { memberOf, putAll } from '../../../lib/json/json-members.ts';
import {
  compact,
  field,
  geminiNames,
  object,
  PROTOCOL,
  snakeCase,
  spellingIn,
  without,
} from '../wire.ts';
import { CONFIG_KEYS, CONFIG_REST, TOP_KEYS } from './decode-settings.ts';
import { reducedSchema } from './json-schema.ts';

type Body = Record<string, Json | undefined>;
type ConfigName = keyof typeof CONFIG_KEYS;

const CONFIG_NAMES = Object.keys(CONFIG_KEYS) as readonly ConfigName[];

/**
 * The members of the body other than model, contents, instructions and tools. Those of unchanged settings go
 * out as they came.
 * @param declared the names of the declared functions
 */
export function encodeSettings(
  conversation: Conversation,
  target: Target,
  notes: Notes,
  declared: ReadonlySet<string>,
): JsonObject {
  const { settings, origin } = conversation;
  if (origin?.protocol === PROTOCOL) return ownSettings(conversation, target, notes, declared);
  const config: Body = {};
  for (const name of CONFIG_NAMES) {
    if (!isTaken(name)) continue;
    Object.assign(config, written(name, conversation, target, notes, declared));
  }
  const body: Body = { stream: settings.stream || undefined };
  if (Object.keys(compact(config)).length > 0) body.generationConfig = compact(config);
  body.toolConfig = encodeToolChoice(settings.toolChoice, conversation, notes, declared);
  body.serviceTier = encodeTier(settings.serviceTier, notes);
  noteDropped(settings, notes);
  return compact(body);
}

// https://ai.google.dev/gemini-api/docs/optimization
const TIERS: Readonly<Record<string, string>> = {
  default: 'standard',
  standard_only: 'standard',
  flex: 'flex',
  priority: 'priority',
};

function encodeTier(asked: string | undefined, notes: Notes): string | undefined {
  // Google chooses by itself where it is told nothing.
  if (asked === undefined || asked === 'auto') return undefined;
  const tier = memberOf(TIERS, asked);
  if (tier === undefined) notes.add('parameter_dropped', 'service_tier', asked);
  return tier;
}

/** The settings of a client of this protocol: its own body with what was changed since. */
function ownSettings(
  conversation: Conversation,
  target: Target,
  notes: Notes,
  declared: ReadonlySet<string>,
): JsonObject {
  const { settings } = conversation;
  const origin = conversation.origin!;
  const before = origin.parts.settings;
  const out: Body = without(origin.value, [
    'model',
    'contents',
    'systemInstruction',
    'tools',
  ]) as Body;
  if (settings === before) return out;
  let config: Body = { ...object(field(origin.value, 'generationConfig')) };
  for (const name of CONFIG_NAMES) {
    if (settings[name] === before[name]) continue;
    config = without(config, CONFIG_KEYS[name]) as Body;
    Object.assign(config, written(name, conversation, target, notes, declared));
  }
  dropRest(before.rest, settings.rest, out, config);
  const place = spellingIn(origin.value, 'generationConfig');
  delete out[place];
  const changed = CONFIG_NAMES.some((name) => settings[name] !== before[name]);
  if (!changed && settings.rest === before.rest) {
    if (place in origin.value) out[place] = origin.value[place];
  } else if (Object.keys(compact(config)).length > 0) out[place] = compact(config);
  for (const name of Object.keys(TOP_KEYS) as (keyof typeof TOP_KEYS)[]) {
    if (settings[name] === before[name]) continue;
    for (const key of TOP_KEYS[name]) {
      delete out[key];
      delete out[snakeCase(key)];
    }
    if (name === 'toolChoice') {
      out.toolConfig = encodeToolChoice(settings.toolChoice, conversation, notes, declared);
    } else out[TOP_KEYS[name][0]] = settings[name] as Json | undefined;
  }
  return compact(out);
}

/** Members that only this protocol knows, and that were taken out of `rest` since. */
function dropRest(
  before: JsonObject | undefined,
  now: JsonObject | undefined,
  out: Body,
  config: Body,
): void {
  if (before === now) return;
  for (const key of Object.keys(before ?? {})) {
    if (now?.[key] !== undefined) continue;
    if (key.startsWith(CONFIG_REST)) delete config[key.slice(CONFIG_REST.length)];
    else delete out[key];
  }
  const added = Object.entries(now ?? {}).filter(([key]) => !key.startsWith(CONFIG_REST));
  putAll(out, Object.fromEntries(added));
}

/** The members of `generationConfig` for one setting. */
function written(
  name: ConfigName,
  { settings }: Conversation,
  { profile }: Target,
  notes: Notes,
  declared: ReadonlySet<string>,
): JsonObject {
  switch (name) {
    case 'stop': {
      const { stop } = settings;
      return { stopSequences: stop !== undefined && stop.length > 0 ? stop : undefined };
    }
    case 'logprobs': {
      const { logprobs } = settings;
      return logprobs === undefined ? {} : { responseLogprobs: true, logprobs: logprobs.top };
    }
    case 'reasoning':
      if (profile.reasoningParam !== 'none') {
        return encodeReasoning(settings.reasoning, profile.thinkingLevels === true, notes);
      }
      if (settings.reasoning !== undefined) notes.add('parameter_dropped', 'reasoning');
      return {};
    case 'format': {
      const refused = profile.formatWithFunctions === false && declared.size > 0;
      if (!refused) return encodeFormat(settings.format, profile.jsonSchema !== false, notes);
      if (settings.format !== undefined && settings.format.type !== 'text') {
        notes.add('parameter_dropped', 'generationConfig/responseMimeType', 'not beside functions');
      }
      return {};
    }
    default:
      return { [CONFIG_KEYS[name][0]]: settings[name] };
  }
}

/** The largest budget that every one of Google's models takes. */
const MAX_BUDGET = 24_576;
const BUDGETS = { ...EFFORT_BUDGETS, xhigh: MAX_BUDGET, max: MAX_BUDGET };

const LEVELS: Readonly<Record<string, string>> = {
  minimal: 'MINIMAL',
  low: 'LOW',
  medium: 'MEDIUM',
  high: 'HIGH',
  xhigh: 'HIGH',
  max: 'HIGH',
};

function levelOf(budget: number): string {
  if (budget <= 2048) return 'LOW';
  return budget <= 10_240 ? 'MEDIUM' : 'HIGH';
}

/** Reasoning as `thinkingConfig`: a level for models that take one, else a budget. */
function encodeReasoning(
  wish: ReasoningSettings | undefined,
  levels: boolean,
  notes: Notes,
): JsonObject {
  if (wish === undefined) return {};
  const { effort, budget, adaptive } = wish;
  const off = wish.enabled === false || effort === 'none';
  if (off) {
    if (!levels) return { thinkingConfig: { thinkingBudget: 0 } };
    notes.add('parameter_mapped', 'reasoning', 'off as the lowest level');
    return { thinkingConfig: { thinkingLevel: 'MINIMAL' } };
  }
  const amount = levels
    ? levelFor(effort, budget, notes)
    : budgetFor(effort, budget, adaptive, notes);
  const hidden = wish.display === 'omitted';
  const shown = hidden ? {} : { includeThoughts: true };
  return { thinkingConfig: { ...amount, ...shown } };
}

function levelFor(
  effort: string | undefined,
  budget: number | undefined,
  notes: Notes,
): JsonObject {
  if (effort !== undefined)
    return { thinkingLevel: memberOf(LEVELS, effort) ?? effort.toUpperCase() };
  if (budget === undefined) return {};
  notes.add('parameter_mapped', 'reasoning', `a budget of ${budget} tokens as a level`);
  return { thinkingLevel: levelOf(budget) };
}

function budgetFor(
  effort: string | undefined,
  budget: number | undefined,
  adaptive: boolean | undefined,
  notes: Notes,
): JsonObject {
  if (budget !== undefined) {
    if (budget > MAX_BUDGET) {
      notes.add('parameter_mapped', 'reasoning', `a budget of ${budget} tokens as ${MAX_BUDGET}`);
    }
    return { thinkingBudget: Math.min(budget, MAX_BUDGET) };
  }
  const tokens = effort === undefined ? undefined : memberOf(BUDGETS, effort);
  if (tokens !== undefined) {
    notes.add('parameter_mapped', 'reasoning', `effort ${effort} as a budget of ${tokens} tokens`);
    return { thinkingBudget: tokens };
  }
  return adaptive === true ? { thinkingBudget: -1 } : {};
}

function encodeFormat(
  format: OutputFormat | undefined,
  takesJson: boolean,
  notes: Notes,
): JsonObject {
  if (format === undefined || format.type === 'text') return {};
  const responseMimeType = 'application/json';
  if (format.type !== 'schema') return { responseMimeType };
  if (takesJson) return { responseMimeType, responseJsonSchema: format.schema };
  const { schema, lost } = reducedSchema(format.schema);
  if (lost.length > 0)
    notes.add('schema_simplified', 'generationConfig/responseSchema', lost.join(', '));
  return { responseMimeType, responseSchema: schema };
}

/** A tool choice as `toolConfig`; undefined for the default, and without functions. */
function encodeToolChoice(
  choice: ToolChoice | undefined,
  conversation: Conversation,
  notes: Notes,
  declared: ReadonlySet<string>,
): JsonObject | undefined {
  if (choice === undefined || choice.type === 'auto') return undefined;
  const calling = (mode: string, names?: readonly string[]) => ({
    functionCallingConfig: {
      mode,
      ...(names === undefined ? {} : { allowedFunctionNames: names }),
    },
  });
  if (declared.size === 0) {
    if (choice.type !== 'none') notes.add('parameter_dropped', 'tool_choice', 'no tools');
    return undefined;
  }
  if (choice.type !== 'allowed' && choice.type !== 'tool') {
    return calling(choice.type === 'none' ? 'NONE' : 'ANY');
  }
  const own = conversation.origin?.protocol === PROTOCOL;
  const names = geminiNames(conversation.tools);
  const flat = (name: string, namespace?: string) =>
    own && namespace === undefined ? name : names.flat(name, namespace);
  if (choice.type === 'allowed') {
    const allowed = choice.names.map((name) => flat(name)).filter((name) => declared.has(name));
    if (allowed.length === 0) return undefined;
    // With AUTO no names may be given.
    return calling(choice.mode === 'required' ? 'ANY' : 'VALIDATED', allowed);
  }
  const name = flat(choice.name, choice.namespace);
  if (declared.has(name)) return calling('ANY', [name]);
  notes.add('parameter_mapped', 'tool_choice', `${choice.name} cannot be forced`);
  return undefined;
}

const BESIDE: ReadonlySet<string> = new Set<keyof Settings>([
  ...(['toolChoice', 'serviceTier', 'stream', 'streamUsage'] as const),
]);
// Clients of other protocols would pay for several answers and get one.
const isTaken = (name: keyof Settings) => (name in CONFIG_KEYS && name !== 'n') || BESIDE.has(name);

/** Notes what Gemini has no field for. */
function noteDropped(settings: Settings, notes: Notes): void {
  noteLostSettings(settings, notes, isTaken);
  for (const key in settings.rest) {
    // Clients write null for a field that they do not set.
    if (settings.rest[key] !== undefined && settings.rest[key] !== null) {
      notes.add('parameter_dropped', key);
    }
  }
}
