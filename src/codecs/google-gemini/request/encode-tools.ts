/** Tool declarations of a Gemini request, written for one target. */

import { noteLostToolFields } from '../../../conversation/lost-fields.ts';
import type { Notes } from '../../../conversation/notes.ts';
import { flatToolFormat } from '../../../conversation/openai-fields.ts';
import type { KnownNodes } from '../../../conversation/session/known-nodes.ts';
import type { Target } from '../../../conversation/target.ts';
import { soundSchema } from '../../../conversation/tools/sound-schema.ts';
import {
  DEFERRED_PLACEHOLDER,
  declaredBefore,
  FREEFORM_SCHEMA,
  noteRenamed,
} from '../../../conversation/tools/tool-names.ts';
import type { Conversation, HostedTool, Tool } from '../../../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import {
  compact,
  field,
  geminiNames,
  isOwn,
  object,
  ownResidue,
  ownWire,
  PROTOCOL,
  text,
  without,
} from '../wire.ts';
import { reducedSchema } from './json-schema.ts';

/** What Google calls the tools that others have, too. */
const HOSTED_KEYS: Readonly<Record<string, string>> = {
  web_search: 'googleSearch',
  web_fetch: 'urlContext',
  code_execution: 'codeExecution',
};

/**
 * The `tools` of the body; undefined if there are none. Unchanged lists of this protocol go out as they came; those of
 * another protocol as they were made of the same tools before.
 */
export function encodeTools(
  conversation: Conversation,
  target: Target,
  notes: Notes,
  known: KnownNodes,
): Json | undefined {
  const { origin, tools } = conversation;
  const own = origin?.protocol === PROTOCOL;
  if (own && tools === origin.parts.tools) return field(origin.value, 'tools');
  if (own) return toolList(conversation, target, notes);
  const shape = [PROTOCOL, target.provider, target.model, target.profile];
  return known.encoded(tools, shape, notes, (from) => toolList(conversation, target, from));
}

/** Google's own tools go beside functions only where the model takes both. */
function toolList(conversation: Conversation, target: Target, notes: Notes): Json | undefined {
  const { origin, tools } = conversation;
  if (tools.some((tool) => tool.type === 'function' && tool.cache !== undefined)) {
    notes.add('cache_control_dropped', '/tools');
  }
  const functions: JsonObject[] = [];
  const seen = new Set<string>();
  const hosted: JsonObject[] = [];
  const dropped = new Set<HostedTool>();
  for (const tool of tools) {
    const where = `/tools/${tool.name}`;
    if (tool.type !== 'hosted') {
      const declared = encodeFunction(tool, conversation, target, notes, where);
      if (declared === undefined) continue;
      const name = text(declared.name) ?? '';
      if (isOwn(tool) || !declaredBefore(name, seen, where, notes)) functions.push(declared);
      continue;
    }
    const own = ownWire(tool);
    const key = HOSTED_KEYS[tool.name];
    if (isObject(own)) hosted.push(own);
    else if (key !== undefined && target.profile.hostedTools?.includes(tool.name)) {
      hosted.push({ [key]: {} });
      for (const option in tool.options) notes.add('parameter_dropped', `${where}/${option}`);
    } else if (tool.name === 'tool_search' && isObject(tool.options.parameters)) {
      notes.add('content_bridged', where, 'client-run tool search offered as a function');
      const { description, parameters } = tool.options;
      functions.push(declaration(tool.name, text(description), parameters, target, notes, where));
    } else dropped.add(tool);
  }
  const mixes =
    target.profile.hostedWithFunctions !== false ||
    (origin?.protocol === PROTOCOL && hasBoth(origin.parts.tools));
  if (functions.length > 0 && hosted.length > 0 && !mixes) {
    for (const tool of tools) if (tool.type === 'hosted') dropped.add(tool);
    hosted.length = 0;
  }
  for (const { name, kind } of dropped) notes.add('hosted_tool_dropped', `/tools/${name}`, kind);
  const out = functions.length > 0 ? [{ functionDeclarations: functions }, ...hosted] : hosted;
  return out.length > 0 ? out : undefined;
}

/** Google's clients know what its models take together. */
const hasBoth = (tools: readonly Tool[]) =>
  tools.some(({ type }) => type === 'hosted') && tools.some(({ type }) => type !== 'hosted');

function encodeFunction(
  tool: Exclude<Tool, HostedTool>,
  { origin, tools }: Conversation,
  target: Target,
  notes: Notes,
  where: string,
): JsonObject | undefined {
  const own = ownWire(tool);
  if (isObject(own)) return own;
  if (tool.type === 'function' && tool.name === DEFERRED_PLACEHOLDER && !isOwn(tool)) {
    notes.add('deferred_placeholder_dropped', where);
    return undefined;
  }
  const keeps = origin?.protocol === PROTOCOL && tool.namespace === undefined;
  const name = keeps ? tool.name : geminiNames(tools).flat(tool.name, tool.namespace);
  noteRenamed(tool, name, where, notes);
  if (tool.type === 'custom') {
    notes.add('content_bridged', where, 'freeform tool offered as a function with one string');
    const grammar = text(object(flatToolFormat(tool.format))?.definition);
    const words =
      grammar === undefined ? [] : [`The value of "input" must follow this grammar:\n${grammar}`];
    const description = [...(tool.description ? [tool.description] : []), ...words].join('\n\n');
    return declaration(name, description, FREEFORM_SCHEMA as JsonObject, target, notes, where);
  }
  if (!isOwn(tool)) noteLostToolFields(tool, notes, where);
  const from = without(ownResidue(tool), [
    'name',
    'description',
    'parameters',
    'parametersJsonSchema',
  ]);
  return { ...from, ...declaration(name, tool.description, tool.schema, target, notes, where) };
}

function declaration(
  name: string,
  description: string | undefined,
  from: JsonObject | undefined,
  { profile }: Target,
  notes: Notes,
  where: string,
): JsonObject {
  const shown = description || undefined;
  // A function without parameters has no schema: an empty object is refused by older models.
  if (from === undefined) return compact({ name, description: shown });
  const schema = soundSchema(from, notes, where);
  if (profile.jsonSchemaTools !== false) {
    const root = schema.type === undefined ? { type: 'object', ...schema } : schema;
    return compact({ name, description: shown, parametersJsonSchema: root });
  }
  const reduced = reducedSchema(schema);
  if (reduced.lost.length > 0) notes.add('schema_simplified', where, reduced.lost.join(', '));
  const empty = object(reduced.schema.properties) === undefined && reduced.schema.type === 'OBJECT';
  return compact({ name, description: shown, parameters: empty ? undefined : reduced.schema });
}

/** The names of all declared functions in an encoded list of tools. */
export function declaredNames(tools: Json | undefined): ReadonlySet<string> {
  const names = new Set<string>();
  for (const tool of Array.isArray(tools) ? (tools as readonly Json[]) : []) {
    const functions = isObject(tool) ? field(tool, 'functionDeclarations') : undefined;
    for (const one of Array.isArray(functions) ? (functions as readonly Json[]) : []) {
      const name = isObject(one) ? text(one.name) : undefined;
      if (name !== undefined) names.add(name);
    }
  }
  return names;
}
