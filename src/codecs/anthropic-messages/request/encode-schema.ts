/** Rewrites JSON Schemas of tool inputs and output formats into the form that Messages accepts. */

import type { Notes } from '../../../conversation/notes.ts';
import {
  hasRootUnion,
  rootSchema,
  withoutRootUnion,
} from '../../../conversation/tools/root-schema.ts';
import { soundSchema } from '../../../conversation/tools/sound-schema.ts';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { put } from '../../../lib/json/json-members.ts';
import { WITH_NAMED_SCHEMAS } from '../../../lib/json/json-schema-parts.ts';
import { wordSet } from '../../../lib/text/words.ts';

/**
 * The input schema of a tool: an object with properties at the root. Anthropic refuses anyOf, oneOf and allOf
 * there, so the properties of their branches are merged, with a note.
 */
export function inputSchema(from: JsonObject | undefined, where: string, notes: Notes): JsonObject {
  const schema = from && soundSchema(from, notes, where);
  if (schema === undefined || !hasRootUnion(schema, false)) return rootSchema(schema);
  notes.add('schema_simplified', where, 'anyOf, oneOf or allOf at the root');
  return rootSchema(withoutRootUnion(schema));
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

const FORMATS = wordSet(`
  date-time time date duration email hostname uri ipv4 ipv6 uuid`);

/** Keywords whose value is data, not a schema. */
const DATA = new Set(['enum', 'const', 'default', 'examples', 'required']);

/** An output schema without the keywords that Anthropic refuses. One note names all of them. */
export function outputSchema(schema: JsonObject, where: string, notes: Notes): JsonObject {
  const removed = new Set<string>();
  const clean = cleanSchema(schema, removed);
  if (removed.size > 0) notes.add('schema_simplified', where, [...removed].sort().join(', '));
  return clean;
}

function cleanSchema(schema: JsonObject, removed: Set<string>): JsonObject {
  const out: Record<string, Json | undefined> = {};
  for (const [key, value] of Object.entries(schema)) {
    if (value === undefined) continue;
    const isAccepted = key === 'minItems' && (value === 0 || value === 1);
    if (
      (REFUSED.has(key) && !isAccepted) ||
      (key === 'format' && !(typeof value === 'string' && FORMATS.has(value)))
    ) {
      if (key !== '$schema') removed.add(key);
    } else if (WITH_NAMED_SCHEMAS.has(key) && isObject(value)) {
      out[key] = Object.fromEntries(
        Object.entries(value).map(([name, item]) => [name, cleanValue(item, removed)]),
      );
    } else if (key === 'oneOf') out.anyOf = cleanValue(value, removed);
    else put(out, key, DATA.has(key) ? value : cleanValue(value, removed));
  }
  // Objects must be closed.
  if (out.type === 'object' && out.additionalProperties !== false) {
    if (out.additionalProperties !== undefined) removed.add('additionalProperties');
    out.additionalProperties = false;
  }
  return out;
}

function cleanValue(value: Json | undefined, removed: Set<string>): Json | undefined {
  if (Array.isArray(value)) return value.map((item) => cleanValue(item, removed) ?? null);
  return isObject(value) ? cleanSchema(value, removed) : value;
}
