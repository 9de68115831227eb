/** Fits a Chat body to the facts of a vendor's profile. Facts that the profile leaves out change nothing. */

import type { Notes } from '../../../conversation/notes.ts';
import type { Profile } from '../../../conversation/profile-facts.ts';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { ownForm } from '../parts.ts';
import { list, object, text, without } from '../wire.ts';
import { decodeReasoningSettings, decodeToolChoice, SETTING_KEYS } from './decode-settings.ts';
import { encodeReasoning } from './encode-settings.ts';

type Body = Record<string, Json | undefined>;

/**
 * The body for this vendor. Facts that the profile leaves out change nothing, so a body of this protocol goes
 * to an unknown vendor as it came.
 */
export function fitProfile(body: JsonObject, profile: Profile, notes: Notes): JsonObject {
  const out: Body = { ...body };
  fitCap(out, profile, notes);
  fitReasoning(out, profile, notes);
  fitTools(out, profile, notes);
  if (profile.streamUsage === false && out.stream_options !== undefined) {
    delete out.stream_options;
    notes.add('parameter_dropped', 'stream_options');
  }
  if (profile.jsonSchema === false && object(out.response_format)?.type === 'json_schema') {
    out.response_format = { type: 'json_object' };
    notes.add('parameter_mapped', 'response_format', 'json_schema as json_object');
  }
  const messages = list(out.messages);
  if (messages !== undefined) out.messages = fitMessages(messages, profile, notes);
  for (const [from, to] of Object.entries(profile.renameParams ?? {})) {
    if (out[from] === undefined) continue;
    out[to] ??= out[from];
    delete out[from];
    notes.add('parameter_mapped', from, to);
  }
  for (const key of profile.dropParams ?? []) {
    if (out[key] === undefined) continue;
    delete out[key];
    notes.add('parameter_dropped', key);
  }
  return out;
}

function fitCap(out: Body, profile: Profile, notes: Notes): void {
  const wanted = profile.maxTokensParam;
  if (wanted === undefined) return;
  const other = wanted === 'max_tokens' ? 'max_completion_tokens' : 'max_tokens';
  if (out[other] === undefined) return;
  out[wanted] ??= out[other];
  delete out[other];
  notes.add('parameter_mapped', other, wanted);
}

/** Keys that show, if present, that the client already uses the vendor's parameter. */
const PARAMETER_KEYS = {
  reasoning_effort: ['reasoning_effort'],
  thinking: ['thinking'],
  enable_thinking: ['enable_thinking', 'thinking_budget'],
  reasoning: ['reasoning'],
  none: [],
} as const;

function fitReasoning(out: Body, profile: Profile, notes: Notes): void {
  const param = profile.reasoningParam;
  if (param === undefined) return;
  if (PARAMETER_KEYS[param].some((key) => out[key] !== undefined)) return;
  const given = SETTING_KEYS.reasoning.filter((key) => out[key] !== undefined);
  const wish = given.length === 0 ? undefined : decodeReasoningSettings(out);
  if (wish === undefined) return;
  for (const key of given) delete out[key];
  Object.assign(out, encodeReasoning(wish, profile, notes));
  if (param !== 'none') notes.add('parameter_mapped', given[0]!, param);
}

function fitTools(out: Body, profile: Profile, notes: Notes): void {
  if (profile.parallelToolsParam === false && out.parallel_tool_calls !== undefined) {
    delete out.parallel_tool_calls;
    notes.add('parameter_dropped', 'parallel_tool_calls');
  }
  if (profile.strictTools === false) {
    const tools = list(out.tools);
    const loose = tools?.map(withoutStrict);
    if (loose?.some((tool, i) => tool !== tools![i])) {
      out.tools = loose;
      notes.add('parameter_dropped', 'strict');
    }
  }
  const choice = decodeToolChoice(out.tool_choice);
  const taken = profile.toolChoices;
  if (choice === undefined || taken === undefined) return;
  const kind = choice.type === 'allowed' ? choice.mode : choice.type;
  if (taken.includes(kind) && choice.type !== 'allowed') return;
  if (kind === 'none') {
    delete out.tool_choice;
    notes.add('parameter_dropped', 'tool_choice', 'none');
    return;
  }
  // The nearest choice to a forced tool is `required`, if the vendor accepts it.
  out.tool_choice = kind !== 'auto' && taken.includes('required') ? 'required' : 'auto';
  notes.add('parameter_mapped', 'tool_choice', `${kind} as ${out.tool_choice}`);
}

function withoutStrict(tool: Json): Json {
  const t = object(tool);
  const declared = object(t?.function);
  if (t === undefined || declared?.strict === undefined) return tool;
  return { ...t, function: without(declared, ['strict']) };
}

function fitMessages(messages: readonly Json[], profile: Profile, notes: Notes): readonly Json[] {
  const { contentParts, foreignParts, developerRole, images, reasoningField, messageFields } =
    profile;
  const { emptyReplies } = profile;
  const isTaken =
    contentParts !== false &&
    foreignParts !== false &&
    emptyReplies !== false &&
    developerRole !== false &&
    images !== false &&
    reasoningField === undefined &&
    messageFields === undefined;
  if (isTaken) return messages;
  return messages.map((value) => {
    if (!isObject(value)) return value;
    let message = messageFields === undefined ? value : withFields(value, messageFields, notes);
    if (developerRole === false && message.role === 'developer') {
      message = { ...message, role: 'system' };
      notes.add('parameter_mapped', 'role', 'developer as system');
    }
    if (emptyReplies === false && isEmptyList(message.content)) {
      message = { ...message, content: '' };
      notes.addOnce('message_shape_repaired', '/messages', 'content without a part');
    }
    if (foreignParts === false) message = withOwnParts(message, notes);
    if (images === false && list(message.content) !== undefined) {
      message = withoutImages(message, notes);
    }
    if (contentParts === false) message = withPlainContent(message, notes);
    return reasoningField === undefined ? message : fitReasoningField(message, reasoningField);
  });
}

/** A client's own notes on its messages (which model said it, when) are refused by strict vendors. */
function withFields(message: JsonObject, taken: readonly string[], notes: Notes): JsonObject {
  const others = Object.keys(message).filter(
    // Another rule spells reasoning as the vendor has it.
    (key) => !taken.includes(key) && !key.startsWith('reasoning'),
  );
  for (const key of others) notes.add('parameter_dropped', `messages/${key}`);
  return others.length === 0 ? message : without(message, others);
}

const isEmptyList = (content: Json | undefined): boolean =>
  Array.isArray(content) && content.length === 0;

/** Parts in the form of other APIs as Chat has them. */
function withOwnParts(message: JsonObject, notes: Notes): JsonObject {
  const parts = list(message.content);
  const own = parts?.map((part) => (isObject(part) ? ownForm(part) : part));
  if (parts === undefined || own === undefined || own.every((part, i) => part === parts[i])) {
    return message;
  }
  notes.addOnce('content_bridged', '/messages', "parts in Chat's form");
  return { ...message, content: own };
}

/** Replaces images by text. Content with text only becomes a string, which such vendors require. */
function withoutImages(message: JsonObject, notes: Notes): JsonObject {
  const parts = list(message.content) ?? [];
  if (!parts.some((part) => object(part)?.type === 'image_url')) return message;
  notes.add('content_bridged', '/messages', 'image as a mention');
  const shown = parts.map((part) =>
    object(part)?.type === 'image_url' ? { type: 'text', text: '[image not shown]' } : part,
  );
  const texts = shown.map((part) => text(object(part)?.text));
  const content = texts.every((t) => t !== undefined) ? texts.join('\n') : shown;
  return { ...message, content };
}

/** Text parts as one string; other parts stay. */
function withPlainContent(message: JsonObject, notes: Notes): JsonObject {
  const parts = list(message.content);
  const texts = parts?.map((part) => (typeof part === 'string' ? part : text(object(part)?.text)));
  if (texts === undefined || texts.includes(undefined)) return message;
  notes.add('content_bridged', '/messages', 'text parts as one string');
  return { ...message, content: texts.join('\n') };
}

function fitReasoningField(
  message: JsonObject,
  field: NonNullable<Profile['reasoningField']>,
): JsonObject {
  if (message.role !== 'assistant') return message;
  if (field === 'none') {
    const has = message.reasoning_content !== undefined || message.reasoning !== undefined;
    return has ? without(message, ['reasoning_content', 'reasoning']) : message;
  }
  const other = field === 'reasoning' ? 'reasoning_content' : 'reasoning';
  if (text(message[other]) === undefined || message[field] !== undefined) return message;
  return { ...without(message, [other]), [field]: message[other] };
}
