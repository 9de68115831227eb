/** A value for a JSON Schema, always the same one: what the demo model answers and calls tools with. */

import { isObject, type Json, type JsonObject } from '../../lib/json/json.ts';
import { memberOf, put } from '../../lib/json/json-members.ts';
import { isSchema, resolve, type Schema } from '../../lib/json/json-schema-parts.ts';
import { spend, withinEffort } from './effort.ts';
import { fitsPattern, satisfies } from './fits.ts';
import { samplePattern } from './sample-pattern.ts';
import { sampleNumber, sampleString } from './sample-scalar.ts';
import { mergeSchemas } from './schema-merge.ts';

export interface SampleOptions {
  /** Optional properties too (structured output) or only what is required (tool arguments). */
  readonly optional?: boolean;
  /**
   * Values to try first for a property; the first one that its schema allows is taken, and an
   * optional property that gets one is put in.
   */
  readonly prefer?: (name: string, schema: JsonObject, required: boolean) => readonly Json[];
}

interface Walk extends SampleOptions {
  readonly root: Schema;
  /** Calls left: schemas that branch without end are given up, not walked for ever. */
  budget: number;
}

interface Place {
  readonly name: string;
  readonly required: boolean;
  /** References being followed: what comes up again is recursive and is avoided where possible. */
  readonly refs: readonly string[];
  readonly variant: number;
}

const DEPTH = 12;
/** Units of work for one value. */
const EFFORT = 50_000;

/** A value that satisfies the schema, or undefined where none was found. Same schema, same value. */
export function sampleSchema(schema: Schema, options: SampleOptions = {}): Json | undefined {
  const walk: Walk = { ...options, root: schema, budget: 20_000 };
  return withinEffort(EFFORT, () =>
    make(schema, { name: '', required: true, refs: [], variant: 0 }, walk),
  );
}

const list = (value: unknown): readonly Schema[] | undefined =>
  Array.isArray(value) ? value.filter(isSchema) : undefined;
const without = (schema: JsonObject, ...keys: string[]): JsonObject =>
  Object.fromEntries(Object.entries(schema).filter(([key]) => !keys.includes(key)));

function make(schema: Schema, outer: Place, walk: Walk): Json | undefined {
  if (schema === false || walk.budget-- <= 0) return undefined;
  spend();
  const s: JsonObject = schema === true ? {} : schema;
  // A named schema is being built from here on: recursive types inside each other would multiply otherwise.
  const named = typeof s.$id === 'string' && !outer.refs.includes(s.$id) ? s.$id : undefined;
  const place = named === undefined ? outer : { ...outer, refs: [...outer.refs, named] };
  const fits = (value: Json | undefined): value is Json =>
    value !== undefined && satisfies(value, s, walk.root);
  const wished = place.name === '' ? [] : (walk.prefer?.(place.name, s, place.required) ?? []);
  for (const value of wished) if (fits(value)) return value;
  if ('const' in s) return s.const;
  if (Array.isArray(s.enum)) {
    const allowed = s.enum.filter(fits);
    return allowed[place.variant % Math.max(1, allowed.length)];
  }
  if (place.variant === 0) {
    const known = [s.default, ...(Array.isArray(s.examples) ? s.examples : [])];
    for (const value of known) if (value !== null && fits(value)) return value;
  }
  // What one merge cannot say stays in `allOf`: branches carry it on, and `fits` checks it.
  const whole = mergeSchemas(flatten(s));
  if (typeof whole === 'boolean') return undefined;
  if (typeof whole.$ref === 'string') {
    const value = makeRef(whole, whole.$ref, place, walk);
    return fits(value) ? value : undefined;
  }
  for (const value of branches(whole, place, walk)) if (fits(value)) return value;
  if (whole.anyOf !== undefined || whole.oneOf !== undefined) return undefined;
  for (const type of typesOf(whole)) {
    const value = makeType(type, without(whole, 'allOf'), place, walk);
    if (fits(value)) return value;
  }
  return undefined;
}

/** The schema and all that stands in its `allOf`, at any depth. */
function flatten(s: JsonObject): readonly Schema[] {
  const out: Schema[] = [];
  const open: Schema[] = [s];
  for (let one = open.pop(); one !== undefined; one = open.pop()) {
    const all = typeof one === 'boolean' ? undefined : list(one.allOf);
    spend(1 + (all?.length ?? 0));
    out.push(all === undefined ? one : without(one as JsonObject, 'allOf'));
    if (all !== undefined) open.push(...all.toReversed());
  }
  return out;
}

function makeRef(s: JsonObject, ref: string, place: Place, walk: Walk): Json | undefined {
  spend(ref.length);
  const target = resolve(ref, walk.root);
  if (target === undefined || place.refs.length >= DEPTH) return undefined;
  const beside = without(s, '$ref', 'description', 'title', '$defs', 'definitions', '$schema');
  const next = Object.keys(beside).length > 0 ? mergeSchemas([target, beside]) : target;
  return make(next, { ...place, refs: [...place.refs, ref] }, walk);
}

/** Values by way of anyOf, oneOf and if/then/else, lazily: the first branch first, recursive ones last. */
function* branches(s: JsonObject, place: Place, walk: Walk): Generator<Json | undefined> {
  for (const key of ['anyOf', 'oneOf']) {
    const options = list(s[key]);
    if (!options) continue;
    spend(options.length);
    const again = (one: Schema) => (leadsBack(one, place.refs, 2) ? 1 : 0);
    const ordered = options.toSorted((a, b) => again(a) - again(b));
    const turned = [...ordered.slice(place.variant), ...ordered.slice(0, place.variant)];
    // A value of one `oneOf` branch may satisfy another one too: then the next value of it is tried.
    const tries = key === 'oneOf' ? 8 : 1;
    for (const one of turned) {
      const merged = mergeSchemas([without(s, key), one]);
      for (let i = 0; i < tries; i++) {
        yield make(merged, { ...place, variant: place.variant + i }, walk);
      }
    }
  }
  if (!isSchema(s.if)) return;
  const rest = without(s, 'if', 'then', 'else');
  yield make(mergeSchemas([rest, s.if, isSchema(s.then) ? s.then : true]), place, walk);
  yield make(mergeSchemas([rest, isSchema(s.else) ? s.else : true]), place, walk);
}

/** Whether the schema, near its top, refers to something that is being built already. */
function leadsBack(schema: Schema, refs: readonly string[], depth: number): boolean {
  spend();
  if (typeof schema === 'boolean' || depth < 0) return false;
  if (typeof schema.$ref === 'string') return refs.includes(schema.$ref) || schema.$ref === '#';
  const properties = isObject(schema.properties) ? Object.values(schema.properties) : [];
  const inner = [
    schema.items,
    ...properties,
    ...['anyOf', 'oneOf', 'allOf'].flatMap((k) => list(schema[k]) ?? []),
  ];
  return inner.some((one) => isSchema(one) && leadsBack(one, refs, depth - 1));
}

function typesOf(s: JsonObject): readonly string[] {
  if (typeof s.type === 'string') return [s.type];
  if (Array.isArray(s.type)) return s.type.map(String);
  if (isObject(s.properties) || s.required || s.additionalProperties || s.minProperties)
    return ['object'];
  if (s.items || s.prefixItems || s.minItems || s.contains) return ['array'];
  if ('minimum' in s || 'maximum' in s || 'multipleOf' in s || 'exclusiveMinimum' in s)
    return ['number'];
  return ['string', 'object', 'number', 'array', 'boolean', 'null'];
}

function makeType(type: string, s: JsonObject, place: Place, walk: Walk): Json | undefined {
  switch (type) {
    case 'null':
      return null;
    case 'boolean':
      return place.variant % 2 === 0;
    case 'string':
      return sampleString(s, place.name, place.variant);
    case 'integer':
    case 'number':
      return sampleNumber(s, type === 'integer', place.variant);
    case 'array':
      return makeArray(s, place, walk);
    default:
      return makeObject(s, place, walk);
  }
}

function makeArray(s: JsonObject, place: Place, walk: Walk): Json | undefined {
  const tuple = list(Array.isArray(s.items) ? s.items : s.prefixItems) ?? [];
  const beyond = Array.isArray(s.items) ? s.additionalItems : s.items;
  const rest: Schema = isSchema(beyond) ? beyond : true;
  const min = typeof s.minItems === 'number' ? s.minItems : 0;
  const max = typeof s.maxItems === 'number' ? s.maxItems : Number.POSITIVE_INFINITY;
  const wanted = leadsBack(rest, place.refs, 2) || s.items === undefined ? min : Math.max(min, 1);
  const count = Math.min(max, tuple.length > 0 ? Math.max(tuple.length, min) : wanted);
  const contains = isSchema(s.contains) ? Math.max(1, Number(s.minContains ?? 1)) : 0;
  const out: Json[] = [];
  for (let i = 0; i < Math.max(count, contains); i++) {
    const own = tuple[i] ?? rest;
    const item = i < contains ? mergeSchemas([own, s.contains as Schema]) : own;
    const variant = s.uniqueItems === true ? place.variant + i : place.variant;
    const value = make(item, { ...place, required: true, variant }, walk);
    if (value === undefined) return out.length >= min ? out : undefined;
    out.push(value);
  }
  return out;
}

function makeObject(s: JsonObject, place: Place, walk: Walk): Json | undefined {
  const properties = isObject(s.properties) ? s.properties : {};
  const required = new Set(Array.isArray(s.required) ? s.required.map(String) : []);
  const dependent = isObject(s.dependentRequired) ? s.dependentRequired : {};
  const max = typeof s.maxProperties === 'number' ? s.maxProperties : Number.POSITIVE_INFINITY;
  const min = typeof s.minProperties === 'number' ? s.minProperties : 0;
  const out: Record<string, Json> = {};
  const fill = (key: string, must: boolean): boolean => {
    if (Object.hasOwn(out, key)) return true;
    const schema = mergeSchemas(propertySchemas(key, s, walk.root));
    const value = make(schema, { ...place, name: key, required: must }, walk);
    if (value === undefined) return !must;
    put(out, key, value);
    const needs = memberOf(dependent, key);
    return !Array.isArray(needs) || needs.every((need) => fill(String(need), true));
  };
  for (const key of new Set([...Object.keys(properties), ...required])) {
    const schema = memberOf(properties, key);
    const room =
      max === Number.POSITIVE_INFINITY ||
      Object.keys(out).length + [...required].filter((k) => !Object.hasOwn(out, k)).length < max;
    spend(max === Number.POSITIVE_INFINITY ? 1 : required.size);
    if (required.has(key)) {
      if (!fill(key, true)) return undefined;
    } else if (room && isSchema(schema) && wantsOptional(key, schema, place, walk))
      fill(key, false);
  }
  for (const key of spareKeys(s, properties)) {
    if (Object.keys(out).length >= min) break;
    fill(key, false);
  }
  return out;
}

/** The schemas that speak of one property, `additionalProperties` included. */
function propertySchemas(key: string, s: JsonObject, root: Schema): readonly Schema[] {
  const found: Schema[] = [];
  const named = isObject(s.properties) ? memberOf(s.properties, key) : undefined;
  if (isSchema(named)) found.push(named);
  const patterns = isObject(s.patternProperties) ? Object.entries(s.patternProperties) : [];
  for (const [pattern, schema] of patterns) {
    if (isSchema(schema) && fitsPattern(pattern, key, root) === true) found.push(schema);
  }
  if (found.length === 0 && isSchema(s.additionalProperties)) found.push(s.additionalProperties);
  return found;
}

function wantsOptional(key: string, schema: Schema, place: Place, walk: Walk): boolean {
  if (typeof schema === 'boolean') return false;
  if (walk.optional && place.refs.length < 3 && !leadsBack(schema, place.refs, 2)) return true;
  const wished = walk.prefer?.(key, schema, false) ?? [];
  return wished.some((value) => satisfies(value, schema, walk.root));
}

/** Names for properties that `minProperties` demands and the schema does not name. */
function* spareKeys(s: JsonObject, properties: JsonObject): Generator<string> {
  yield* Object.keys(properties);
  const patterns = isObject(s.patternProperties) ? Object.keys(s.patternProperties) : [];
  for (let i = 0; i < 20; i++) {
    for (const pattern of patterns) {
      const key = samplePattern(pattern, i);
      if (key !== undefined) yield key;
    }
    const name = isObject(s.propertyNames) ? sampleString(s.propertyNames, '', i) : `demo${i + 1}`;
    if (s.additionalProperties !== false && name !== undefined) yield name;
  }
}
