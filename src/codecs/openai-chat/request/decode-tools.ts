/** Tool declarations of a Chat request, decoded: functions, freeform tools, hosted tools and the legacy forms. */

import { invalid, missing, wrongType } from '../../../conversation/errors.ts';
import type { FunctionTool, Tool, Wire } from '../../../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { cacheOf } from '../parts.ts';
import { flag, list, object, text, wireOf, without } from '../wire.ts';

/** Top-level keys of a request that declare tools. */
export const TOOL_KEYS = ['tools', 'functions', 'web_search_options'] as const;

const LISTS = ['tools', 'functions'] as const;

/** The `kind` of the hosted tool that `web_search_options` declares. */
export const SEARCH_OPTIONS = 'web_search_options';

/**
 * Every tool that a request body declares: `tools`, the legacy `functions`, and `web_search_options`.
 * @throws GatewayError invalid_request
 */
export function decodeTools(body: JsonObject): readonly Tool[] {
  const tools: Tool[] = [];
  for (const key of LISTS) {
    const value = body[key];
    if (value === undefined || value === null) continue;
    const declared = list(value);
    if (declared === undefined) throw invalid(`Invalid type for '${key}': expected an array.`, key);
    for (let i = 0; i < declared.length; i++) {
      tools.push(decodeTool(declared[i]!, `${key}[${i}]`, key === 'functions'));
    }
  }
  const search = object(body.web_search_options);
  if (search !== undefined) {
    const wire = wireOf(search);
    tools.push({ type: 'hosted', name: 'web_search', kind: SEARCH_OPTIONS, options: search, wire });
  }
  return tools;
}

function decodeTool(value: Json, where: string, legacy: boolean): Tool {
  if (!isObject(value)) throw invalid(`Invalid type for '${where}': expected an object.`, where);
  const type = text(value.type);
  const wire = wireOf(value);
  if (legacy) return functionOf(value, where, wire);
  const declared = object(value.function);
  // Real servers also accept a tool without a type (old clients) and the flat form of Responses.
  if (type === 'function' || (type === undefined && (declared ?? value.name) !== undefined)) {
    const tool = functionOf(declared ?? value, declared ? `${where}.function` : where, wire);
    return { ...tool, ...cacheOf(declared ?? {}), ...cacheOf(value) };
  }
  if (type === 'custom') {
    const custom = object(value.custom);
    if (custom === undefined) throw missing(`${where}.custom`);
    const name = text(custom.name);
    if (!name) throw missing(`${where}.custom.name`);
    const asFunction = value.name !== undefined;
    return {
      type: 'custom',
      name,
      description: text(custom.description),
      format: custom.format,
      ...(asFunction ? { asFunction, wire: wireOf({ type, custom }) } : { wire }),
    };
  }
  if (type === undefined) throw missing(`${where}.type`);
  const inner = object(value[type]) ?? (declared === undefined ? undefined : { ...declared });
  const options = inner ?? without(value, ['type']);
  return { type: 'hosted', name: canonicalName(type, declared), kind: type, options, wire };
}

function functionOf(value: JsonObject, where: string, wire: Wire): FunctionTool {
  const name = text(value.name);
  if (!name) throw missing(`${where}.name`);
  const schema = object(value.parameters);
  if (schema === undefined && value.parameters !== undefined && value.parameters !== null) {
    throw wrongType(`${where}.parameters`, 'an object', value.parameters);
  }
  return {
    type: 'function',
    name,
    description: text(value.description),
    schema,
    strict: flag(value.strict),
    wire,
  };
}

/** The canonical name of GLM's `web_search`, OpenAI's `web_search_preview`, `openrouter:web_search`, Kimi's `$web_search`. */
function canonicalName(type: string, declared: JsonObject | undefined): string {
  const name = type === 'builtin_function' ? (text(declared?.name) ?? type) : type;
  const bare = name.replace(/^(\$|openrouter:)/, '');
  return bare.startsWith('web_search') ? 'web_search' : bare;
}
