/** Tool declarations: functions, freeform tools, what vendors run themselves, and the legacy forms. */

import { invalid } from '../../../conversation/errors.ts';
import type { Notes } from '../../../conversation/notes.ts';
import { flatFormat } from '../../../conversation/openai-words.ts';
import type { Profile } from '../../../conversation/target.ts';
import { plainRoot } from '../../../conversation/tools/root-schema.ts';
import { noteToolFields } from '../../../conversation/tools/tool-fields.ts';
import { FREEFORM_SCHEMA, toolNames } from '../../../conversation/tools/tool-names.ts';
import type {
  CustomTool,
  FunctionTool,
  HostedTool,
  Tool,
  Wire,
} from '../../../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import {
  chatWire,
  compact,
  flag,
  isOwn,
  leftover,
  list,
  NAME_LIMIT,
  object,
  text,
  untouched,
  without,
} from '../wire.ts';

/** Top-level keys of a request that declare tools. */
export const TOOL_KEYS = ['tools', 'functions', 'web_search_options'] as const;

const LISTS = ['tools', 'functions'] as const;

/** The kind of the hosted tool that `web_search_options` amounts to. */
const SEARCH_OPTIONS = 'web_search_options';

/** Claude Code's stand-in for tools that it holds back; it has no meaning to another vendor. */
const PLACEHOLDER = 'DeferredToolPlaceholder';

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
    const wire = chatWire(search);
    tools.push({ type: 'hosted', name: 'web_search', kind: SEARCH_OPTIONS, options: search, wire });
  }
  return tools;
}

function decodeTool(value: Json, where: string, legacy: boolean): Tool {
  if (!isObject(value)) throw invalid(`Invalid type for '${where}': expected an object.`, where);
  const type = text(value.type);
  const wire = chatWire(value);
  if (legacy) return functionOf(value, where, wire);
  const declared = object(value.function);
  // Without a type (old clients) and flat (Responses' form): both taken by real servers.
  if (type === 'function' || (type === undefined && (declared ?? value.name) !== undefined)) {
    return functionOf(declared ?? value, declared ? `${where}.function` : where, wire);
  }
  if (type === 'custom') {
    const custom = object(value.custom) ?? value;
    const name = text(custom.name);
    if (!name) throw missing(`${where}.custom.name`);
    return {
      type: 'custom',
      name,
      ...(compact({ description: text(custom.description), format: custom.format }) as object),
      wire,
    };
  }
  if (type === undefined) throw missing(`${where}.type`);
  const inner = object(value[type]) ?? (declared === undefined ? undefined : { ...declared });
  const options = inner ?? without(value, ['type']);
  return { type: 'hosted', name: canonical(type, declared), kind: type, options, wire };
}

const missing = (where: string) => invalid(`Missing required parameter: '${where}'.`, where);

function functionOf(value: JsonObject, where: string, wire: Wire): FunctionTool {
  const name = text(value.name);
  if (!name) throw missing(`${where}.name`);
  const tool: { -readonly [K in keyof FunctionTool]: FunctionTool[K] } = {
    type: 'function',
    name,
    wire,
  };
  const description = text(value.description);
  const schema = object(value.parameters);
  const strict = flag(value.strict);
  if (description !== undefined) tool.description = description;
  if (schema !== undefined) tool.schema = schema;
  if (strict !== undefined) tool.strict = strict;
  return tool;
}

/** GLM `web_search`, OpenAI `web_search_preview`, `openrouter:web_search`, Kimi's `$web_search`. */
function canonical(type: string, declared: JsonObject | undefined): string {
  const name = type === 'builtin_function' ? (text(declared?.name) ?? type) : type;
  const bare = name.replace(/^(\$|openrouter:)/, '');
  return bare.startsWith('web_search') ? 'web_search' : bare;
}

/** Tool declarations for the wire. */
export interface EncodedTools {
  readonly tools: readonly JsonObject[];
  readonly searchOptions?: JsonObject;
}

/**
 * The declarations that a target takes. Untouched ones of this protocol go out as they came; tools
 * that only another vendor runs are dropped with a note; freeform tools of another protocol become
 * functions with one string.
 */
export function encodeTools(
  tools: readonly Tool[],
  profile: Profile,
  notes: Notes,
  allowed: (tool: Tool) => boolean,
): EncodedTools {
  const names = toolNames(tools, NAME_LIMIT);
  const out: JsonObject[] = [];
  let searchOptions: JsonObject | undefined;
  for (const tool of tools) {
    if (!allowed(tool)) continue;
    const where = `/tools/${tool.name}`;
    if (tool.type === 'hosted') {
      const refused = profile.hostedTools?.includes(tool.name) === false;
      if (tool.kind === SEARCH_OPTIONS && isOwn(tool) && !refused) searchOptions = tool.options;
      else {
        const hosted = encodeHosted(tool, profile, notes, where);
        if (hosted !== undefined) out.push(hosted);
      }
      continue;
    }
    if (tool.type === 'function' && tool.name === PLACEHOLDER && !isOwn(tool)) {
      notes.add('deferred_placeholder_dropped', where);
      continue;
    }
    const own = untouched(tool);
    if (isObject(own)) {
      out.push(own.type === undefined && own.function === undefined ? fromLegacy(own) : own);
      continue;
    }
    if (tool.type === 'function' && !isOwn(tool)) noteToolFields(tool, notes, where);
    const name = names.flat(tool.name, tool.namespace);
    out.push(
      tool.type === 'custom'
        ? encodeCustom(tool, name, notes, where)
        : encodeFunction(tool, name, plainRoot(tool.schema, profile, notes, where)),
    );
  }
  return { tools: out, ...(searchOptions === undefined ? {} : { searchOptions }) };
}

const fromLegacy = (value: JsonObject): JsonObject => ({ type: 'function', function: value });

function encodeFunction(
  tool: FunctionTool,
  name: string,
  schema: JsonObject | undefined,
): JsonObject {
  const from = leftover(tool);
  const nested = object(from.function) ?? {};
  return {
    ...without(from, ['name', 'description', 'parameters', 'strict']),
    type: 'function',
    function: compact({
      ...nested,
      name,
      description: tool.description,
      parameters: schema === undefined && isOwn(tool) ? undefined : rootSchema(schema),
      strict: isOwn(tool) ? tool.strict : tool.strict || undefined,
    }),
  };
}

/** A schema whose root says `type: object` and has properties, without which vendors refuse it. */
export function rootSchema(schema: JsonObject | undefined): JsonObject {
  if (schema === undefined) return { type: 'object', properties: {} };
  if (schema.type === 'object' && isObject(schema.properties)) return schema;
  return { ...schema, type: 'object', properties: object(schema.properties) ?? {} };
}

function encodeCustom(tool: CustomTool, name: string, notes: Notes, where: string): JsonObject {
  const { description, format } = tool;
  if (isOwn(tool)) return { type: 'custom', custom: compact({ name, description, format }) };
  notes.add('content_bridged', where, 'freeform tool offered as a function with one string');
  return {
    type: 'function',
    function: compact({
      name,
      description: withGrammar(description, format),
      parameters: FREEFORM_SCHEMA,
    }),
  };
}

/** The grammar moves into the description, the only place where the model can still read it. */
function withGrammar(description: string | undefined, format: Json | undefined) {
  const grammar = object(flatFormat(format));
  const definition = text(grammar?.definition);
  if (definition === undefined) return description;
  const syntax = text(grammar?.syntax) ?? 'given';
  const words = `The value of "input" must follow this ${syntax} grammar:\n${definition}`;
  return description ? `${description}\n\n${words}` : words;
}

function encodeHosted(
  tool: HostedTool,
  profile: Profile,
  notes: Notes,
  where: string,
): JsonObject | undefined {
  const own = untouched(tool);
  const served = profile.hostedTools?.includes(tool.name) ?? false;
  if (isObject(own) && (served || profile.hostedTools === undefined)) return own;
  // Responses' tool search that the client runs is a function in all but its type.
  if (tool.name === 'tool_search' && isObject(tool.options.parameters)) {
    notes.add('content_bridged', where, 'client-run tool search offered as a function');
    return {
      type: 'function',
      function: compact({
        name: tool.name,
        description: text(tool.options.description),
        parameters: rootSchema(tool.options.parameters),
      }),
    };
  }
  if (served && tool.name === 'web_search') {
    notes.add('parameter_mapped', where);
    return { type: 'web_search', web_search: searchOf(tool.options) };
  }
  notes.add('hosted_tool_dropped', where, tool.kind);
  return undefined;
}

/** GLM's inner object, which is obligatory; one domain is all that its filter takes. */
function searchOf(options: JsonObject): JsonObject {
  const domains =
    list(options.allowed_domains) ?? list(object(options.filters)?.allowed_domains) ?? [];
  return compact({
    enable: true,
    search_result: true,
    search_domain_filter: domains.length === 1 ? text(domains[0]) : undefined,
  });
}
