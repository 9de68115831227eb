/** A tool's schema without what a server that makes a grammar of it cannot write as one, or only as a very large one. */

import { isObject, type Json, type JsonObject } from '../../lib/json/json.ts';
import { put } from '../../lib/json/json-members.ts';
import { WITH_NAMED_SCHEMAS, WITH_SCHEMA, WITH_SCHEMAS } from '../../lib/json/json-schema-parts.ts';
import { wordSet } from '../../lib/text/words.ts';

/** They bound values that are otherwise said by type, names and choices. */
const BOUNDS = wordSet(`
  pattern format contentEncoding contentMediaType minLength maxLength minItems maxItems uniqueItems
  minContains maxContains minimum maximum exclusiveMinimum exclusiveMaximum multipleOf
  minProperties maxProperties propertyNames patternProperties not`);

/** The same reference where there are none. */
export function bareSchema(schema: JsonObject): JsonObject {
  let out: Record<string, Json | undefined> | undefined;
  for (const [name, value] of Object.entries(schema)) {
    const read = BOUNDS.has(name) ? undefined : inner(name, value);
    if (read === value) continue;
    out ??= { ...schema };
    if (read === undefined) delete out[name];
    else put(out, name, read);
  }
  return (out as JsonObject | undefined) ?? schema;
}

function inner(name: string, value: Json | undefined): Json | undefined {
  if (WITH_SCHEMA.has(name) && isObject(value)) return bareSchema(value);
  if (WITH_SCHEMAS.has(name) && Array.isArray(value)) {
    const read = value.map((item: Json) => (isObject(item) ? bareSchema(item) : item));
    return read.every((item, i) => item === value[i]) ? value : read;
  }
  if (!WITH_NAMED_SCHEMAS.has(name) || !isObject(value)) return value;
  let out: Record<string, Json | undefined> | undefined;
  for (const [key, item] of Object.entries(value)) {
    const read = isObject(item) ? bareSchema(item) : item;
    if (read === item) continue;
    out ??= { ...value };
    put(out, key, read);
  }
  return (out as JsonObject | undefined) ?? value;
}
