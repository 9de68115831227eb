/** Decodes tools and tool choices of a Responses request, namespaces and loaded tools included. */

import { invalid, missing, wrongType } from '../../../conversation/errors.ts';
import type {
  Conversation,
  CustomTool,
  FunctionTool,
  HostedTool,
  Tool,
  ToolChoice,
} from '../../../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { flag, object, objects, ownResidue, ownWire, text, wireOf } from '../wire.ts';

/** The canonical name of a hosted tool of this wire type. */
export function hostedName(type: string): string {
  if (type.startsWith('web_search')) return 'web_search';
  return type === 'code_interpreter' ? 'code_execution' : type;
}

/**
 * The tools of one declaration: one tool, or all tools of a namespace. `wire` is the tool's own declaration;
 * the namespace around it is found in the origin.
 * @throws GatewayError invalid_request
 */
export function decodeTool(value: Json, path: string): readonly Tool[] {
  if (!isObject(value)) throw invalid(`Invalid type for '${path}': expected an object.`, path);
  const type = value.type;
  if (typeof type !== 'string') throw missing(`${path}.type`);
  if (type === 'namespace') {
    const namespace = text(value.name);
    return objects(value.tools).flatMap((tool, i) => {
      const inner = decodeTool(tool, `${path}.tools[${i}]`);
      return inner.map((t) => (t.type === 'hosted' ? t : { ...t, namespace }));
    });
  }
  if (type === 'function') return [decodeFunction(value, path)];
  if (type === 'custom') return [decodeCustom(value, path)];
  const { type: _, name: __, ...options } = value;
  const hosted: HostedTool = {
    type: 'hosted',
    name: hostedName(type),
    kind: type,
    options,
    wire: wireOf(value),
  };
  return [hosted];
}

function decodeFunction(value: JsonObject, path: string): FunctionTool {
  // Chat's nested form is not part of Responses, but compatible servers accept it.
  const source = object(value.function) ?? value;
  const name = text(source.name);
  if (name === undefined) throw missing(`${path}.name`);
  const schema = object(source.parameters);
  if (schema === undefined && source.parameters !== undefined && source.parameters !== null) {
    throw wrongType(`${path}.parameters`, 'an object', source.parameters, 'invalid_type');
  }
  return {
    type: 'function',
    name,
    description: text(source.description),
    schema,
    strict: flag(source.strict),
    deferred: source.defer_loading === true || undefined,
    wire: wireOf(value),
  };
}

function decodeCustom(value: JsonObject, path: string): CustomTool {
  const source = object(value.custom) ?? value;
  const name = text(source.name);
  if (name === undefined) throw missing(`${path}.name`);
  return {
    type: 'custom',
    name,
    description: text(source.description),
    format: source.format ?? undefined,
    wire: wireOf(value),
  };
}

/** The key of a tool: two declarations with the same key declare the same tool. */
export const toolKey = (tool: Tool): string =>
  tool.type === 'hosted' ? `\0${tool.kind}` : `${tool.namespace ?? ''}\0${tool.name}`;

/**
 * The declared tools with those that input items loaded (`additional_tools`, the result of a tool search).
 * New tools come last; a tool declared as deferred counts as loaded.
 */
export function addLoadedTools(tools: readonly Tool[], loaded: readonly Tool[]): readonly Tool[] {
  if (loaded.length === 0) return tools;
  const all = [...tools];
  const indexes = new Map(all.map((tool, i) => [toolKey(tool), i]));
  for (const tool of loaded) {
    const key = toolKey(tool);
    const index = indexes.get(key);
    if (index === undefined) {
      indexes.set(key, all.length);
      all.push(asLoaded(tool));
    } else all[index] = asLoaded(all[index]!);
  }
  return all;
}

function asLoaded(tool: Tool): Tool {
  if (tool.type !== 'function' || tool.deferred !== true) return tool;
  const { deferred: _, ...rest } = tool;
  return rest;
}

/** The declarations in input items. They stay there and are not declared again in `tools`. */
export function toolsOfItems(conversation: Conversation): readonly JsonObject[] {
  return conversation.turns.flatMap((turn) => {
    const item = ownWire(turn) ?? ownResidue(turn);
    if (!isObject(item)) return [];
    return item.type === 'additional_tools' || item.type === 'tool_search_output'
      ? objects(item.tools)
      : [];
  });
}

/** @throws GatewayError invalid_request */
export function decodeToolChoice(value: Json | undefined): ToolChoice | undefined {
  if (value === undefined || value === null) return undefined;
  if (value === 'auto' || value === 'none' || value === 'required') return { type: value };
  const type = isObject(value) ? value.type : undefined;
  if (!isObject(value) || typeof type !== 'string') {
    const given = typeof value === 'string' ? `'${value}'` : JSON.stringify(value);
    throw invalid(
      `Invalid value: ${given}. Supported values are: 'none', 'auto', and 'required'.`,
      'tool_choice',
    );
  }
  if (type === 'auto' || type === 'none' || type === 'required') return { type };
  if (type === 'allowed_tools') {
    const inner = object(value.allowed_tools) ?? value;
    const names = objects(inner.tools).map((tool) => nameOf(tool) ?? hostedName(`${tool.type}`));
    return { type: 'allowed', mode: inner.mode === 'required' ? 'required' : 'auto', names };
  }
  if (type === 'function' || type === 'custom') {
    const name = nameOf(value);
    if (name === undefined) throw missing('tool_choice.name');
    return { type: 'tool', name, namespace: text(value.namespace), kind: type };
  }
  return { type: 'tool', name: hostedName(type), kind: 'hosted' };
}

const nameOf = (value: JsonObject): string | undefined =>
  text(value.name) ?? text(object(value[`${value.type}`])?.name);
