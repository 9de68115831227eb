/** Tool declarations of a Messages request, written for one target. */

import { noteLostToolFields } from '../../../conversation/lost-fields.ts';
import type { Notes } from '../../../conversation/notes.ts';
import { flatToolFormat } from '../../../conversation/openai-fields.ts';
import type { Target } from '../../../conversation/target.ts';
import {
  declaredBefore,
  FREEFORM_SCHEMA,
  noteRenamed,
  type ToolNames,
} from '../../../conversation/tools/tool-names.ts';
import type { CustomTool, FunctionTool, HostedTool, Tool } from '../../../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { encodeCache, ownResidue, ownWire, rebuilt, text } from '../wire.ts';
import { inputSchema } from './encode-schema.ts';

/** The declarations for a target. Hosted tools that it does not run are left out with a note. */
export function encodeTools(
  tools: readonly Tool[],
  names: ToolNames,
  target: Target,
  notes: Notes,
): readonly Json[] {
  const out: Json[] = [];
  const seen = new Set<string>();
  for (let i = 0; i < tools.length; i++) {
    const tool = tools[i]!;
    const encoded = ownWire(tool) ?? encodeTool(tool, `/tools/${i}`, names, target, notes);
    if (encoded === undefined) continue;
    const name = isObject(encoded) ? text(encoded.name) : undefined;
    if (name !== undefined && declaredBefore(name, seen, `/tools/${i}`, notes)) continue;
    out.push(encoded);
  }
  return out;
}

function encodeTool(
  tool: Tool,
  where: string,
  names: ToolNames,
  target: Target,
  notes: Notes,
): JsonObject | undefined {
  switch (tool.type) {
    case 'function':
      return encodeFunction(tool, where, names, target, notes);
    case 'custom':
      return encodeCustom(tool, where, names, notes);
    case 'hosted':
      return encodeHosted(tool, where, names, target, notes);
  }
}

function encodeFunction(
  tool: FunctionTool,
  where: string,
  names: ToolNames,
  target: Target,
  notes: Notes,
): JsonObject {
  const residue = ownResidue(tool);
  if (residue === undefined && tool.strict === true) {
    // OpenAI's strict mode accepts schema keywords that Anthropic's refuses.
    notes.add('parameter_dropped', `${where}/strict`, 'strict is not carried over');
  }
  if (residue === undefined) noteLostToolFields(tool, notes, where);
  const name = names.flat(tool.name, tool.namespace);
  noteRenamed(tool, name, where, notes);
  return rebuilt(residue, {
    name,
    description: tool.description,
    input_schema: inputSchema(tool.schema, `${where}/input_schema`, notes),
    strict: residue === undefined || target.profile.strictTools === false ? undefined : tool.strict,
    cache_control: encodeCache(tool.cache),
    // A deferred tool needs Anthropic's tool search. Without it the tool is loaded at once.
    defer_loading: residue !== undefined && tool.deferred ? true : undefined,
  });
}

function encodeCustom(tool: CustomTool, where: string, names: ToolNames, notes: Notes): JsonObject {
  notes.add('content_bridged', where, `freeform tool ${tool.name} as a function`);
  const name = names.flat(tool.name, tool.namespace);
  noteRenamed(tool, name, where, notes);
  const format = flatToolFormat(tool.format);
  const grammar = isObject(format) ? text(format.definition) : undefined;
  const parts = [tool.description, grammar && `The input follows this grammar:\n${grammar}`];
  const description = parts.filter((part) => part !== undefined && part !== '').join('\n\n');
  return {
    name,
    ...(description === '' ? {} : { description }),
    input_schema: FREEFORM_SCHEMA,
  };
}

function encodeHosted(
  tool: HostedTool,
  where: string,
  names: ToolNames,
  target: Target,
  notes: Notes,
): JsonObject | undefined {
  const { parameters, description } = tool.options;
  if (tool.options.execution === 'client' && isObject(parameters)) {
    // A tool search of Responses that the client runs works like a function.
    notes.add('content_bridged', where, `${tool.name} as a function`);
    return {
      name: names.flat(tool.name),
      ...(typeof description === 'string' ? { description } : {}),
      input_schema: inputSchema(parameters, where, notes),
    };
  }
  if (tool.name === 'web_search' && target.profile.hostedTools?.includes('web_search')) {
    return webSearch(tool.options);
  }
  notes.add('hosted_tool_dropped', where, tool.kind);
  return undefined;
}

/** Another protocol's web search, with the options that Messages knows. */
function webSearch(options: JsonObject): JsonObject {
  const filters = isObject(options.filters) ? options.filters : options;
  const given = isObject(options.user_location) ? options.user_location : undefined;
  const nested = given !== undefined && isObject(given.approximate) ? given.approximate : given;
  const location = Object.fromEntries(
    ['city', 'region', 'country', 'timezone']
      .filter((key) => typeof nested?.[key] === 'string')
      .map((key) => [key, nested?.[key]]),
  );
  return {
    type: 'web_search_20250305',
    name: 'web_search',
    ...(typeof options.max_uses === 'number' ? { max_uses: options.max_uses } : {}),
    ...domains('allowed_domains', filters.allowed_domains),
    ...domains('blocked_domains', filters.blocked_domains),
    ...(Object.keys(location).length > 0
      ? { user_location: { type: 'approximate', ...location } }
      : {}),
  };
}

function domains(key: string, value: Json | undefined): JsonObject {
  return Array.isArray(value) && value.length > 0 ? { [key]: value } : {};
}

/**
 * Declarations of tools that the history calls and the client does not declare. Anthropic refuses such a
 * history, and some clients leave the tools out (Codex when it compacts).
 */
export function declareCalledTools(
  called: ReadonlySet<string>,
  notes: Notes,
): readonly JsonObject[] {
  return [...called].map((name) => {
    notes.add('tools_declared', '/tools', name);
    return { name, input_schema: { type: 'object', properties: {} } };
  });
}
