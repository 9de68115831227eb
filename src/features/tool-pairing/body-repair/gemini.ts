/** Repairs Gemini bodies that a strict decoder would refuse. */

import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { memberOf } from '../../../lib/json/json-members.ts';
import { asList, asName, asString, repairHistoryList, repairList, withMembers } from './values.ts';

const ROLES: Readonly<Record<string, string>> = {
  user: 'user',
  model: 'model',
  function: 'function',
  assistant: 'model',
  tool: 'function',
};

export function repairGeminiBody(body: JsonObject): JsonObject {
  if (body.contents === undefined || body.contents === null) return body;
  return withMembers(body, { contents: repairHistoryList(body.contents, said, repairContent) });
}

const said = (text: string): JsonObject => ({ role: 'user', parts: [{ text }] });

function repairContent(content: JsonObject): JsonObject {
  const { role, parts } = content;
  const known =
    role === undefined || role === null ? role : (memberOf(ROLES, asString(role)) ?? 'user');
  const list = parts === undefined || parts === null ? [] : asList(parts);
  return withMembers(content, { role: known, parts: repairList(list, repairPart) });
}

function repairPart(part: Json): Json | undefined {
  if (!isObject(part)) {
    const text = asString(part);
    return text === '' ? undefined : { text };
  }
  let out = part;
  if (out.text !== undefined && out.text !== null && typeof out.text !== 'string') {
    out = withMembers(out, { text: asString(out.text) });
  }
  for (const key of ['functionCall', 'function_call', 'functionResponse', 'function_response']) {
    const value = out[key];
    if (value === undefined) continue;
    if (!isObject(value)) return undefined;
    out = withMembers(out, { [key]: repairFunction(value) });
  }
  return out;
}

/** Arguments and responses are objects; a client may send their JSON text, or another value. */
function repairFunction(value: JsonObject): JsonObject {
  const { args, response } = value;
  return withMembers(value, {
    name: asName(value.name),
    ...(args === undefined || args === null || isObject(args) ? {} : { args: { input: args } }),
    ...(response === undefined || response === null || isObject(response)
      ? {}
      : { response: { output: response } }),
  });
}
