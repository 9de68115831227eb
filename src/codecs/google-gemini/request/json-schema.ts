/** Turns Google's own schemas (an OpenAPI subset) into JSON Schema, and JSON Schema into Google's where only that is taken. */

import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { memberOf, put, putAll } from '../../../lib/json/json-members.ts';
import {
  resolve,
  WITH_NAMED_SCHEMAS,
  WITH_SCHEMA,
  WITH_SCHEMAS,
} from '../../../lib/json/json-schema-parts.ts';
import { wordSet } from '../../../lib/text/words.ts';
import { list, object, text } from '../wire.ts';

/** No schema that a vendor takes is deeper; a deeper part is left open. */
const MAX_DEPTH = 64;

const OWN_KEYS: Readonly<Record<string, string>> = {
  any_of: 'anyOf',
  max_items: 'maxItems',
  min_items: 'minItems',
  max_length: 'maxLength',
  min_length: 'minLength',
  max_properties: 'maxProperties',
  min_properties: 'minProperties',
  property_ordering: 'propertyOrdering',
};
/** Counts, which proto3 JSON writes as strings. */
const COUNTS = wordSet(`
  maxItems minItems maxLength minLength maxProperties minProperties`);
/** Members of Google's schemas without a meaning in JSON Schema. */
const NO_KEYWORDS = new Set(['nullable', 'propertyOrdering', 'example']);

/** JSON Schema for a schema of Google's (`Schema`: `{type: "OBJECT", nullable, …}`). Bounded by {@link MAX_DEPTH}. */
export function jsonSchemaOf(schema: JsonObject, depth = 0): JsonObject {
  const out: Record<string, Json | undefined> = {};
  if (depth > MAX_DEPTH) return out;
  for (const key in schema) {
    const value = schema[key];
    const name = memberOf(OWN_KEYS, key) ?? key;
    if (value === undefined || NO_KEYWORDS.has(name)) continue;
    put(out, name, convert(name, value, depth));
  }
  if (schema.nullable !== true) return out;
  if (typeof out.type === 'string') out.type = [out.type, 'null'];
  const values = list(out.enum);
  if (values !== undefined) out.enum = [...values, null];
  return out;
}

function convert(name: string, value: Json, depth: number): Json {
  if (name === 'type') {
    return typeof value === 'string'
      ? value.toLowerCase()
      : Array.isArray(value)
        ? value.map((one: Json) => text(one)?.toLowerCase() ?? one)
        : value;
  }
  if (COUNTS.has(name) && typeof value === 'string' && /^\d{1,15}$/.test(value))
    return Number(value);
  if (WITH_NAMED_SCHEMAS.has(name)) {
    const members: Record<string, Json | undefined> = {};
    for (const key of Object.keys(object(value) ?? {})) {
      put(members, key, sub((value as JsonObject)[key]!, depth));
    }
    return members;
  }
  if (WITH_SCHEMA.has(name)) return sub(value, depth);
  if (WITH_SCHEMAS.has(name)) {
    return (list(value) ?? []).map((one) => sub(one, depth));
  }
  return value;
}

const sub = (value: Json, depth: number): Json =>
  isObject(value) ? jsonSchemaOf(value, depth + 1) : value;

/** Keywords of Google's `Schema`, without those that are handled one by one. */
const KEPT = wordSet(`
  title description minItems maxItems minimum maximum minLength maxLength minProperties
  maxProperties pattern default propertyOrdering`);
const FORMATS: Readonly<Record<string, readonly string[]>> = {
  string: ['enum', 'date-time'],
  number: ['float', 'double'],
  integer: ['int32', 'int64'],
};
/** Keywords that add nothing to what a value may be. */
const SILENT = new Set([
  '$schema',
  '$id',
  '$anchor',
  '$comment',
  '$defs',
  'definitions',
  'examples',
  'example',
  'readOnly',
  'writeOnly',
  'deprecated',
]);

/** A schema in Google's form, and the keywords that it lost. */
export interface ReducedSchema {
  readonly schema: JsonObject;
  readonly lost: readonly string[];
}

// A reference that is used in many places is written out in each of them: so many nodes at most.
const MAX_NODES = 20_000;

/**
 * JSON Schema as Google's `Schema`, for where `parametersJsonSchema` is not taken: references are written out,
 * `const` becomes an enum, lists of types become `anyOf` or `nullable`, and other keywords are lost.
 */
export function reducedSchema(schema: JsonObject): ReducedSchema {
  const reduction = new Reduction(schema);
  return { schema: reduction.of(schema, 0), lost: [...reduction.lost] };
}

class Reduction {
  readonly lost = new Set<string>();
  /** References that are being written out: one of them inside itself has no end. */
  readonly #open = new Set<string>();
  #nodes = 0;

  constructor(private readonly root: JsonObject) {}

  of(value: Json | undefined, depth: number): JsonObject {
    if (!isObject(value)) return { type: 'STRING' };
    if (depth > MAX_DEPTH || ++this.#nodes > MAX_NODES) {
      this.lost.add('depth');
      return { type: 'OBJECT' };
    }
    const reference = text(value.$ref);
    if (reference !== undefined) return this.#referred(reference, value, depth);
    const merged = this.#merged(value);
    const { types, nullable } = typesOf(merged);
    if (types.length > 1) {
      const anyOf = types.map((type) => this.#typed({ ...merged, type }, type, depth));
      return withNull({ anyOf }, nullable);
    }
    return withNull(this.#typed(merged, types[0], depth), nullable);
  }

  #referred(reference: string, { $ref: _, ...beside }: JsonObject, depth: number): JsonObject {
    const found = this.#find(reference);
    if (found === undefined || this.#open.has(reference)) {
      this.lost.add('$ref');
      return { type: 'OBJECT' };
    }
    this.#open.add(reference);
    const out = this.of({ ...found, ...beside }, depth + 1);
    this.#open.delete(reference);
    return out;
  }

  #find(reference: string): JsonObject | undefined {
    return object(resolve(reference, this.root));
  }

  /** The schema with the members of `allOf` in it. */
  #merged(value: JsonObject): JsonObject {
    const all = list(value.allOf);
    if (all === undefined) return value;
    const { allOf: _, ...rest } = value;
    const own = object(rest.properties) ?? {};
    const required = new Set<Json>(list(rest.required));
    const properties: Record<string, Json | undefined> = {};
    const out: Record<string, Json | undefined> = {};
    for (const one of all) {
      const reference = object(one)?.$ref;
      const member = typeof reference === 'string' ? this.#find(reference) : object(one);
      if (member === undefined) continue;
      putAll(out, member);
      putAll(properties, object(member.properties) ?? {});
      for (const name of list(member.required) ?? []) required.add(name);
    }
    putAll(out, rest);
    putAll(properties, own);
    if (required.size > 0) out.required = [...required];
    if (Object.keys(properties).length > 0) out.properties = properties;
    return out;
  }

  #typed(value: JsonObject, type: string | undefined, depth: number): JsonObject {
    const out: Record<string, Json | undefined> = {};
    if (type !== undefined) out.type = type.toUpperCase();
    for (const key in value) {
      const member = value[key];
      if (member === undefined) continue;
      if (KEPT.has(key)) out[key] = member;
      else this.#keyword(key, member, type, depth, out);
    }
    if (type === 'array' && out.items === undefined) out.items = { type: 'STRING' };
    const properties = object(out.properties);
    const required = list(out.required);
    if (required !== undefined) {
      // Google: property is not defined.
      const known = required.filter(
        (name) =>
          typeof name === 'string' && properties !== undefined && Object.hasOwn(properties, name),
      );
      if (known.length > 0) out.required = known;
      else delete out.required;
    }
    return out;
  }

  #keyword(
    key: string,
    member: Json,
    type: string | undefined,
    depth: number,
    out: Record<string, Json | undefined>,
  ): void {
    switch (key) {
      case 'type':
        return;
      case 'required':
        out.required = member;
        return;
      case 'properties': {
        const properties: Record<string, Json | undefined> = {};
        const from = object(member) ?? {};
        for (const name of Object.keys(from)) put(properties, name, this.of(from[name], depth + 1));
        // Google: should be non-empty for OBJECT type.
        if (Object.keys(properties).length > 0) out.properties = properties;
        return;
      }
      case 'items':
        out.items = this.of(Array.isArray(member) ? member[0] : member, depth + 1);
        return;
      case 'anyOf':
      case 'oneOf': {
        const branches = list(member) ?? [];
        if (key === 'oneOf') this.lost.add('oneOf');
        const filled = branches.filter((one) => object(one)?.type !== 'null');
        if (filled.length < branches.length) out.nullable = true;
        if (filled.length > 0) out.anyOf = filled.map((one) => this.of(one, depth + 1));
        return;
      }
      case 'const':
      case 'enum': {
        const values = key === 'const' ? [member] : (list(member) ?? []);
        const words = values.filter((one) => typeof one === 'string');
        if (values.includes(null)) out.nullable = true;
        // Google: only allowed for STRING type.
        if (words.length > 0 && words.length === values.filter((one) => one !== null).length) {
          out.type ??= 'STRING';
          out.enum = words;
        } else this.lost.add(key);
        return;
      }
      case 'format':
        if (type !== undefined && memberOf(FORMATS, type)?.includes(String(member)))
          out.format = member;
        else this.lost.add('format');
        return;
      case 'exclusiveMinimum':
      case 'exclusiveMaximum':
        // The nearest bound that can be said.
        out[key === 'exclusiveMinimum' ? 'minimum' : 'maximum'] ??= member;
        this.lost.add(key);
        return;
      case 'nullable':
        if (member === true) out.nullable = true;
        return;
      default:
        if (!SILENT.has(key)) this.lost.add(key);
    }
  }
}

/** The types of a schema in lower case, without `null`. */
function typesOf(value: JsonObject): {
  readonly types: readonly string[];
  readonly nullable: boolean;
} {
  const written = (list(value.type) ?? [value.type]).flatMap(
    (one) => text(one)?.toLowerCase() ?? [],
  );
  const types = written.filter((type) => type !== 'null');
  const nullable = types.length < written.length;
  if (types.length === 0 && object(value.properties) !== undefined)
    return { types: ['object'], nullable };
  return { types, nullable };
}

const withNull = (schema: JsonObject, nullable: boolean): JsonObject =>
  nullable ? { ...schema, nullable: true } : schema;
