/** Encodes a conversation as a Chat Completions request body for one target. */

import type { Notes } from '../../../conversation/notes.ts';
import { type KnownNodes, NOTHING_KNOWN } from '../../../conversation/session/known-nodes.ts';
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
 * Encodes a conversation of any protocol. Unchanged keys of the same protocol go out as they came. The
 * profile's facts then apply to the whole body. Never throws.
 */
export function encodeRequest(
  conversation: Conversation,
  target: Target,
  notes: Notes,
  known: KnownNodes = NOTHING_KNOWN,
): JsonObject {
  const declared = toolFields(conversation, target, notes, known);
  const body = compact({
    model: target.model,
    messages: encodeMessages(conversation, target, notes, known),
    ...declared,
    ...encodeSettings(conversation, target, notes, namesOf(declared)),
  });
  return fitProfile(body, target.profile, notes);
}

/** The names of the declared tools; undefined if there are none. */
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

function toolFields(
  conversation: Conversation,
  target: Target,
  notes: Notes,
  known: KnownNodes,
): JsonObject {
  const { origin, tools } = conversation;
  if (origin?.protocol === PROTOCOL && tools === origin.parts.tools) {
    const fields: Record<string, Json | undefined> = {};
    for (const key of TOOL_KEYS) if (key in origin.value) fields[key] = origin.value[key];
    return fields;
  }
  const allowed = allowedOf(conversation);
  const { profile } = target;
  const kept = allowed === undefined ? known : NOTHING_KNOWN;
  const { tools: encoded, searchOptions } = kept.encoded(
    tools,
    [PROTOCOL, profile],
    notes,
    (from) => encodeTools(tools, profile, from, allowed ?? everyTool),
  );
  return compact({
    tools: encoded.length > 0 ? encoded : undefined,
    web_search_options: searchOptions,
  });
}

const everyTool = () => true;

/**
 * Which tools to declare; undefined: all. Only OpenAI's Chat has a choice of allowed tools; for other clients'
 * choices only the allowed tools are declared.
 */
function allowedOf(conversation: Conversation): ((tool: Tool) => boolean) | undefined {
  const choice = conversation.settings.toolChoice;
  if (choice?.type !== 'allowed' || conversation.origin?.protocol === PROTOCOL) return undefined;
  const names = new Set(choice.names);
  return (tool) => names.has(tool.name);
}
