/** Encodes a conversation as a Gemini request body for one target. */

import type { Notes } from '../../../conversation/notes.ts';
import { type KnownNodes, NOTHING_KNOWN } from '../../../conversation/session/known-nodes.ts';
import type { Target } from '../../../conversation/target.ts';
import type { Conversation } from '../../../conversation/types.ts';
import type { Json, JsonObject } from '../../../lib/json/json.ts';
import { compact, field, list, object, objects, PROTOCOL, spellingIn } from '../wire.ts';
import { encodeContents } from './encode-contents.ts';
import { encodeSettings } from './encode-settings.ts';
import { declaredNames, encodeTools } from './encode-tools.ts';

/** Google's own tools stand beside functions. */
function needsInvocations(tools: Json | undefined): boolean {
  const all = objects(list(tools));
  return (
    all.some((tool) => field(tool, 'functionDeclarations') !== undefined) &&
    all.some((tool) => field(tool, 'functionDeclarations') === undefined)
  );
}

/** "Please enable tool_config.include_server_side_tool_invocations to use Built-in tools with Function calling." */
const withInvocations = (settings: JsonObject): JsonObject => ({
  ...settings,
  toolConfig: { ...object(settings.toolConfig), includeServerSideToolInvocations: true },
});

/**
 * Encodes a conversation of any protocol. Unchanged parts of the same protocol go out as they came. `model`
 * and `stream` come first: on the wire they are in the path. Never throws.
 */
export function encodeRequest(
  conversation: Conversation,
  target: Target,
  notes: Notes,
  known: KnownNodes = NOTHING_KNOWN,
): JsonObject {
  const tools = encodeTools(conversation, target, notes, known);
  const { stream, ...settings } = encodeSettings(conversation, target, notes, declaredNames(tools));
  const { contents, systemInstruction } = encodeContents(conversation, target, notes, known);
  const { origin } = conversation;
  const own = origin?.protocol === PROTOCOL ? origin.value : {};
  return compact({
    model: target.model,
    stream,
    contents,
    [spellingIn(own, 'systemInstruction')]: systemInstruction,
    tools,
    ...(needsInvocations(tools) && origin?.protocol !== PROTOCOL
      ? withInvocations(settings)
      : settings),
  });
}
