/** Repairs Chat bodies that a strict decoder would refuse. */

import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { memberOf } from '../../../lib/json/json-members.ts';
import {
  asList,
  asName,
  asString,
  repairContent,
  repairHistoryList,
  repairList,
  repairTextPart,
  withMembers,
} from './values.ts';

const ROLES: Readonly<Record<string, string>> = {
  system: 'system',
  developer: 'developer',
  user: 'user',
  assistant: 'assistant',
  tool: 'tool',
  function: 'function',
  model: 'assistant',
};

export function repairChatBody(body: JsonObject): JsonObject {
  if (body.messages === undefined || body.messages === null) return body;
  return withMembers(body, { messages: repairHistoryList(body.messages, said, repairMessage) });
}

const said = (content: string): JsonObject => ({ role: 'user', content });

function repairMessage(message: JsonObject): JsonObject {
  const role =
    memberOf(ROLES, asString(message.role)) ??
    (message.tool_call_id === undefined ? 'user' : 'tool');
  const { content } = message;
  // Missing content is legal beside calls; elsewhere the decoder refuses it.
  const silent = content === undefined || content === null;
  const repaired = withMembers(message, {
    role,
    ...(silent && role === 'assistant'
      ? {}
      : { content: repairContent(content, 'text', repairPart) }),
  });
  if (role === 'tool')
    return withMembers(repaired, { tool_call_id: asString(repaired.tool_call_id) });
  if (role === 'function') return withMembers(repaired, { name: asName(repaired.name) });
  return role === 'assistant' ? repairCalls(repaired) : repaired;
}

function repairPart(part: JsonObject): JsonObject | undefined {
  const type =
    typeof part.type === 'string' ? part.type : part.text === undefined ? undefined : 'text';
  if (type === undefined) return undefined;
  const typed = withMembers(part, { type });
  switch (type) {
    case 'text':
    case 'input_text':
    case 'output_text':
      return repairTextPart(typed);
    case 'image_url': {
      const url = isObject(typed.image_url) ? typed.image_url.url : typed.image_url;
      return typeof url === 'string' ? typed : undefined;
    }
    default:
      return typed;
  }
}

function repairCalls(message: JsonObject): JsonObject {
  const { tool_calls: calls } = message;
  if (calls === undefined || calls === null) return message;
  if (!Array.isArray(calls) && !isObject(calls)) {
    return withMembers(message, { tool_calls: undefined });
  }
  return withMembers(message, { tool_calls: repairList(asList(calls), repairCall) });
}

function repairCall(call: Json): Json | undefined {
  if (!isObject(call)) return undefined;
  const id = asString(call.id);
  if (call.type === 'custom' && isObject(call.custom)) {
    const { custom } = call;
    const input = typeof custom.input === 'string' ? custom.input : asString(custom.input);
    return withMembers(call, {
      id,
      custom: withMembers(custom, { name: asName(custom.name), input }),
    });
  }
  // Some clients put the name beside the id, as on Responses.
  const inner = isObject(call.function)
    ? call.function
    : { name: call.name ?? null, arguments: call.arguments ?? '' };
  const args = inner.arguments;
  const legal = args === undefined || args === null || typeof args === 'string' || isObject(args);
  return withMembers(call, {
    id,
    function: withMembers(inner, {
      name: asName(inner.name),
      ...(legal ? {} : { arguments: JSON.stringify(args) }),
    }),
  });
}
