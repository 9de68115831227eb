/** Several schemas that must all hold, as one. */

import { canonicalText } from '../../lib/json/canonical.ts';
import { isObject, type Json, type JsonObject } from '../../lib/json/json.ts';
import { memberOf, put } from '../../lib/json/json-members.ts';
import { isSchema, type Schema } from '../../lib/json/json-schema-parts.ts';
import { spend } from './effort.ts';

/** Equality of JSON values; the order of keys does not matter. */
function sameJson(a: Json, b: Json): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  const texts = [canonicalText(a), canonicalText(b)] as const;
  spend((texts[0].length + texts[1].length) / 16);
  return texts[0] === texts[1];
}

const LOWER = new Set(['minimum', 'minLength', 'minItems', 'minProperties', 'exclusiveMinimum']);
const UPPER = new Set(['maximum', 'maxLength', 'maxItems', 'maxProperties', 'exclusiveMaximum']);

function mergeTypes(a: Json, b: Json): Json {
  const left = Array.isArray(a) ? a : [a];
  const right: readonly Json[] = Array.isArray(b) ? b : [b];
  const both = left.filter(
    (type) => right.includes(type) || (type === 'integer' && right.includes('number')),
  );
  if (left.includes('number') && right.includes('integer')) both.push('integer');
  return both.length === 1 ? both[0]! : both;
}

function mergeMember(key: string, a: Json, b: Json): Json | undefined {
  if (sameJson(a, b)) return a;
  if (isObject(a)) spend(Object.keys(a).length);
  if (Array.isArray(a) && Array.isArray(b)) spend((a.length * b.length) / 8);
  if (key === 'type') return mergeTypes(a, b);
  if (key === 'required' && Array.isArray(a) && Array.isArray(b)) return [...new Set([...a, ...b])];
  if (key === 'enum' && Array.isArray(a) && Array.isArray(b)) {
    return a.filter((one) => b.some((other) => sameJson(one, other)));
  }
  if (typeof a === 'number' && typeof b === 'number') {
    if (LOWER.has(key)) return Math.max(a, b);
    if (UPPER.has(key)) return Math.min(a, b);
  }
  if ((key === 'properties' || key === 'patternProperties') && isObject(a) && isObject(b)) {
    const merged: Record<string, Json | undefined> = { ...a };
    for (const [name, schema] of Object.entries(b)) {
      const other = memberOf(a, name);
      const both = other === undefined ? schema : mergeSchemas([other as Schema, schema as Schema]);
      put(merged, name, both);
    }
    return merged;
  }
  if ((key === 'items' || key === 'additionalProperties') && isSchema(a) && isSchema(b)) {
    return mergeSchemas([a, b]);
  }
  return undefined;
}

/**
 * One schema for all of them. What two of them say of the same keyword and cannot be said in one goes
 * into an `allOf` of the result (`anyOf` beside `anyOf`, two patterns); plain words
 * (title, description) are the first one's.
 */
export function mergeSchemas(schemas: readonly Schema[]): Schema {
  if (schemas.includes(false)) return false;
  const objects = schemas.filter((one): one is JsonObject => typeof one === 'object');
  spend(objects.length);
  if (objects.length <= 1) return objects[0] ?? true;
  const out: Record<string, Json | undefined> = {};
  const aside: JsonObject[] = [];
  for (const schema of objects) {
    const rest: Record<string, Json> = {};
    const members = Object.entries(schema);
    spend(members.length);
    for (const [key, value] of members) {
      if (value === undefined) continue;
      const before = memberOf(out, key);
      if (before === undefined) put(out, key, value);
      else if (key === 'allOf') out.allOf = [...(before as Json[]), ...(value as Json[])];
      else if (!/^(?:title|description|default|examples|\$.*)$/.test(key)) {
        const merged = mergeMember(key, before, value);
        if (merged === undefined) put(rest, key, value);
        else put(out, key, merged);
      } else if (key === '$ref') rest[key] = value;
    }
    if (Object.keys(rest).length > 0) aside.push(rest);
  }
  return aside.length > 0 ? { ...out, allOf: [...((out.allOf as Json[]) ?? []), ...aside] } : out;
}
