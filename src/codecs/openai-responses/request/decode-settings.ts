/** Decodes the settings of a Responses request. Types are checked; unknown fields go to `rest`. */

import { wrongType } from '../../../conversation/parameter-errors.ts';
import type { OutputFormat, ReasoningSettings, Settings } from '../../../conversation/types.ts';
import type { Json, JsonObject } from '../../../lib/json/json.ts';
import { isObject } from '../../../lib/json/json.ts';
import { put } from '../../../lib/json/json-members.ts';
import { flag, object, text } from '../wire.ts';
import { decodeToolChoice } from './decode-tools.ts';

/** Top-level keys that are decoded; all others go to `rest`. */
const KNOWN = new Set([
  'model',
  'instructions',
  'input',
  'tools',
  'stream',
  'max_output_tokens',
  'temperature',
  'top_p',
  'top_logprobs',
  'tool_choice',
  'parallel_tool_calls',
  'reasoning',
  'text',
  'metadata',
  'user',
  'service_tier',
  'prompt_cache_key',
  'store',
  'previous_response_id',
  'include',
]);

/** @throws GatewayError invalid_request */
export function decodeSettings(body: JsonObject): Settings {
  const format = typed(body, 'text', 'object');
  const include = typed(body, 'include', 'array') as readonly Json[] | undefined;
  const rest = restOf(body);
  const settings: Settings = {
    stream: (typed(body, 'stream', 'boolean') as boolean | undefined) === true,
    maxTokens: typed(body, 'max_output_tokens', 'number') as number | undefined,
    temperature: typed(body, 'temperature', 'number') as number | undefined,
    topP: typed(body, 'top_p', 'number') as number | undefined,
    logprobs: decodeLogprobs(typed(body, 'top_logprobs', 'number') as number | undefined, include),
    toolChoice: decodeToolChoice(body.tool_choice),
    parallelTools: typed(body, 'parallel_tool_calls', 'boolean') as boolean | undefined,
    reasoning: decodeReasoning(typed(body, 'reasoning', 'object') as JsonObject | undefined),
    format: decodeFormat(format as JsonObject | undefined),
    verbosity: isObject(format) ? text(format.verbosity) : undefined,
    metadata: typed(body, 'metadata', 'object') as JsonObject | undefined,
    user: typed(body, 'user', 'string') as string | undefined,
    serviceTier: typed(body, 'service_tier', 'string') as string | undefined,
    cacheKey: typed(body, 'prompt_cache_key', 'string') as string | undefined,
    store: typed(body, 'store', 'boolean') as boolean | undefined,
    previousResponseId: typed(body, 'previous_response_id', 'string') as string | undefined,
    include: include?.filter((item) => typeof item === 'string'),
    rest,
  };
  return defined(settings);
}

const EXPECTED = {
  string: 'a string',
  number: 'a number',
  boolean: 'a boolean',
  object: 'an object',
  array: 'an array of strings',
} as const;

/** The member if it has that type; undefined if it is absent or null. */
function typed(body: JsonObject, key: string, type: keyof typeof EXPECTED): Json | undefined {
  const value = body[key];
  if (value === undefined || value === null) return undefined;
  const fits =
    type === 'object'
      ? isObject(value)
      : type === 'array'
        ? Array.isArray(value)
        : typeof value === type;
  if (fits) return value;
  throw wrongType(key, EXPECTED[type], value, 'invalid_type');
}

function defined(settings: Settings): Settings {
  const out: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(settings)) if (value !== undefined) out[key] = value;
  return out as unknown as Settings;
}

/** Unknown fields that are not null. The origin keeps a null, and for other protocols nothing is lost. */
function restOf(body: JsonObject): JsonObject | undefined {
  const rest: Record<string, Json | undefined> = {};
  let found = false;
  for (const key in body) {
    if (KNOWN.has(key) || body[key] === null) continue;
    put(rest, key, body[key]);
    found = true;
  }
  return found ? rest : undefined;
}

function decodeLogprobs(
  top: number | undefined,
  include: readonly Json[] | undefined,
): Settings['logprobs'] {
  if (top !== undefined && top > 0) return { top };
  return include?.includes('message.output_text.logprobs') ? {} : undefined;
}

function decodeReasoning(value: JsonObject | undefined): ReasoningSettings | undefined {
  if (value === undefined) return undefined;
  const effort = text(value.effort);
  return {
    effort,
    enabled: effort === undefined ? undefined : effort !== 'none',
    summary: text(value.summary) ?? text(value.generate_summary),
  };
}

function decodeFormat(value: JsonObject | undefined): OutputFormat | undefined {
  const format = value === undefined ? undefined : object(value.format);
  switch (format?.type) {
    case 'text':
      return { type: 'text' };
    case 'json_object':
      return { type: 'json' };
    case 'json_schema': {
      const source = object(format.json_schema) ?? format;
      return {
        type: 'schema',
        name: text(source.name),
        description: text(source.description),
        schema: object(source.schema) ?? {},
        strict: flag(source.strict),
      };
    }
    default:
      return undefined;
  }
}
