/** Decodes the settings of a Chat request: everything except model, messages and tools. */

import { invalid } from '../../../conversation/errors.ts';
import type {
  OutputFormat,
  ReasoningSettings,
  Settings,
  ToolChoice,
} from '../../../conversation/types.ts';
import type { Json, JsonObject } from '../../../lib/json/json.ts';
import { membersBeside } from '../../../lib/json/json-members.ts';
import { compact, flag, list, number, object, text } from '../wire.ts';
import { TOOL_KEYS } from './decode-tools.ts';

/** The wire keys that each setting is read from. Other keys go to `rest`. */
export const SETTING_KEYS = {
  stream: ['stream'],
  streamUsage: ['stream_options'],
  maxTokens: ['max_completion_tokens', 'max_tokens'],
  temperature: ['temperature'],
  topP: ['top_p'],
  topK: ['top_k'],
  stop: ['stop'],
  seed: ['seed'],
  n: ['n'],
  presencePenalty: ['presence_penalty'],
  frequencyPenalty: ['frequency_penalty'],
  logitBias: ['logit_bias'],
  logprobs: ['logprobs', 'top_logprobs'],
  toolChoice: ['tool_choice', 'function_call'],
  parallelTools: ['parallel_tool_calls'],
  reasoning: ['reasoning_effort', 'reasoning', 'thinking', 'enable_thinking', 'thinking_budget'],
  format: ['response_format'],
  verbosity: ['verbosity'],
  metadata: ['metadata'],
  user: ['user'],
  serviceTier: ['service_tier'],
  cacheKey: ['prompt_cache_key'],
  store: ['store'],
} as const satisfies Partial<Record<keyof Settings, readonly string[]>>;

const KNOWN: ReadonlySet<string> = new Set<string>([
  'model',
  'messages',
  ...TOOL_KEYS,
  ...Object.values(SETTING_KEYS).flat(),
]);

/**
 * The settings of a body. A field of the wrong type counts as absent, but still goes to a vendor of this
 * protocol unchanged. The exception is `stream`, which decides the form of the answer.
 * @throws GatewayError invalid_request if `stream` is not a boolean
 */
export function decodeSettings(body: JsonObject): Settings {
  const { stream } = body;
  if (stream !== undefined && stream !== null && typeof stream !== 'boolean') {
    throw invalid("Invalid type for 'stream': expected a boolean.", 'stream');
  }
  const rest = membersBeside(body, KNOWN);
  const out: SettingsDraft = { stream: stream === true };
  set(out, 'streamUsage', flag(object(body.stream_options)?.include_usage));
  set(out, 'maxTokens', number(body.max_completion_tokens) ?? number(body.max_tokens));
  set(out, 'temperature', number(body.temperature));
  set(out, 'topP', number(body.top_p));
  set(out, 'topK', number(body.top_k));
  set(out, 'stop', decodeStop(body.stop));
  set(out, 'seed', number(body.seed));
  set(out, 'n', number(body.n));
  set(out, 'presencePenalty', number(body.presence_penalty));
  set(out, 'frequencyPenalty', number(body.frequency_penalty));
  set(out, 'logitBias', object(body.logit_bias));
  set(
    out,
    'logprobs',
    body.logprobs === true ? compact({ top: number(body.top_logprobs) }) : undefined,
  );
  set(out, 'toolChoice', decodeToolChoice(body.tool_choice ?? body.function_call));
  set(out, 'parallelTools', flag(body.parallel_tool_calls));
  set(out, 'reasoning', decodeReasoningSettings(body));
  set(out, 'format', decodeFormat(body.response_format));
  set(out, 'verbosity', text(body.verbosity));
  set(out, 'metadata', object(body.metadata));
  set(out, 'user', text(body.user));
  set(out, 'serviceTier', text(body.service_tier));
  set(out, 'cacheKey', text(body.prompt_cache_key));
  set(out, 'store', flag(body.store));
  set(out, 'rest', rest);
  return out as unknown as Settings;
}

type SettingsDraft = Record<string, unknown>;

// Only set members are written: most requests set three or four of them.
function set(out: SettingsDraft, key: keyof Settings, value: unknown): void {
  if (value !== undefined) out[key] = value;
}

function decodeStop(stop: Json | undefined): readonly string[] | undefined {
  if (typeof stop === 'string') return [stop];
  return list(stop)?.filter((s): s is string => typeof s === 'string');
}

/** Decodes all forms of `tool_choice`, Mistral's `any`, and the legacy `function_call`. */
export function decodeToolChoice(choice: Json | undefined): ToolChoice | undefined {
  if (typeof choice === 'string') {
    if (choice === 'any') return { type: 'required' };
    return choice === 'auto' || choice === 'none' || choice === 'required'
      ? { type: choice }
      : undefined;
  }
  const value = object(choice);
  if (value === undefined) return undefined;
  if (value.type === 'allowed_tools') return allowedTools(object(value.allowed_tools) ?? value);
  const custom = text(object(value.custom)?.name);
  if (custom !== undefined) return { type: 'tool', name: custom, kind: 'custom' };
  const name = text(object(value.function)?.name) ?? text(value.name);
  if (name !== undefined) return { type: 'tool', name, kind: 'function' };
  const type = text(value.type);
  if (type === 'auto' || type === 'none' || type === 'required') return { type };
  return type === undefined ? undefined : { type: 'tool', name: type, kind: 'hosted' };
}

function allowedTools({ mode, tools }: JsonObject): ToolChoice {
  const names = (list(tools) ?? []).flatMap((tool) => {
    const t = object(tool);
    const name = text(object(t?.function)?.name) ?? text(object(t?.custom)?.name) ?? text(t?.name);
    return name === undefined ? [] : [name];
  });
  return { type: 'allowed', mode: mode === 'required' ? 'required' : 'auto', names };
}

function hasAnyKey(body: JsonObject, keys: readonly string[]): boolean {
  for (const key of keys) if (body[key] !== undefined) return true;
  return false;
}

/** Decodes `reasoning_effort`, OpenRouter's `reasoning`, GLM's `thinking` and Qwen's `enable_thinking`. */
export function decodeReasoningSettings(body: JsonObject): ReasoningSettings | undefined {
  if (!hasAnyKey(body, SETTING_KEYS.reasoning)) return undefined;
  const router = object(body.reasoning);
  const thinking = object(body.thinking);
  const effort = text(body.reasoning_effort) ?? text(router?.effort);
  const budget =
    number(router?.max_tokens) ?? number(thinking?.budget_tokens) ?? number(body.thinking_budget);
  const enabled =
    thinking?.type === 'disabled' || effort === 'none'
      ? false
      : thinking?.type === 'enabled'
        ? true
        : (flag(router?.enabled) ?? flag(body.enable_thinking));
  const adaptive = thinking?.type === 'adaptive' || undefined;
  const found = compact({ enabled, effort, budget, adaptive });
  return Object.keys(found).length > 0 ? (found as ReasoningSettings) : undefined;
}

function decodeFormat(value: Json | undefined): OutputFormat | undefined {
  const format = object(value);
  if (format?.type === 'text') return { type: 'text' };
  if (format?.type === 'json_object') return { type: 'json' };
  if (format?.type !== 'json_schema') return undefined;
  const spec = object(format.json_schema) ?? format;
  const schema = object(spec.schema);
  if (schema === undefined) return { type: 'json' };
  return compact({
    type: 'schema',
    name: text(spec.name),
    description: text(spec.description),
    schema,
    strict: flag(spec.strict),
  }) as unknown as OutputFormat;
}
