/** Turns a tool's schema that is no JSON Schema 2020-12 into one: MCP servers send older drafts, nulls and names twice. */

import { isObject, type Json, type JsonObject } from '../../lib/json/json.ts';
import { put } from '../../lib/json/json-members.ts';
import {
  isSchema,
  TYPES,
  WITH_NAMED_SCHEMAS,
  WITH_SCHEMA,
  WITH_SCHEMAS,
} from '../../lib/json/json-schema-parts.ts';
import type { Notes } from '../notes.ts';

type Value = Json | undefined;

const isText = (value: Value): boolean => typeof value === 'string';
const isFlag = (value: Value): boolean => typeof value === 'boolean';
/** A long number is an object of its own. */
const isNumber = (value: Value): boolean =>
  typeof value === 'number' ||
  (typeof value === 'object' && value !== null && !Array.isArray(value) && !isObject(value));

/** The value that a keyword may have, the same where it may have this one; undefined: the keyword goes. */
type Read = (value: Value) => Value;

const only =
  (fits: (value: Value) => boolean): Read =>
  (value) =>
    fits(value) ? value : undefined;

const schema: Read = (value) => (isObject(value) ? sound(value) : only(isSchema)(value));

const schemas: Read = (value) =>
  Array.isArray(value)
    ? same(
        value,
        value.map((item: Json) => schema(item) ?? {}),
      )
    : undefined;

const named: Read = (value) => {
  if (!isObject(value)) return undefined;
  let out: Record<string, Value> | undefined;
  for (const [name, item] of Object.entries(value)) {
    const read = schema(item) ?? {};
    if (read === item) continue;
    out ??= { ...value };
    put(out, name, read);
  }
  return (out as JsonObject | undefined) ?? value;
};

const names: Read = (value) =>
  Array.isArray(value) ? same(value, [...new Set(value.filter(isText))]) : undefined;

const types: Read = (value) => {
  const known = (Array.isArray(value) ? value : [value])
    .map((one: Value) => (typeof one === 'string' ? one.toLowerCase() : ''))
    .filter((one) => TYPES.has(one));
  if (known.length === 0) return undefined;
  return Array.isArray(value) ? same(value, [...new Set(known)]) : known[0];
};

/** Tuples of older drafts stay: {@link sound} moves them. */
const items: Read = (value) => (Array.isArray(value) ? schemas(value) : schema(value));

const each = (keywords: Iterable<string>, read: Read) =>
  Array.from(keywords, (keyword) => [keyword, read] as const);

/** https://json-schema.org/draft/2020-12: keywords whose values must have a certain form. */
const KEYWORDS: ReadonlyMap<string, Read> = new Map<string, Read>([
  ['type', types],
  ['required', names],
  ['enum', only(Array.isArray)],
  ...each(WITH_NAMED_SCHEMAS, named),
  ...each(WITH_SCHEMAS, schemas),
  ...each(WITH_SCHEMA, schema),
  ['items', items],
  ...each(['title', 'description', 'pattern', 'format', '$ref', '$comment'], only(isText)),
  ...each(['uniqueItems', 'deprecated', 'readOnly', 'writeOnly'], only(isFlag)),
  ...each(['minimum', 'maximum', 'multipleOf', 'minLength', 'maxLength'], only(isNumber)),
  ...each(['minItems', 'maxItems', 'minProperties', 'maxProperties'], only(isNumber)),
  ...each(
    ['exclusiveMinimum', 'exclusiveMaximum'],
    only((value) => isNumber(value) || isFlag(value)),
  ),
]);

const readSchemas = new WeakMap<JsonObject, JsonObject>();

/**
 * The same schema where it is one of 2020-12, and where its arrays say what they hold, which OpenAI wants. Keywords whose
 * value has the wrong form go: they say nothing.
 */
export function soundSchema(from: JsonObject, notes: Notes, where: string): JsonObject {
  let out = readSchemas.get(from);
  if (out === undefined) {
    out = sound(from);
    readSchemas.set(from, out);
  }
  if (out !== from) notes.add('schema_simplified', where, 'not JSON Schema 2020-12');
  return out;
}

function sound(from: JsonObject): JsonObject {
  let out: Record<string, Value> | undefined;
  const set = (keyword: string, value: Value) => {
    out ??= { ...from };
    if (value === undefined) delete out[keyword];
    else out[keyword] = value;
  };
  for (const [keyword, value] of Object.entries(from)) {
    const read = KEYWORDS.get(keyword)?.(value);
    if (KEYWORDS.has(keyword) && read !== value) set(keyword, read);
  }
  const now = () => out ?? from;
  for (const end of ['Minimum', 'Maximum']) {
    // Draft 4: whether `minimum` itself is excluded.
    const excluded = now()[`exclusive${end}`];
    if (typeof excluded !== 'boolean') continue;
    const bound = end.toLowerCase();
    set(`exclusive${end}`, excluded ? now()[bound] : undefined);
    if (excluded) set(bound, undefined);
  }
  const { type, items, additionalItems } = now();
  if (Array.isArray(items)) {
    // A tuple of draft 7 and before.
    set('prefixItems', items);
    set('items', additionalItems ?? {});
    set('additionalItems', undefined);
  } else if (
    items === undefined &&
    (type === 'array' || (Array.isArray(type) && type.includes('array')))
  ) {
    set('items', {});
  }
  return (out as JsonObject | undefined) ?? from;
}

/** The first list where both hold the same. */
const same = (a: readonly Json[], b: readonly Json[]): readonly Json[] =>
  a.length === b.length && a.every((item, i) => item === b[i]) ? a : b;
