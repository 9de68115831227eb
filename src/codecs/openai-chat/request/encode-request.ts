/** The conversation to a Chat Completions request body, for the vendor that will read it. */

import type { Notes } from '../../../conversation/notes.ts';
import type { Target } from '../../../conversation/target.ts';
import type { Conversation, Tool } from '../../../conversation/types.ts';
import type { Json, JsonObject } from '../../../lib/json/json.ts';
import { compact, list, object, PROTOCOL, text } from '../wire.ts';
import { TOOL_KEYS } from './decode-tools.ts';
import { encodeMessages } from './encode-messages.ts';
import { encodeSettings } from './encode-settings.ts';
import { encodeTools } from './encode-tools.ts';
import { fitProfile } from './fit-profile.ts';

/**
 * Encodes a conversation of any protocol. What came in this protocol and has not changed goes out as
 * it came, key by key; a profile's stated facts then apply to all of it. Never throws.
 */
export function encodeRequest(
  conversation: Conversation,
  target: Target,
  notes: Notes,
): JsonObject {
  const declared = toolFields(conversation, target, notes);
  const body = compact({
    model: target.model,
    messages: encodeMessages(conversation, target, notes),
    ...declared,
    ...encodeSettings(conversation, target, notes, namesOf(declared)),
  });
  return fitProfile(body, target.profile, notes);
}

/** The names under which tools are declared; undefined when nothing is. */
function namesOf(declared: JsonObject): ReadonlySet<string> | undefined {
  const tools = list(declared.tools) ?? [];
  const functions = list(declared.functions) ?? [];
  if (tools.length + functions.length === 0 && declared.web_search_options === undefined) {
    return undefined;
  }
  const names = new Set<string>();
  for (const value of [...tools, ...functions]) {
    const tool = object(value);
    const name = text((object(tool?.function) ?? object(tool?.custom) ?? tool)?.name);
    if (name !== undefined) names.add(name);
  }
  return names;
}

/** `tools` and its relatives. */
function toolFields(conversation: Conversation, target: Target, notes: Notes): JsonObject {
  const { origin, tools } = conversation;
  if (origin?.protocol === PROTOCOL && tools === origin.parts.tools) {
    const kept: Record<string, Json | undefined> = {};
    for (const key of TOOL_KEYS) if (key in origin.value) kept[key] = origin.value[key];
    return kept;
  }
  const { tools: encoded, searchOptions } = encodeTools(
    tools,
    target.profile,
    notes,
    allowedOf(conversation),
  );
  return compact({
    tools: encoded.length > 0 ? encoded : undefined,
    web_search_options: searchOptions,
  });
}

/**
 * A choice of allowed tools exists so that the rest may stay declared; vendors other than OpenAI
 * lack it, and there only the allowed tools are declared.
 */
function allowedOf(conversation: Conversation): (tool: Tool) => boolean {
  const choice = conversation.settings.toolChoice;
  if (choice?.type !== 'allowed' || conversation.origin?.protocol === PROTOCOL) return () => true;
  const names = new Set(choice.names);
  return (tool) => names.has(tool.name);
}
