/** Encodes tools and tool choices for Responses. Unchanged declarations of the same protocol go out as they came. */

import { noteLostToolFields } from '../../../conversation/lost-fields.ts';
import type { Notes } from '../../../conversation/notes.ts';
import { flatToolFormat } from '../../../conversation/openai-fields.ts';
import type { Profile } from '../../../conversation/profile-facts.ts';
import { rootSchema, toolSchema } from '../../../conversation/tools/root-schema.ts';
import { strictAtOpenai } from '../../../conversation/tools/strict-schema.ts';
import {
  DEFERRED_PLACEHOLDER,
  declaredBefore,
  noteRenamed,
  type ToolNames,
} from '../../../conversation/tools/tool-names.ts';
import type { Conversation, HostedTool, Tool, ToolChoice } from '../../../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { memberOf } from '../../../lib/json/json-members.ts';
import { compact, object, objects, ownResidue, ownWire, PROTOCOL } from '../wire.ts';
import { decodeTool, hostedName, toolKey, toolsOfItems } from './decode-tools.ts';

const HOSTED_TYPES: Readonly<Record<string, string>> = { code_execution: 'code_interpreter' };

/**
 * The `tools` of a conversation of another protocol, or whose list was changed. Unchanged declarations go
 * out as they came, and those of a namespace go back into their group.
 */
export function encodeTools(
  conversation: Conversation,
  names: ToolNames,
  profile: Profile,
  notes: Notes,
): readonly JsonObject[] {
  const own = conversation.origin?.protocol === PROTOCOL;
  const groups = own ? objects(conversation.origin?.value.tools) : [];
  const declaredInItems = own ? loadedOnly(conversation, groups) : undefined;
  const out: JsonObject[] = [];
  const seen = new Set<string>();
  const openGroups = new Map<string, JsonObject[]>();
  const groupsByName = new Map<Json | undefined, JsonObject>();
  for (const group of groups) {
    if (group.type === 'namespace' && !groupsByName.has(group.name))
      groupsByName.set(group.name, group);
  }
  for (const tool of conversation.tools) {
    if (declaredInItems?.has(toolKey(tool))) continue;
    const declared = ownWire(tool);
    if (!own && tool.type !== 'hosted') {
      const name = names.flat(tool.name, tool.namespace);
      if (declaredBefore(name, seen, `tools.${tool.name}`, notes)) continue;
    }
    const value = isObject(declared) ? declared : encodeTool(tool, names, own, profile, notes);
    if (value === undefined) continue;
    const namespace = own && tool.type !== 'hosted' ? tool.namespace : undefined;
    if (namespace === undefined) {
      out.push(value);
      continue;
    }
    const members = openGroups.get(namespace);
    if (members !== undefined) {
      members.push(value);
      continue;
    }
    const groupMembers = [value];
    openGroups.set(namespace, groupMembers);
    const group = groupsByName.get(namespace);
    out.push({ ...(group ?? { type: 'namespace', name: namespace }), tools: groupMembers });
  }
  return out;
}

/** Keys of tools that are declared in input items and not in `tools`. */
function loadedOnly(conversation: Conversation, declared: readonly JsonObject[]): Set<string> {
  const keys = (list: readonly JsonObject[]) =>
    list.flatMap((tool, i) => decodeTool(tool, `tools[${i}]`)).map(toolKey);
  const loaded = new Set(keys(toolsOfItems(conversation)));
  if (loaded.size > 0) for (const key of keys(declared)) loaded.delete(key);
  return loaded;
}

function encodeTool(
  tool: Tool,
  names: ToolNames,
  own: boolean,
  profile: Profile,
  notes: Notes,
): JsonObject | undefined {
  if (tool.type === 'hosted') return encodeHosted(tool, profile, notes);
  const residue = ownResidue(tool);
  const name = own ? tool.name : names.flat(tool.name, tool.namespace);
  if (!own) noteRenamed(tool, name, `tools.${tool.name}`, notes);
  if (tool.type === 'custom') {
    return compact({
      ...residue,
      type: 'custom',
      name,
      description: tool.description,
      format: flatToolFormat(tool.format),
    });
  }
  if (tool.deferred === true && tool.name === DEFERRED_PLACEHOLDER) {
    notes.add('deferred_placeholder_dropped', 'tools', tool.name);
    return undefined;
  }
  if (residue === undefined) noteLostToolFields(tool, notes, `tools.${tool.name}`);
  return compact({
    ...residue,
    type: 'function',
    name,
    description: tool.description,
    parameters: rootSchema(toolSchema(tool.schema, profile, notes, `tools.${tool.name}`)),
    // If it is left out, the API treats the schema as strict and refuses most schemas.
    strict:
      profile.strictTools === false
        ? undefined
        : (strictAtOpenai(tool, notes, `tools.${tool.name}`) ?? false),
    defer_loading: residue?.defer_loading === true ? tool.deferred === true : undefined,
  });
}

function encodeHosted(tool: HostedTool, profile: Profile, notes: Notes): JsonObject | undefined {
  if (!profile.hostedTools?.includes(tool.name)) {
    notes.add('hosted_tool_dropped', `tools.${tool.kind}`, 'the upstream does not run it');
    return undefined;
  }
  if (tool.name === 'web_search') return encodeWebSearch(tool, notes);
  const residue = ownResidue(tool);
  if (residue !== undefined) return compact({ ...residue, type: tool.kind, ...tool.options });
  if (tool.name === 'tool_search') {
    notes.add('hosted_tool_dropped', `tools.${tool.kind}`, 'all tools are declared at once');
    return undefined;
  }
  const type = memberOf(HOSTED_TYPES, tool.name) ?? tool.kind;
  // "Missing required parameter: 'tools[0].container'."
  const container = type === 'code_interpreter' ? { container: { type: 'auto' } } : {};
  return compact({ type, ...container, ...tool.options });
}

const WEB_SEARCH_OPTIONS = ['filters', 'search_context_size', 'user_location'];

/** Another protocol's web search tool: domains become a filter, and the location is flat. */
function encodeWebSearch(tool: HostedTool, notes: Notes): JsonObject {
  const residue = ownResidue(tool);
  if (residue !== undefined) return { ...residue, ...tool.options };
  const { allowed_domains: domains, user_location: location, ...options } = tool.options;
  const out: Record<string, Json | undefined> = { type: 'web_search' };
  if (domains !== undefined) out.filters = { allowed_domains: domains };
  if (isObject(location)) {
    out.user_location = { type: 'approximate', ...(object(location.approximate) ?? location) };
  }
  for (const [key, value] of Object.entries(options)) {
    if (WEB_SEARCH_OPTIONS.includes(key)) out[key] = value;
    else notes.add('parameter_dropped', `tools.web_search.${key}`);
  }
  return compact(out);
}

/** `tool_choice` for the declared tools; undefined if there are none. */
export function encodeToolChoice(
  choice: ToolChoice,
  conversation: Conversation,
  declared: readonly JsonObject[],
  names: ToolNames,
  profile: Profile,
  notes: Notes,
): Json | undefined {
  if (declared.length === 0) return undefined;
  const accepted = profile.toolChoices ?? ['auto', 'none', 'required', 'tool'];
  const wanted =
    choice.type === 'allowed' ? (choice.mode === 'required' ? 'required' : 'auto') : choice.type;
  if (!accepted.includes(wanted)) {
    notes.add('parameter_mapped', 'tool_choice', `${wanted}: auto`);
    return 'auto';
  }
  const own = conversation.origin?.protocol === PROTOCOL;
  switch (choice.type) {
    case 'allowed':
      return {
        type: 'allowed_tools',
        mode: choice.mode,
        tools: allowedEntries(
          choice.names.map((name) => (own ? name : names.flat(name))),
          declared,
        ),
      };
    case 'tool': {
      if (choice.kind === 'hosted' || choice.kind === 'tool-search') {
        const type = declared.find((t) => hostedName(`${t.type}`) === choice.name)?.type;
        if (type !== undefined) return { type };
        notes.add('parameter_mapped', 'tool_choice', `${choice.name}: auto`);
        return 'auto';
      }
      const name = own ? choice.name : names.flat(choice.name, choice.namespace);
      if (!own && !declared.some((t) => t.name === name)) {
        notes.add('parameter_mapped', 'tool_choice', `${name}: auto`);
        return 'auto';
      }
      const namespace = own ? choice.namespace : undefined;
      return compact({ type: choice.kind, name, namespace });
    }
    default:
      return choice.type;
  }
}

/** The entries of a choice of allowed tools, by declared name. */
function allowedEntries(
  names: readonly string[],
  declared: readonly JsonObject[],
): readonly JsonObject[] {
  const types = new Map<string, Json | undefined>();
  const add = (name: string, type: Json | undefined) => {
    if (!types.has(name)) types.set(name, type);
  };
  for (const { name, type } of declared) {
    if (typeof name === 'string') add(name, type);
    add(hostedName(`${type}`), type);
  }
  return names.map((name) => {
    const type = types.get(name) ?? 'function';
    return type === 'function' || type === 'custom' ? { type, name } : { type };
  });
}
