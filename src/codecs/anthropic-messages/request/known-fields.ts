/** The fields that the API knows in messages and blocks, and the removal of all other fields. */

import { mapUnchanged } from '../../../conversation/edit.ts';
import type { Notes } from '../../../conversation/notes.ts';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { memberOf } from '../../../lib/json/json-members.ts';
import { wordSet } from '../../../lib/text/words.ts';

// @anthropic-ai/sdk 1.12: BetaMessageParam and BetaContentBlockParam, without `type` and `cache_control`.
const CALL = ['id', 'input', 'name', 'caller'];
const ANSWER = ['content', 'tool_use_id', 'caller'];
const FIELDS: Readonly<Record<string, readonly string[]>> = {
  text: ['text', 'citations'],
  image: ['source', 'transformations'],
  document: ['source', 'citations', 'context', 'title'],
  search_result: ['content', 'source', 'title', 'citations'],
  tool_reference: ['tool_name'],
  thinking: ['thinking', 'signature'],
  redacted_thinking: ['data'],
  tool_use: [...CALL, 'toolset_name'],
  tool_result: ['tool_use_id', 'content', 'is_error', 'toolset_name'],
  server_tool_use: CALL,
  web_search_tool_result: ANSWER,
  web_fetch_tool_result: ANSWER,
  advisor_tool_result: ANSWER,
  code_execution_tool_result: ANSWER,
  bash_code_execution_tool_result: ANSWER,
  text_editor_code_execution_tool_result: ANSWER,
  tool_search_tool_result: ANSWER,
  mcp_tool_use: [...CALL, 'server_name'],
  mcp_tool_result: ['tool_use_id', 'content', 'is_error'],
  container_upload: ['file_id'],
  compaction: ['content', 'encrypted_content', 'signature', 'tool_changes'],
  tool_addition: ['tool'],
  tool_removal: ['tool'],
  mcp_tool_listing: ['mcp_server_name', 'tools'],
  fallback: ['from', 'to', 'trigger'],
};

/** Fields that streams, other protocols and clients leave in histories. None of them is a field of this API. */
const LEFTOVERS = wordSet(`
  annotations audio created created_at delta finish_reason function_call id index logprobs model
  name object partial_json reasoning reasoning_content reasoning_details refusal status
  stop_reason stop_sequence thinking_signature timestamp tool_call_id tool_calls usage uuid`);

/** Does the API know this field of a block of this type? All fields of unlisted types count as known. */
export function isKnownField(type: string, key: string): boolean {
  if (key === 'type') return true;
  if (key === 'cache_control') return type !== 'thinking' && type !== 'redacted_thinking';
  return memberOf(FIELDS, type)?.includes(key) ?? true;
}

/** Does the API know this field of a message? Only instructions in mid-conversation may set an effort. */
export const isMessageField = (role: Json | undefined, key: string): boolean =>
  key === 'role' || key === 'content' || (key === 'output_config' && role === 'system');

/**
 * The body without message fields that the API refuses ("Extra inputs are not permitted"), with a note for
 * each kind of field; the same object if there are none.
 * @param which `leftovers`: only fields that cannot be new fields of the API; `all`: every unknown field
 */
export function withoutUnknownFields(
  body: JsonObject,
  which: 'leftovers' | 'all',
  notes: Notes,
): JsonObject {
  const counts = new Map<string, number>();
  const isDropped = (known: boolean, where: string, key: string): boolean => {
    if (known || (which === 'leftovers' && !LEFTOVERS.has(key))) return false;
    const path = `${where}/${key}`;
    counts.set(path, (counts.get(path) ?? 0) + 1);
    return true;
  };
  const block = (value: Json, where: string): Json => {
    if (!isObject(value) || typeof value.type !== 'string') return value;
    const { type } = value;
    const kept = without(value, (key) => isDropped(isKnownField(type, key), where, key));
    if (type !== 'tool_result' || !Array.isArray(kept.content)) return kept;
    const content = mapUnchanged(kept.content, (inner) => block(inner, `${where}/content`));
    return content === kept.content ? kept : { ...kept, content };
  };
  const message = (value: Json): Json => {
    if (!isObject(value)) return value;
    const kept = without(value, (key) =>
      isDropped(isMessageField(value.role, key), '/messages', key),
    );
    if (!Array.isArray(kept.content)) return kept;
    const content = mapUnchanged(kept.content, (inner) => block(inner, '/messages/content'));
    return content === kept.content ? kept : { ...kept, content };
  };
  if (!Array.isArray(body.messages)) return body;
  const messages = mapUnchanged(body.messages, message);
  const system = Array.isArray(body.system)
    ? mapUnchanged(body.system, (inner) => block(inner, '/system'))
    : body.system;
  for (const [path, count] of counts) {
    notes.add('unknown_field_dropped', path, count === 1 ? 'once' : `${count} times`);
  }
  return messages === body.messages && system === body.system
    ? body
    : { ...body, messages, ...(system === undefined ? {} : { system }) };
}

function without(value: JsonObject, isDropped: (key: string) => boolean): JsonObject {
  let out: Record<string, Json | undefined> | undefined;
  for (const key of Object.keys(value)) {
    if (value[key] === undefined || !isDropped(key)) continue;
    out ??= { ...value };
    delete out[key];
  }
  return out ?? value;
}
