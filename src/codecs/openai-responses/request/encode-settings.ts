/** Encodes settings as top-level fields: only changed ones in a body of the same protocol, all for other clients. */

import { noteLostSettings } from '../../../conversation/lost-fields.ts';
import {
  acceptedUser,
  openaiServiceTier,
  SHARED_FIELDS,
  sharedField,
  shortIdentifier,
} from '../../../conversation/openai-fields.ts';
import type {
  Conversation,
  OutputFormat,
  ReasoningSettings,
  Settings,
} from '../../../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { putAll } from '../../../lib/json/json-members.ts';
import { compact, objects, PROTOCOL } from '../wire.ts';
import { PLAIN } from './decode-settings.ts';
import type { ItemContext } from './encode-parts.ts';
import { encodeToolChoice } from './encode-tools.ts';

type Body = Record<string, Json | undefined>;

/** Writes the settings into a body that already holds model, input and tools. */
export function encodeSettings(body: Body, conversation: Conversation, context: ItemContext): void {
  const { origin, settings } = conversation;
  if (origin?.protocol === PROTOCOL) {
    if (settings !== origin.parts.settings) {
      encodeChanged(body, conversation, origin.parts.settings, context);
    } else if (conversation.tools !== origin.parts.tools) encodeChoice(body, conversation, context);
    return;
  }
  encodeAll(body, conversation, context);
}

/** For a body of this protocol whose settings a feature changed: writes only the changed fields. */
function encodeChanged(
  body: Body,
  conversation: Conversation,
  before: Settings,
  context: ItemContext,
): void {
  const now = conversation.settings;
  for (const key of Object.keys(PLAIN) as (keyof typeof PLAIN)[]) {
    if (now[key] !== before[key]) body[PLAIN[key][0]] = now[key] as Json | undefined;
  }
  if (now.toolChoice !== before.toolChoice) encodeChoice(body, conversation, context);
  if (now.logprobs !== before.logprobs) body.top_logprobs = now.logprobs?.top;
  if (now.reasoning !== before.reasoning) {
    const { effort: _, summary: __, ...others } = isObject(body.reasoning) ? body.reasoning : {};
    const reasoning = { ...others, ...encodeReasoning(now.reasoning, context) };
    body.reasoning = Object.keys(reasoning).length > 0 ? reasoning : undefined;
  }
  if (now.format !== before.format || now.verbosity !== before.verbosity) {
    const { format: _, verbosity: __, ...others } = isObject(body.text) ? body.text : {};
    const text = { ...others, ...encodeText(now, context) };
    body.text = Object.keys(text).length > 0 ? text : undefined;
  }
  if (now.rest !== before.rest) {
    for (const key in before.rest) delete body[key];
    if (now.rest !== undefined) putAll(body, now.rest);
  }
  noteLostSettings(now, context.notes, (name) => TAKEN.has(name));
}

function encodeChoice(body: Body, conversation: Conversation, context: ItemContext): void {
  const { toolChoice } = conversation.settings;
  const { names, notes, target } = context;
  if (toolChoice === undefined) {
    delete body.tool_choice;
    return;
  }
  const declared = objects(body.tools);
  // Tools may be declared in items (`additional_tools`) instead. Any choice but a named tool still applies to them.
  if (declared.length === 0 && conversation.tools.length > 0 && toolChoice.type !== 'tool') return;
  body.tool_choice = encodeToolChoice(
    toolChoice,
    conversation,
    declared,
    names,
    target.profile,
    notes,
  );
}

/** Settings that have a field, or are part of one. */
const TAKEN: ReadonlySet<string> = new Set<keyof Settings>([
  ...(Object.keys(PLAIN) as (keyof typeof PLAIN)[]),
  ...(['streamUsage', 'logprobs', 'toolChoice', 'reasoning', 'format', 'verbosity'] as const),
]);

function encodeAll(body: Body, conversation: Conversation, context: ItemContext): void {
  const { settings } = conversation;
  const { notes, target } = context;
  const chat = conversation.origin?.protocol === 'openai-chat';

  if (settings.stream) body.stream = true;
  body.temperature = settings.temperature;
  body.top_p = settings.topP;
  if (settings.maxTokens !== undefined) {
    const { leastMaxTokens: least = 0 } = target.profile;
    body.max_output_tokens = Math.max(settings.maxTokens, least);
    if (settings.maxTokens < least) {
      notes.add('parameter_mapped', 'max_output_tokens', `${settings.maxTokens}: ${least}`);
    }
  }

  const tools = objects(body.tools);
  if (tools.length > 0) {
    encodeChoice(body, conversation, context);
    if (settings.parallelTools !== undefined) {
      if (target.profile.parallelToolsParam === false) {
        notes.add('parameter_dropped', 'parallel_tool_calls');
      } else body.parallel_tool_calls = settings.parallelTools;
    }
  }

  const text = encodeText(settings, context);
  if (Object.keys(text).length > 0) body.text = text;
  const reasoning = encodeReasoning(settings.reasoning, context);
  if (reasoning !== undefined) body.reasoning = reasoning;

  const include = new Set(settings.include);
  if (reasoning !== undefined && reasoning.effort !== 'none') {
    include.add('reasoning.encrypted_content');
  }
  if (settings.logprobs !== undefined) {
    include.add('message.output_text.logprobs');
    if (settings.logprobs.top !== undefined) body.top_logprobs = settings.logprobs.top;
  }
  if (include.size > 0) body.include = [...include];

  // A client of another protocol does not expect the vendor to store the conversation.
  body.store = settings.store ?? false;
  if (settings.cacheKey !== undefined)
    body.prompt_cache_key = shortIdentifier(settings.cacheKey, 'prompt_cache_key', context.notes);
  encodeIdentity(body, settings, chat, context);

  noteLostSettings(settings, notes, (name) => TAKEN.has(name));
  for (const key in settings.rest) {
    // Clients write null for a field that they do not set.
    if (settings.rest[key] === undefined || settings.rest[key] === null) continue;
    if (chat && SHARED_FIELDS.includes(key)) {
      body[key] = sharedField(key, settings.rest[key], notes);
    } else notes.add('parameter_dropped', key);
  }
}

/** Metadata, user and service tier. Metadata and tiers mean something else in Messages. */
function encodeIdentity(body: Body, settings: Settings, chat: boolean, context: ItemContext): void {
  const { notes } = context;
  if (settings.metadata !== undefined) {
    if (chat) body.metadata = settings.metadata;
    else notes.add('parameter_dropped', 'metadata');
  }
  body.user = acceptedUser(settings.user, notes);
  if (settings.serviceTier !== undefined) {
    const tier = chat ? settings.serviceTier : openaiServiceTier(settings.serviceTier);
    if (tier !== undefined) body.service_tier = tier;
    else notes.add('parameter_dropped', 'service_tier');
  }
}

function encodeText(settings: Settings, context: ItemContext): JsonObject {
  return compact({
    format: settings.format === undefined ? undefined : encodeFormat(settings.format, context),
    verbosity: settings.verbosity,
  });
}

function encodeFormat(format: OutputFormat, context: ItemContext): JsonObject {
  if (format.type !== 'schema') return { type: format.type === 'json' ? 'json_object' : 'text' };
  if (context.target.profile.jsonSchema === false) {
    context.notes.add('parameter_mapped', 'text.format', 'json_schema: json_object');
    return { type: 'json_object' };
  }
  const { name, description, schema, strict } = format;
  const legal = (name ?? 'output').replace(/[^a-zA-Z0-9_-]/g, '_').slice(0, 64) || 'output';
  return compact({ type: 'json_schema', name: legal, description, schema, strict });
}

// Bounds in tokens between low, medium and high effort. Other translators use the same bounds.
const LOW_BUDGET = 4096;
const MEDIUM_BUDGET = 16_000;

function encodeReasoning(
  reasoning: ReasoningSettings | undefined,
  context: ItemContext,
): JsonObject | undefined {
  if (reasoning === undefined) return undefined;
  const { notes } = context;
  const { enabled, effort, budget, summary, display } = reasoning;
  if (enabled === false) {
    if (effort === 'none' || context.target.profile.efforts?.includes('none')) {
      return { effort: 'none' };
    }
    // Many models refuse `none`; all accept a request without an effort.
    notes.add('parameter_dropped', 'thinking', 'cannot be switched off on every model');
    return undefined;
  }
  let wanted = effort;
  if (wanted === undefined && budget !== undefined) {
    wanted = budget < LOW_BUDGET ? 'low' : budget < MEDIUM_BUDGET ? 'medium' : 'high';
    notes.add('parameter_mapped', 'thinking.budget_tokens', `${budget}: ${wanted}`);
  }
  // Messages clients show thinking unless they hide it. An effort of a Chat client does not ask for a summary.
  const showsReasoning =
    display === undefined
      ? budget !== undefined || reasoning.adaptive === true
      : display !== 'omitted';
  const out = compact({
    effort: wanted,
    summary: summary ?? (showsReasoning ? 'auto' : undefined),
  });
  return Object.keys(out).length > 0 || enabled === true ? out : undefined;
}
