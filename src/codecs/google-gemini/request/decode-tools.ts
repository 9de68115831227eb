/** Tool declarations of a Gemini request, decoded: functions, and the tools that Google runs. */

import { invalid } from '../../../conversation/errors.ts';
import type { FunctionTool, HostedTool, Tool } from '../../../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { memberOf } from '../../../lib/json/json-members.ts';
import { field, list, object, snakeCase, text, wireOf, wrongValue } from '../wire.ts';
import { jsonSchemaOf } from './json-schema.ts';

/** The canonical names of Google's own tools; others keep the name on the wire. */
export const HOSTED_NAMES: Readonly<Record<string, string>> = {
  googleSearch: 'web_search',
  google_search: 'web_search',
  googleSearchRetrieval: 'web_search',
  google_search_retrieval: 'web_search',
  urlContext: 'web_fetch',
  url_context: 'web_fetch',
  codeExecution: 'code_execution',
  code_execution: 'code_execution',
};

const FUNCTIONS: ReadonlySet<string> = new Set(['functionDeclarations', 'function_declarations']);

/**
 * Every tool of the list, in order. One object of the list may declare many functions, and a tool of Google's
 * beside them.
 * @throws GatewayError invalid_request
 */
export function decodeTools(body: JsonObject): readonly Tool[] {
  const value = body.tools;
  if (value === undefined || value === null) return [];
  const sent = list(value) ?? (isObject(value) ? [value] : undefined);
  if (sent === undefined) throw wrongValue('tools', 'a list', value);
  const tools: Tool[] = [];
  sent.forEach((tool, i) => {
    const where = `tools[${i}]`;
    if (!isObject(tool)) throw wrongValue(where, 'an object', tool);
    for (const key in tool) {
      const declared = tool[key];
      if (declared === undefined || declared === null) continue;
      if (FUNCTIONS.has(key)) {
        const functions = list(declared) ?? [declared];
        functions.forEach((one, n) => {
          tools.push(decodeFunction(one, `${where}.function_declarations[${n}]`));
        });
      } else tools.push(decodeHosted(key, declared));
    }
  });
  return tools;
}

function decodeFunction(value: Json, where: string): FunctionTool {
  if (!isObject(value)) throw wrongValue(where, 'an object', value);
  const name = text(value.name);
  if (!name) throw invalid(`${where}.name: Name cannot be empty.`, `${where}.name`);
  const json = schemaIn(value, 'parametersJsonSchema', where);
  const own = schemaIn(value, 'parameters', where);
  const schema = json ?? (own === undefined ? undefined : jsonSchemaOf(own));
  return {
    type: 'function',
    name,
    description: text(value.description),
    schema,
    wire: wireOf(value),
  };
}

function schemaIn(value: JsonObject, name: string, where: string): JsonObject | undefined {
  const given = field(value, name);
  const schema = object(given);
  if (schema !== undefined || given === undefined || given === null) return schema;
  const at = `${where}.${snakeCase(name)}`;
  throw wrongValue(at, 'an object', given);
}

function decodeHosted(kind: string, declared: Json): HostedTool {
  return {
    type: 'hosted',
    name: memberOf(HOSTED_NAMES, kind) ?? kind,
    kind,
    options: object(declared) ?? {},
    wire: wireOf({ [kind]: declared }),
  };
}
