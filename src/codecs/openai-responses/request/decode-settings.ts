/** Decodes the settings of a Responses request. Types are checked; unknown fields go to `rest`. */

import { wrongType } from '../../../conversation/errors.ts';
import type { OutputFormat, ReasoningSettings, Settings } from '../../../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { put } from '../../../lib/json/json-members.ts';
import { compact } from '../../../lib/json/typed-reads.ts';
import { flag, list, number, object, text } from '../wire.ts';
import { decodeToolChoice } from './decode-tools.ts';

/** Settings that each have exactly one top-level field: its name and its type. */
export const PLAIN = {
  stream: ['stream', 'boolean'],
  temperature: ['temperature', 'number'],
  topP: ['top_p', 'number'],
  maxTokens: ['max_output_tokens', 'number'],
  parallelTools: ['parallel_tool_calls', 'boolean'],
  metadata: ['metadata', 'object'],
  user: ['user', 'string'],
  serviceTier: ['service_tier', 'string'],
  cacheKey: ['prompt_cache_key', 'string'],
  store: ['store', 'boolean'],
  previousResponseId: ['previous_response_id', 'string'],
  include: ['include', 'array'],
} as const satisfies Partial<Record<keyof Settings, readonly [string, keyof typeof EXPECTED]>>;

/** Top-level keys that are decoded; all others go to `rest`. */
const KNOWN: ReadonlySet<string> = new Set([
  ...['model', 'instructions', 'input', 'tools', 'tool_choice'],
  ...['reasoning', 'text', 'top_logprobs'],
  ...Object.values(PLAIN).map(([key]) => key),
]);

/** @throws GatewayError invalid_request */
export function decodeSettings(body: JsonObject): Settings {
  const plain: Record<string, Json | undefined> = {};
  for (const [name, [key, type]] of Object.entries(PLAIN)) plain[name] = typed(body, key, type);
  const format = object(typed(body, 'text', 'object'));
  const include = list(plain.include);
  return compact<Settings>({
    ...plain,
    stream: plain.stream === true,
    logprobs: decodeLogprobs(number(typed(body, 'top_logprobs', 'number')), include),
    toolChoice: decodeToolChoice(body.tool_choice),
    reasoning: decodeReasoning(object(typed(body, 'reasoning', 'object'))),
    format: decodeFormat(format),
    verbosity: text(format?.verbosity),
    include: include?.filter((item) => typeof item === 'string'),
    rest: restOf(body),
  });
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
  const format = object(value?.format);
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
