/** Repairs Messages bodies that a strict decoder would refuse. */

import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { memberOf } from '../../../lib/json/json-members.ts';
import {
  asName,
  asString,
  repairContent,
  repairHistoryList,
  repairList,
  repairTextPart,
  withMembers,
} from './values.ts';

const ROLES: Readonly<Record<string, string>> = {
  user: 'user',
  assistant: 'assistant',
  system: 'system',
  model: 'assistant',
  developer: 'system',
};

export function repairMessagesBody(body: JsonObject): JsonObject {
  if (body.messages === undefined || body.messages === null) return body;
  return withMembers(body, {
    messages: repairHistoryList(body.messages, said, repairMessage),
    ...(body.system === undefined ? {} : { system: repairSystem(body.system) }),
    ...(Array.isArray(body.tools)
      ? { tools: repairList(body.tools, (tool) => (isObject(tool) ? tool : undefined)) }
      : {}),
  });
}

function repairSystem(system: Json): Json {
  return system === null ? system : repairContent(system, 'text', repairBlock);
}

const said = (content: string): JsonObject => ({ role: 'user', content });

function repairMessage(message: JsonObject): JsonObject {
  // Unknown roles (`tool`, `function`, a missing one) become the user's.
  const role = memberOf(ROLES, asString(message.role)) ?? 'user';
  return withMembers(message, {
    role,
    content: repairContent(message.content, 'text', repairBlock),
  });
}

function repairBlock(block: JsonObject): JsonObject | undefined {
  const type = typeof block.type === 'string' ? block.type : guessType(block);
  if (type === undefined) return undefined;
  const typed = withMembers(block, { type });
  switch (type) {
    case 'text':
      return repairTextPart(typed);
    case 'thinking':
      return withMembers(typed, { thinking: asString(typed.thinking) });
    case 'tool_use':
    case 'server_tool_use':
    case 'mcp_tool_use':
      return withMembers(typed, {
        id: asString(typed.id),
        name: asName(typed.name),
        input: typed.input ?? {},
      });
    case 'tool_result':
      return withMembers(typed, {
        tool_use_id: asString(typed.tool_use_id),
        ...(typed.content === undefined || typed.content === null
          ? { content: undefined }
          : { content: repairContent(typed.content, 'text', repairBlock) }),
        ...(typed.is_error === undefined || typeof typed.is_error === 'boolean'
          ? {}
          : { is_error: typed.is_error === 1 || typed.is_error === 'true' ? true : undefined }),
      });
    default:
      return type.endsWith('_tool_result')
        ? withMembers(typed, { tool_use_id: asString(typed.tool_use_id) })
        : typed;
  }
}

/** The type of a block that names none, guessed from its members; undefined if it has none. */
function guessType(block: JsonObject): string | undefined {
  if (block.text !== undefined) return 'text';
  if (block.tool_use_id !== undefined) return 'tool_result';
  if (block.name !== undefined && block.input !== undefined) return 'tool_use';
  if (block.thinking !== undefined) return 'thinking';
  return block.source === undefined ? undefined : 'image';
}
