/** Encodes settings as top-level parameters of a Messages request. */

import { noteLostSettings } from '../../../conversation/lost-fields.ts';
import type { Notes } from '../../../conversation/notes.ts';
import { acceptedUser } from '../../../conversation/openai-fields.ts';
import type { Conversation, Settings } from '../../../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { memberOf, put, putAll } from '../../../lib/json/json-members.ts';
import { rebuilt } from '../wire.ts';
import type { BlockWriter } from './encode-blocks.ts';
import { encodeReasoning } from './encode-reasoning.ts';
import { outputSchema } from './encode-schema.ts';
import { encodeToolChoice } from './encode-tool-choice.ts';

const DEFAULT_MAX_TOKENS = 8192;
/** Characters of `metadata.user_id` (https://platform.claude.com/docs/en/api/messages). */
const MAX_USER_ID = 256;

/**
 * All parameters of a conversation of another protocol. `tools` is among the keys only if the tool choice
 * narrows the list.
 * @param onlyHistory the tools were declared only because the history calls them
 */
export function encodeSettings(
  conversation: Conversation,
  tools: readonly Json[],
  onlyHistory: boolean,
  writer: BlockWriter,
): JsonObject {
  const { settings } = conversation;
  const { notes, target } = writer;
  noteUnsupported(settings, notes);
  const requested = settings.maxTokens;
  const { defaultMaxTokens = DEFAULT_MAX_TOKENS, maxOutput = defaultMaxTokens } = target.profile;
  const maxTokens = requested ?? Math.min(defaultMaxTokens, maxOutput);
  if (requested === undefined) notes.add('parameter_defaulted', 'max_tokens', String(maxTokens));
  const choice = onlyHistory
    ? noToolUse(target.profile.toolChoices)
    : encodeToolChoice(conversation, tools, writer);
  const forced = ['any', 'tool'].includes(String(choice.tool_choice?.type));
  const reasoning = encodeReasoning(
    settings.reasoning,
    maxTokens,
    requested === undefined,
    forced,
    writer,
  );
  const thinks = reasoning.thinking !== undefined && reasoning.thinking.type !== 'disabled';
  const format = encodeFormat(settings, writer);
  const config = { ...reasoning.config, ...(format === undefined ? {} : { format }) };
  const user = acceptedUser(settings.user ?? safetyIdentifier(settings), notes, MAX_USER_ID);
  return {
    max_tokens: reasoning.maxTokens,
    ...(settings.stream ? { stream: true } : {}),
    ...sampling(settings, thinks, writer),
    ...stopSequences(settings, notes),
    ...choice,
    ...(reasoning.thinking === undefined ? {} : { thinking: reasoning.thinking }),
    ...(Object.keys(config).length > 0 ? { output_config: config } : {}),
    ...(user === undefined ? {} : { metadata: { user_id: user } }),
    ...serviceTier(settings, notes),
    ...(isObject(settings.rest?.cache_control) && { cache_control: settings.rest.cache_control }),
  };
}

/** OpenAI's successor of `user`. If both are set, `user` is sent. */
function safetyIdentifier({ rest }: Settings): string | undefined {
  const value = rest?.safety_identifier;
  return typeof value === 'string' ? value : undefined;
}

/** For tools that are declared only for the history: forbids calls, if the vendor accepts `none`. */
export const noToolUse = (choices: readonly string[] | undefined): { tool_choice?: JsonObject } =>
  choices === undefined || choices.includes('none') ? { tool_choice: { type: 'none' } } : {};

function sampling(settings: Settings, thinks: boolean, { target, notes }: BlockWriter): JsonObject {
  let { temperature, topP, topK } = settings;
  if (temperature !== undefined && thinks && temperature !== 1) {
    notes.add('parameter_dropped', 'temperature', 'thinking takes no temperature');
    temperature = undefined;
  }
  if (temperature !== undefined && (temperature > 1 || temperature < 0)) {
    temperature = Math.min(1, Math.max(0, temperature));
    notes.add('parameter_mapped', 'temperature', `${settings.temperature} to ${temperature}`);
  }
  if (topP !== undefined && thinks && topP < 0.95) {
    notes.add('parameter_dropped', 'top_p', 'thinking takes 0.95 and more');
    topP = undefined;
  }
  if (topK !== undefined && thinks) {
    notes.add('parameter_dropped', 'top_k', 'thinking takes no top_k');
    topK = undefined;
  }
  const both = temperature !== undefined && topP !== undefined;
  if (both && target.profile.temperatureWithTopP === false) {
    // A temperature of 1 is the default, so the client means top_p.
    const idle = temperature === 1 ? 'temperature' : 'top_p';
    notes.add('parameter_dropped', idle, 'the model takes temperature or top_p, not both');
    if (idle === 'top_p') topP = undefined;
    else temperature = undefined;
  }
  return {
    ...(temperature === undefined ? {} : { temperature }),
    ...(topP === undefined ? {} : { top_p: topP }),
    ...(topK === undefined ? {} : { top_k: topK }),
  };
}

function stopSequences(settings: Settings, notes: Notes): JsonObject {
  const all = settings.stop ?? [];
  const stop = all.filter((sequence) => sequence.trim() !== '');
  if (stop.length < all.length) {
    notes.add('parameter_dropped', 'stop', 'sequences of white space are refused');
  }
  return stop.length > 0 ? { stop_sequences: stop } : {};
}

const TIERS: Readonly<Record<string, string>> = {
  auto: 'auto',
  default: 'standard_only',
  standard_only: 'standard_only',
};

function serviceTier(settings: Settings, notes: Notes): JsonObject {
  const requested = settings.serviceTier;
  if (requested === undefined) return {};
  const tier = memberOf(TIERS, requested);
  if (tier !== requested) {
    notes.add(
      tier === undefined ? 'parameter_dropped' : 'parameter_mapped',
      'service_tier',
      requested,
    );
  }
  return tier === undefined ? {} : { service_tier: tier };
}

function encodeFormat(settings: Settings, { target, notes }: BlockWriter): JsonObject | undefined {
  const format = settings.format;
  if (format === undefined || format.type === 'text') return undefined;
  if (format.type !== 'schema') {
    notes.add('parameter_dropped', 'response_format', 'there is no JSON mode without a schema');
    return undefined;
  }
  if (target.profile.jsonSchema === false) {
    notes.add('parameter_dropped', 'response_format', 'the vendor takes no schema');
    return undefined;
  }
  return {
    type: 'json_schema',
    schema: outputSchema(format.schema, 'output_config.format', notes),
  };
}

const TAKEN: ReadonlySet<string> = new Set<keyof Settings>([
  ...(['stream', 'streamUsage', 'maxTokens', 'temperature', 'topP', 'topK', 'stop'] as const),
  ...(['toolChoice', 'parallelTools', 'reasoning', 'format', 'user', 'serviceTier'] as const),
]);

/** Notes what Messages does not have, by its name in its own protocol. */
function noteUnsupported(settings: Settings, notes: Notes): void {
  // Messages always sends signatures with thinking, so that this include is satisfied.
  const include = settings.include?.filter((item) => item !== 'reasoning.encrypted_content') ?? [];
  noteLostSettings({ ...settings, include }, notes, (name) => TAKEN.has(name));
  const { rest = {} } = settings;
  for (const name in rest) {
    const value = rest[name];
    // Clients write null for a field that they do not set.
    if (value === null) continue;
    // Anthropic's own at the top of the body, as OpenRouter takes it from Chat clients.
    if (name === 'cache_control' && isObject(value)) continue;
    if (name === 'safety_identifier' && settings.user === undefined && typeof value === 'string') {
      notes.add('parameter_mapped', name, 'metadata.user_id');
    } else notes.add('parameter_dropped', name);
  }
}

/**
 * The changes of the body for settings that differ from the decoded ones. A key with undefined is removed.
 * Unchanged settings give no keys.
 */
export function changedSettings(
  conversation: Conversation,
  before: Settings,
  body: JsonObject,
  writer: BlockWriter,
): JsonObject {
  const now = conversation.settings;
  const changed = (...keys: readonly (keyof Settings)[]) =>
    keys.some((key) => now[key] !== before[key]);
  const out: Record<string, Json | undefined> = {};
  if (changed('stream')) out.stream = now.stream;
  if (changed('maxTokens')) out.max_tokens = now.maxTokens ?? DEFAULT_MAX_TOKENS;
  if (changed('temperature')) out.temperature = now.temperature;
  if (changed('topP')) out.top_p = now.topP;
  if (changed('topK')) out.top_k = now.topK;
  if (changed('stop')) out.stop_sequences = now.stop;
  if (changed('user', 'metadata')) {
    const fields = { ...now.metadata, user_id: now.user };
    const metadata = rebuilt(now.metadata === before.metadata ? body.metadata : {}, fields);
    out.metadata = Object.keys(metadata).length > 0 ? metadata : undefined;
  }
  if (changed('serviceTier')) out.service_tier = now.serviceTier;
  if (changed('toolChoice', 'parallelTools')) {
    const tools = Array.isArray(body.tools) ? body.tools : [];
    Object.assign(out, { tool_choice: undefined }, encodeToolChoice(conversation, tools, writer));
  }
  if (changed('rest')) {
    for (const key of Object.keys(before.rest ?? {})) put(out, key, undefined);
    if (now.rest !== undefined) putAll(out, now.rest);
  }
  if (changed('reasoning', 'format')) Object.assign(out, changedOutput(now, before, body, writer));
  return out;
}

/** Keeps the client's own choice for thinking that is bound to another prefix. */
function withBinding(
  thinking: JsonObject | undefined,
  before: Json | undefined,
): JsonObject | undefined {
  const binding = isObject(before) ? before.block_binding : undefined;
  return thinking === undefined || binding === undefined
    ? thinking
    : { ...thinking, block_binding: binding };
}

function changedOutput(
  now: Settings,
  before: Settings,
  body: JsonObject,
  writer: BlockWriter,
): JsonObject {
  const out: Record<string, Json | undefined> = {};
  const config: Record<string, Json | undefined> = {};
  if (now.reasoning !== before.reasoning) {
    const max = now.maxTokens ?? DEFAULT_MAX_TOKENS;
    const forced = now.toolChoice?.type === 'required' || now.toolChoice?.type === 'tool';
    const reasoning = encodeReasoning(now.reasoning, max, false, forced, writer);
    out.thinking = withBinding(reasoning.thinking, body.thinking);
    if (now.reasoning?.effort !== before.reasoning?.effort || now.reasoning?.enabled === false) {
      config.effort = reasoning.config.effort;
    }
  }
  if (now.format !== before.format) {
    config.format = encodeFormat(now, writer);
    out.output_format = undefined;
  }
  const merged = rebuilt(body.output_config, config);
  if (isObject(body.output_config) || Object.keys(merged).length > 0) {
    out.output_config = Object.keys(merged).length > 0 ? merged : undefined;
  }
  return out;
}
