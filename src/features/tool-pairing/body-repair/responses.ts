/** Repairs Responses bodies that a strict decoder would refuse. */

import { isObject, type JsonObject } from '../../../lib/json/json.ts';
import {
  asName,
  asString,
  repairContent,
  repairHistoryList,
  repairTextPart,
  withMembers,
} from './values.ts';

const ROLES = new Set(['system', 'developer', 'user', 'assistant']);

export function repairResponsesBody(body: JsonObject): JsonObject {
  const { input } = body;
  if (input === undefined || input === null || typeof input === 'string') return body;
  return withMembers(body, { input: repairHistoryList(input, said, repairItem) });
}

const said = (content: string): JsonObject => ({ type: 'message', role: 'user', content });

function repairItem(item: JsonObject): JsonObject | undefined {
  const type = typeof item.type === 'string' ? item.type : guessType(item);
  switch (type) {
    case undefined:
      return undefined;
    case 'message':
      return repairMessage(item);
    case 'function_call':
    case 'custom_tool_call':
      return withMembers(item, { type, ...callId(item), name: asName(item.name) });
    case 'function_call_output':
    case 'custom_tool_call_output': {
      const output =
        item.output === undefined || item.output === null
          ? ''
          : Array.isArray(item.output)
            ? repairContent(item.output, 'input_text', repairPart)
            : item.output;
      return withMembers(item, { type, ...callId(item), output });
    }
    case 'reasoning':
      return Array.isArray(item.summary) ? item : { ...item, summary: [] };
    default:
      return withMembers(item, { type });
  }
}

/** The item's `call_id`, or its own id, as the decoder does. */
function callId(item: JsonObject): JsonObject {
  if (typeof item.call_id === 'string') return {};
  if (item.call_id !== undefined && item.call_id !== null)
    return { call_id: asString(item.call_id) };
  return { call_id: typeof item.id === 'string' ? item.id : '' };
}

function repairMessage(item: JsonObject): JsonObject {
  const role = asString(item.role);
  const known = ROLES.has(role) ? role : role === 'model' ? 'assistant' : 'user';
  const textType = known === 'assistant' ? 'output_text' : 'input_text';
  const part = (value: JsonObject) => repairPart(value, textType);
  return withMembers(item, { role: known, content: repairContent(item.content, textType, part) });
}

function repairPart(part: JsonObject, textType = 'input_text'): JsonObject | undefined {
  const type =
    typeof part.type === 'string' ? part.type : part.text === undefined ? undefined : textType;
  if (type === undefined) return undefined;
  const typed = withMembers(part, { type });
  switch (type) {
    case 'input_text':
    case 'output_text':
    case 'text':
    case 'summary_text':
    case 'reasoning_text':
      return repairTextPart(typed);
    case 'input_image':
    case 'image_url': {
      const url = isObject(typed.image_url) ? typed.image_url.url : typed.image_url;
      return typeof url === 'string' || typeof typed.file_id === 'string' ? typed : undefined;
    }
    default:
      return typed;
  }
}

/** The type of an item that names none, guessed from its members. */
function guessType(item: JsonObject): string | undefined {
  if (item.role !== undefined) return 'message';
  if (item.output !== undefined) return 'function_call_output';
  if (item.name !== undefined && (item.arguments !== undefined || item.call_id !== undefined)) {
    return 'function_call';
  }
  return item.content === undefined ? undefined : 'message';
}
