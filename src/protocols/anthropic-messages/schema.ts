/** JSON Schemas as Messages takes them: tool inputs and output formats. */

import type { Notes } from '../../conversation/notes.ts';
import { isObject, type Json, type JsonObject } from '../../lib/json.ts';
import { put, putAll } from '../../lib/json-members.ts';

const COMBINATORS = ['anyOf', 'oneOf', 'allOf'] as const;

/**
 * The input schema of a tool: an object at the root, always with properties. Anthropic refuses
 * anyOf, oneOf and allOf at the root; the branches' properties are merged then, with a note.
 */
export function inputSchema(
  schema: JsonObject | undefined,
  where: string,
  notes: Notes,
): JsonObject {
  if (schema === undefined) return { type: 'object', properties: {} };
  const flat = COMBINATORS.some((key) => Array.isArray(schema[key]))
    ? mergedRoot(schema, where, notes)
    : schema;
  if (flat.type === 'object' && isObject(flat.properties)) return flat;
  return { ...flat, type: 'object', properties: isObject(flat.properties) ? flat.properties : {} };
}

function mergedRoot(schema: JsonObject, where: string, notes: Notes): JsonObject {
  notes.add('schema_simplified', where, 'anyOf, oneOf or allOf at the root');
  const { anyOf, oneOf, allOf, ...rest } = schema;
  const list = (value: Json | undefined) => (Array.isArray(value) ? value.filter(isObject) : []);
  const required = (branch: JsonObject) =>
    Array.isArray(branch.required) ? branch.required.filter((key) => typeof key === 'string') : [];
  const every = list(allOf);
  const some = [...list(anyOf), ...list(oneOf)];
  const properties: Record<string, Json | undefined> = {};
  for (const branch of [...some, ...every, rest]) {
    if (isObject(branch.properties)) putAll(properties, branch.properties);
  }
  const common = some
    .map(required)
    .reduce<string[] | undefined>(
      (kept, keys) => (kept === undefined ? keys : kept.filter((key) => keys.includes(key))),
      undefined,
    );
  const needed = [...new Set([...required(rest), ...every.flatMap(required), ...(common ?? [])])];
  return {
    ...rest,
    type: 'object',
    properties,
    ...(needed.length > 0 ? { required: needed } : {}),
  };
}

/** Keywords that `output_config.format` refuses. */
const REFUSED = new Set([
  '$schema',
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'multipleOf',
  'minLength',
  'maxLength',
  'pattern',
  'minItems',
  'maxItems',
  'uniqueItems',
  'minProperties',
  'maxProperties',
  'not',
]);

const FORMATS = new Set([
  'date-time',
  'time',
  'date',
  'duration',
  'email',
  'hostname',
  'uri',
  'ipv4',
  'ipv6',
  'uuid',
]);

/** Members of a schema that hold schemas by name. */
const MAPS = new Set(['properties', '$defs', 'definitions', 'patternProperties']);
/** Members whose value is data, not a schema. */
const DATA = new Set(['enum', 'const', 'default', 'examples', 'required']);

/** An output schema without what Anthropic refuses; one note names everything that was removed. */
export function outputSchema(schema: JsonObject, where: string, notes: Notes): JsonObject {
  const removed = new Set<string>();
  const clean = cleaned(schema, removed);
  if (removed.size > 0) notes.add('schema_simplified', where, [...removed].sort().join(', '));
  return clean;
}

function cleaned(schema: JsonObject, removed: Set<string>): JsonObject {
  const out: Record<string, Json | undefined> = {};
  for (const [key, value] of Object.entries(schema)) {
    if (value === undefined) continue;
    const few = key === 'minItems' && (value === 0 || value === 1);
    if (
      (REFUSED.has(key) && !few) ||
      (key === 'format' && !(typeof value === 'string' && FORMATS.has(value)))
    ) {
      if (key !== '$schema') removed.add(key);
    } else if (MAPS.has(key) && isObject(value)) {
      out[key] = Object.fromEntries(
        Object.entries(value).map(([name, item]) => [name, sub(item, removed)]),
      );
    } else if (key === 'oneOf') out.anyOf = sub(value, removed);
    else put(out, key, DATA.has(key) ? value : sub(value, removed));
  }
  // Objects must be closed.
  if (out.type === 'object' && out.additionalProperties !== false) {
    if (out.additionalProperties !== undefined) removed.add('additionalProperties');
    out.additionalProperties = false;
  }
  return out;
}

function sub(value: Json | undefined, removed: Set<string>): Json | undefined {
  if (Array.isArray(value)) return value.map((item) => sub(item, removed) ?? null);
  return isObject(value) ? cleaned(value, removed) : value;
}
