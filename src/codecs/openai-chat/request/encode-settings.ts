/** Encodes settings as top-level keys of a Chat request. Keys of unchanged settings go out as they came. */

import { noteLostSettings } from '../../../conversation/lost-fields.ts';
import { effortOfBudget } from '../../../conversation/models/efforts.ts';
import type { Notes } from '../../../conversation/notes.ts';
import { acceptedUser, SHARED_FIELDS, sharedField } from '../../../conversation/openai-fields.ts';
import { markedPrefill } from '../../../conversation/prefill.ts';
import type { Profile } from '../../../conversation/profile-facts.ts';
import type { Target } from '../../../conversation/target.ts';
import { toolNames } from '../../../conversation/tools/tool-names.ts';
import type {
  Conversation,
  OutputFormat,
  ReasoningSettings,
  Settings,
  ToolChoice,
} from '../../../conversation/types.ts';
import type { Json, JsonObject } from '../../../lib/json/json.ts';
import { memberOf, putAll } from '../../../lib/json/json-members.ts';
import { compact, NAME_LIMIT, object, PROTOCOL } from '../wire.ts';
import { SETTING_KEYS } from './decode-settings.ts';

type Body = Record<string, Json | undefined>;

/**
 * The keys of the body other than model, messages and tools.
 * @param declared the names of the declared tools; undefined if there are none
 */
export function encodeSettings(
  conversation: Conversation,
  target: Target,
  notes: Notes,
  declared: ReadonlySet<string> | undefined,
): JsonObject {
  const { settings, origin } = conversation;
  const body: Body = {};
  if (origin?.protocol === PROTOCOL) {
    const before = origin.parts.settings;
    for (const name of Object.keys(SETTING_KEYS) as (keyof typeof SETTING_KEYS)[]) {
      if (settings[name] === before[name]) copy(origin.value, SETTING_KEYS[name], body);
      else write(name, conversation, target, notes, declared, body);
    }
    if (settings.rest !== undefined) putAll(body, settings.rest);
    return compact(body);
  }
  for (const name of Object.keys(SETTING_KEYS) as (keyof typeof SETTING_KEYS)[]) {
    write(name, conversation, target, notes, declared, body);
  }
  if (settings.stream && target.profile.streamUsage !== false) {
    body.stream_options = { include_usage: true };
  }
  if (target.profile.prefill === 'continue' && markedPrefill(conversation, target) !== undefined) {
    body.add_generation_prompt = false;
    body.continue_final_message = true;
  }
  encodeRest(settings, origin?.protocol === 'openai-responses', body, notes);
  return compact(body);
}

function copy(from: JsonObject, keys: readonly string[], body: Body): void {
  for (const key of keys) if (key in from) body[key] = from[key];
}

/** Fields that some clients mean otherwise, and that vendors know of OpenAI's only: sent, or noted as dropped. */
const NOT_FOR_ALL: ReadonlySet<string> = new Set([
  'top_k',
  'metadata',
  'service_tier',
  'store',
  'n',
]);

/** Copies fields that Responses shares, and adds a note for every field that Chat does not have. */
function encodeRest(settings: Settings, openai: boolean, body: Body, notes: Notes): void {
  noteLostSettings(
    settings,
    notes,
    (name) =>
      memberOf(SETTING_KEYS, name)?.some(
        (key) => !NOT_FOR_ALL.has(key) || body[key] !== undefined,
      ) ?? false,
  );
  for (const key in settings.rest) {
    // Clients write null for a field that they do not set.
    if (settings.rest[key] === undefined || settings.rest[key] === null) continue;
    if (openai && SHARED_FIELDS.includes(key)) {
      body[key] = sharedField(key, settings.rest[key], notes);
    } else notes.add('parameter_dropped', key);
  }
}

/** Encodes one setting: the value as it is, where nothing else is said here. */
function write(
  name: keyof typeof SETTING_KEYS,
  conversation: Conversation,
  target: Target,
  notes: Notes,
  declared: ReadonlySet<string> | undefined,
  body: Body,
): void {
  const { settings, origin } = conversation;
  const { profile } = target;
  const openai = origin?.protocol !== 'anthropic-messages';
  const own = origin?.protocol === PROTOCOL;
  switch (name) {
    case 'stream':
      if (settings.stream || own) body.stream = settings.stream;
      return;
    case 'streamUsage':
      // For other clients, encodeSettings itself asks for usage.
      if (own) body.stream_options = streamOptions(conversation);
      return;
    case 'maxTokens':
      body[profile.maxTokensParam ?? 'max_tokens'] = settings.maxTokens;
      return;
    case 'topK':
      if (own) body.top_k = settings.topK;
      return;
    case 'stop':
      if (settings.stop !== undefined && settings.stop.length > 0) body.stop = settings.stop;
      return;
    case 'logprobs':
      if (settings.logprobs !== undefined) {
        body.logprobs = true;
        body.top_logprobs = settings.logprobs.top;
      }
      return;
    case 'toolChoice':
      if (settings.toolChoice !== undefined) {
        body.tool_choice = encodeToolChoice(settings.toolChoice, conversation, notes, declared);
      }
      return;
    case 'parallelTools':
      if (declared !== undefined && profile.parallelToolsParam !== false) {
        body.parallel_tool_calls = settings.parallelTools;
      }
      return;
    case 'reasoning':
      if (settings.reasoning !== undefined) {
        Object.assign(body, encodeReasoning(settings.reasoning, profile, notes));
        if (losesEffort(settings.reasoning, profile)) {
          notes.add('parameter_mapped', 'reasoning', `effort ${settings.reasoning.effort} as on`);
        }
      }
      return;
    case 'format':
      if (settings.format !== undefined) body.response_format = encodeFormat(settings.format);
      return;
    case 'metadata':
      if (openai) body.metadata = settings.metadata;
      return;
    case 'user':
      body.user = acceptedUser(settings.user, notes);
      return;
    case 'serviceTier':
      if (openai) body.service_tier = settings.serviceTier;
      return;
    case 'store':
      if (own) body.store = settings.store;
      return;
    case 'n':
      // Clients of other protocols would pay for several answers and get one.
      if (own) body.n = settings.n;
      return;
    default:
      body[SETTING_KEYS[name][0]] = settings[name] as Json | undefined;
  }
}

function streamOptions({ settings, origin }: Conversation): JsonObject | undefined {
  if (!settings.stream) return undefined;
  const before = object(origin?.value.stream_options);
  if (settings.streamUsage === undefined) return before;
  return { ...before, include_usage: settings.streamUsage };
}

const allowedTools = (choice: ToolChoice & { type: 'allowed' }) => ({
  mode: choice.mode,
  tools: choice.names.map((name) => ({ type: 'function', function: { name } })),
});

/** A tool choice as Chat's `tool_choice`; undefined if there are no tools. */
function encodeToolChoice(
  choice: ToolChoice,
  conversation: Conversation,
  notes: Notes,
  declared: ReadonlySet<string> | undefined,
): Json | undefined {
  if (declared === undefined) {
    if (choice.type !== 'auto' && choice.type !== 'none') {
      notes.add('parameter_dropped', 'tool_choice', 'no tools');
    }
    return undefined;
  }
  const own = conversation.origin?.protocol === PROTOCOL;
  if (choice.type === 'allowed') {
    if (own) return { type: 'allowed_tools', allowed_tools: allowedTools(choice) };
    // encode-request.ts declares only the allowed tools.
    notes.add('parameter_mapped', 'tool_choice', 'only the allowed tools are declared');
    return choice.mode;
  }
  if (choice.type !== 'tool') return choice.type;
  const tool = conversation.tools.find(
    (t) => t.name === choice.name && (t.type === 'hosted' || t.namespace === choice.namespace),
  );
  const name =
    own && choice.namespace === undefined
      ? choice.name
      : toolNames(conversation.tools, NAME_LIMIT).flat(choice.name, choice.namespace);
  if (tool === undefined || !declared.has(name)) {
    notes.add('parameter_mapped', 'tool_choice', `${choice.name} cannot be forced`);
    return 'auto';
  }
  return own && tool.type === 'custom'
    ? { type: 'custom', custom: { name } }
    : { type: 'function', function: { name } };
}

function encodeFormat(format: OutputFormat): JsonObject {
  if (format.type !== 'schema') return { type: format.type === 'text' ? 'text' : 'json_object' };
  const { name, description, schema, strict } = format;
  return {
    type: 'json_schema',
    json_schema: compact({ name: name ?? 'response', description, schema, strict }),
  };
}

/** Is an effort lost, because the vendor's parameter can only turn reasoning on and off? */
function losesEffort(
  { enabled, effort, budget }: ReasoningSettings,
  { reasoningParam, efforts }: Profile,
): boolean {
  if (effort === undefined || effort === 'none' || enabled === false) return false;
  if (reasoningParam === 'thinking') return efforts === undefined;
  return reasoningParam === 'enable_thinking' && budget === undefined;
}

/**
 * The reasoning settings in the parameter that the profile names. `reasoning_effort: "none"` is sent only if
 * the client sent it or the profile names that parameter, because unknown vendors may refuse the value.
 */
export function encodeReasoning(
  wish: ReasoningSettings,
  profile: Profile,
  notes: Notes,
): JsonObject {
  const off = wish.enabled === false || wish.effort === 'none';
  const effort =
    wish.effort ?? (wish.budget === undefined ? undefined : effortOfBudget(wish.budget));
  const requested = off || effort !== undefined || wish.enabled === true || wish.adaptive === true;
  if (!requested) return {};
  if (wish.budget !== undefined && wish.effort === undefined && !off) {
    notes.add('parameter_mapped', 'reasoning', `budget of ${wish.budget} tokens`);
  }
  switch (profile.reasoningParam ?? 'reasoning_effort') {
    case 'none':
      notes.add('parameter_dropped', 'reasoning');
      return {};
    case 'thinking':
      // A profile with efforts means that the vendor accepts an effort beside the switch (DeepSeek V4, GLM 5).
      return compact({
        thinking: { type: off ? 'disabled' : 'enabled' },
        reasoning_effort: profile.efforts !== undefined && !off ? wish.effort : undefined,
      });
    case 'enable_thinking':
      return compact({ enable_thinking: !off, thinking_budget: off ? undefined : wish.budget });
    case 'reasoning':
      if (off) return { reasoning: { enabled: false } };
      if (wish.effort !== undefined) return { reasoning: { effort: wish.effort } };
      return { reasoning: wish.budget ? { max_tokens: wish.budget } : { enabled: true } };
    case 'reasoning_effort':
      if (!off) return compact({ reasoning_effort: effort });
      if (wish.effort === 'none' || profile.reasoningParam !== undefined) {
        return { reasoning_effort: 'none' };
      }
      notes.add('parameter_dropped', 'reasoning', 'off cannot be said');
      return {};
  }
}
