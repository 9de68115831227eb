/** Decodes the settings of a Gemini request: everything except model, contents, instructions and tools. */

import type {
  OutputFormat,
  ReasoningSettings,
  Settings,
  ToolChoice,
} from '../../../conversation/types.ts';
import type { Json, JsonObject } from '../../../lib/json/json.ts';
import { put } from '../../../lib/json/json-members.ts';
import {
  compact,
  field,
  flag,
  inBothSpellings,
  list,
  number,
  object,
  text,
  wrongValue,
} from '../wire.ts';
import { jsonSchemaOf } from './json-schema.ts';

/** Where each setting stands: the members of `generationConfig`, and those at the top of the body. */
export const CONFIG_KEYS = {
  maxTokens: ['maxOutputTokens'],
  temperature: ['temperature'],
  topP: ['topP'],
  topK: ['topK'],
  stop: ['stopSequences'],
  seed: ['seed'],
  n: ['candidateCount'],
  presencePenalty: ['presencePenalty'],
  frequencyPenalty: ['frequencyPenalty'],
  logprobs: ['responseLogprobs', 'logprobs'],
  reasoning: ['thinkingConfig'],
  format: ['responseMimeType', 'responseSchema', 'responseJsonSchema', '_responseJsonSchema'],
} as const satisfies Partial<Record<keyof Settings, readonly string[]>>;

export const TOP_KEYS = {
  stream: ['stream'],
  toolChoice: ['toolConfig'],
  metadata: ['labels'],
  serviceTier: ['serviceTier'],
  store: ['store'],
} as const satisfies Partial<Record<keyof Settings, readonly string[]>>;

/** Members of the body that are no settings. */
const PARTS = ['model', 'contents', 'systemInstruction', 'tools'];

const KNOWN = inBothSpellings([...PARTS, 'generationConfig', ...Object.values(TOP_KEYS).flat()]);
const KNOWN_CONFIG = inBothSpellings(Object.values(CONFIG_KEYS).flat());

/** A setting of `generationConfig` in `rest`: its name there. */
export const CONFIG_REST = 'generationConfig.';

/**
 * The settings of a body. A setting of the wrong type counts as absent, but still goes to a vendor of this
 * protocol unchanged.
 * @throws GatewayError invalid_request for a `generationConfig` that is no object: it would take all settings along
 */
export function decodeSettings(body: JsonObject): Settings {
  const config = configOf(field(body, 'generationConfig'));
  const stop = list(field(config, 'stopSequences'));
  const logprobs = flag(field(config, 'responseLogprobs'));
  const settings: JsonObject | Settings = compact({
    stream: body.stream === true,
    maxTokens: number(field(config, 'maxOutputTokens')),
    temperature: number(config.temperature),
    topP: number(field(config, 'topP')),
    topK: number(field(config, 'topK')),
    stop: stop?.filter((one) => typeof one === 'string'),
    seed: number(config.seed),
    n: number(field(config, 'candidateCount')),
    presencePenalty: number(field(config, 'presencePenalty')),
    frequencyPenalty: number(field(config, 'frequencyPenalty')),
    logprobs: logprobs === true ? compact({ top: number(config.logprobs) }) : undefined,
    toolChoice: decodeToolChoice(object(field(body, 'toolConfig'))) as JsonObject | undefined,
    reasoning: decodeReasoning(object(field(config, 'thinkingConfig'))) as JsonObject | undefined,
    format: decodeFormat(config) as JsonObject | undefined,
    metadata: object(body.labels),
    serviceTier: decodeTier(field(body, 'serviceTier')),
    store: flag(body.store),
    rest: restOf(body, config),
  });
  return settings as unknown as Settings;
}

/** The tier in OpenAI's words. Google's SDKs write `SERVICE_TIER_FLEX` or `flex`. */
function decodeTier(value: Json | undefined): string | undefined {
  const tier = text(value)
    ?.toLowerCase()
    .replace(/^service_tier_/, '');
  return tier === 'standard' ? 'default' : tier === 'unspecified' ? undefined : tier;
}

function configOf(value: Json | undefined): JsonObject {
  if (value === undefined || value === null) return {};
  const config = object(value);
  if (config !== undefined) return config;
  throw wrongValue('generation_config', 'an object', value);
}

function restOf(body: JsonObject, config: JsonObject): JsonObject | undefined {
  const rest: Record<string, Json | undefined> = {};
  for (const key in body) if (!KNOWN.has(key)) put(rest, key, body[key]);
  for (const key in config) {
    if (!KNOWN_CONFIG.has(key)) put(rest, CONFIG_REST + key, config[key]);
  }
  return Object.keys(rest).length > 0 ? rest : undefined;
}

/** `functionCallingConfig`: AUTO, ANY, NONE, VALIDATED, with the names that are allowed. */
export function decodeToolChoice(config: JsonObject | undefined): ToolChoice | undefined {
  const calling = config && object(field(config, 'functionCallingConfig'));
  if (calling === undefined) return undefined;
  const names = (list(field(calling, 'allowedFunctionNames')) ?? []).filter(
    (name) => typeof name === 'string',
  );
  switch (text(calling.mode)?.toUpperCase()) {
    case 'NONE':
      return { type: 'none' };
    case 'ANY':
      if (names.length === 1) return { type: 'tool', name: names[0]!, kind: 'function' };
      return names.length === 0
        ? { type: 'required' }
        : { type: 'allowed', mode: 'required', names };
    case 'AUTO':
    case 'VALIDATED':
      return names.length === 0 ? { type: 'auto' } : { type: 'allowed', mode: 'auto', names };
    default:
      return undefined;
  }
}

/** `thinkingConfig`: a budget of 0 is off, of -1 the model's own choice; a level is an effort. */
function decodeReasoning(config: JsonObject | undefined): ReasoningSettings | undefined {
  if (config === undefined) return undefined;
  const budget = number(field(config, 'thinkingBudget'));
  const level = text(field(config, 'thinkingLevel'))?.toLowerCase();
  const shown = flag(field(config, 'includeThoughts'));
  const effort = level === 'thinking_level_unspecified' ? undefined : level;
  const wish: ReasoningSettings = {
    ...(budget === 0 ? { enabled: false } : {}),
    ...(budget === -1 ? { enabled: true, adaptive: true } : {}),
    ...(budget !== undefined && budget > 0 ? { enabled: true, budget } : {}),
    ...(effort ? { effort } : {}),
    ...(shown === true ? { summary: 'auto', display: 'summarized' } : {}),
  };
  return Object.keys(wish).length > 0 ? wish : undefined;
}

/** The output format: JSON, by a schema in either of Google's forms or without one. */
function decodeFormat(config: JsonObject): OutputFormat | undefined {
  const json = object(field(config, 'responseJsonSchema')) ?? object(config._responseJsonSchema);
  const own = object(field(config, 'responseSchema'));
  const schema = json ?? (own === undefined ? undefined : jsonSchemaOf(own));
  if (schema !== undefined) return { type: 'schema', schema };
  return field(config, 'responseMimeType') === 'application/json' ? { type: 'json' } : undefined;
}
