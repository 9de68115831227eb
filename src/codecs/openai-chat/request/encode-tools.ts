/** Tool declarations of a Chat request, written for one target. */

import { noteLostToolFields } from '../../../conversation/lost-fields.ts';
import type { Notes } from '../../../conversation/notes.ts';
import type { Profile } from '../../../conversation/profile-facts.ts';
import { rootSchema, toolSchema } from '../../../conversation/tools/root-schema.ts';
import { strictAtOpenai } from '../../../conversation/tools/strict-schema.ts';
import {
  DEFERRED_PLACEHOLDER,
  declaredBefore,
  FREEFORM_SCHEMA,
  noteRenamed,
  toolNames,
  withGrammar,
} from '../../../conversation/tools/tool-names.ts';
import type { CustomTool, FunctionTool, HostedTool, Tool } from '../../../conversation/types.ts';
import { isObject, type JsonObject } from '../../../lib/json/json.ts';
import {
  compact,
  isOwn,
  list,
  NAME_LIMIT,
  object,
  ownResidue,
  ownWire,
  text,
  without,
} from '../wire.ts';
import { SEARCH_OPTIONS } from './decode-tools.ts';

export interface EncodedTools {
  readonly tools: readonly JsonObject[];
  readonly searchOptions?: JsonObject;
}

/**
 * The declarations for a target. Unchanged ones of this protocol go out as they came. Hosted tools that the
 * target does not run are dropped with a note. Freeform tools of another protocol become functions with one
 * string.
 */
export function encodeTools(
  tools: readonly Tool[],
  profile: Profile,
  notes: Notes,
  allowed: (tool: Tool) => boolean,
): EncodedTools {
  const names = toolNames(tools, NAME_LIMIT);
  const out: JsonObject[] = [];
  const seen = new Set<string>();
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
    if (tool.type === 'function' && tool.name === DEFERRED_PLACEHOLDER && !isOwn(tool)) {
      notes.add('deferred_placeholder_dropped', where);
      continue;
    }
    const own = ownWire(tool);
    if (isObject(own)) {
      seen.add(tool.name);
      out.push(own.type === undefined && own.function === undefined ? fromLegacy(own) : own);
      continue;
    }
    const name = names.flat(tool.name, tool.namespace);
    if (!isOwn(tool) && declaredBefore(name, seen, where, notes)) continue;
    if (tool.type === 'function' && !isOwn(tool)) {
      noteLostToolFields(tool, notes, where);
      if (tool.cache !== undefined) notes.add('cache_control_dropped', where);
    }
    noteRenamed(tool, name, where, notes);
    out.push(
      tool.type === 'custom'
        ? encodeCustom(tool, name, notes, where)
        : encodeFunction(
            tool,
            name,
            toolSchema(tool.schema, profile, notes, where),
            strictAtOpenai(tool, notes, where),
          ),
    );
  }
  return { tools: out, ...(searchOptions === undefined ? {} : { searchOptions }) };
}

const fromLegacy = (value: JsonObject): JsonObject => ({ type: 'function', function: value });

function encodeFunction(
  tool: FunctionTool,
  name: string,
  schema: JsonObject | undefined,
  strict: boolean | undefined,
): JsonObject {
  const from = ownResidue(tool);
  const nested = object(from.function) ?? {};
  return {
    ...without(from, ['name', 'description', 'parameters', 'strict']),
    type: 'function',
    function: compact({
      ...nested,
      name,
      description: tool.description,
      parameters: schema === undefined && isOwn(tool) ? undefined : rootSchema(schema),
      strict: isOwn(tool) ? strict : strict || undefined,
    }),
  };
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

function encodeHosted(
  tool: HostedTool,
  profile: Profile,
  notes: Notes,
  where: string,
): JsonObject | undefined {
  const own = ownWire(tool);
  const served = profile.hostedTools?.includes(tool.name) ?? false;
  if (isObject(own) && (served || profile.hostedTools === undefined)) return own;
  // A tool search of Responses that the client runs works like a function.
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
    return { type: 'web_search', web_search: encodeWebSearch(tool.options) };
  }
  notes.add('hosted_tool_dropped', where, tool.kind);
  return undefined;
}

/** GLM's required `web_search` object. Its filter accepts only one domain. */
function encodeWebSearch(options: JsonObject): JsonObject {
  const domains =
    list(options.allowed_domains) ?? list(object(options.filters)?.allowed_domains) ?? [];
  return compact({
    enable: true,
    search_result: true,
    search_domain_filter: domains.length === 1 ? text(domains[0]) : undefined,
  });
}
