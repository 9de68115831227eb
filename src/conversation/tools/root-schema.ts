/** Rewrites tool schemas for vendors that require a plain object at the root. */

import { isObject, type Json, type JsonObject } from '../../lib/json/json.ts';
import { putAll } from '../../lib/json/json-members.ts';
import type { Notes } from '../notes.ts';
import type { Profile } from '../profile-facts.ts';
import { bareSchema } from './bare-schema.ts';
import { soundSchema } from './sound-schema.ts';

const UNIONS = ['anyOf', 'oneOf', 'allOf'] as const;

/** Does the root hold anyOf, oneOf or allOf, or (with `values`) enum or not? */
export function hasRootUnion(schema: JsonObject, values: boolean): boolean {
  if (UNIONS.some((key) => Array.isArray(schema[key]))) return true;
  return values && (schema.enum !== undefined || schema.not !== undefined);
}

/** The schema with `type: object` and properties at its root; vendors refuse other schemas. */
export function rootSchema(schema: JsonObject | undefined): JsonObject {
  if (schema === undefined) return { type: 'object', properties: {} };
  const { type, properties } = schema;
  if (type === 'object' && isObject(properties)) return schema;
  return { ...schema, type: 'object', properties: isObject(properties) ? properties : {} };
}

/** A tool's schema in the form that the vendor accepts, with a note of what that takes. */
export function toolSchema(
  schema: JsonObject | undefined,
  profile: Profile,
  notes: Notes,
  where: string,
): JsonObject | undefined {
  return plainRoot(schema && soundSchema(schema, notes, where), profile, notes, where);
}

/** The same for a schema of the target's own protocol, which may be any that its vendor takes. */
export function plainRoot(
  schema: JsonObject | undefined,
  profile: Profile,
  notes: Notes,
  where: string,
): JsonObject | undefined {
  if (schema === undefined) return schema;
  const bare = profile.schemaBounds === false ? bareSchema(schema) : schema;
  if (bare !== schema) notes.add('schema_simplified', where, 'without patterns and bounds');
  if (profile.rootUnions !== false || !hasRootUnion(bare, true)) return bare;
  notes.add('schema_simplified', where, 'anyOf, oneOf, allOf, enum or not at the root');
  return withoutRootUnion(bare);
}

/**
 * The schema with the properties of all branches in one object. Required are the keys that every
 * alternative requires, and those that any member of `allOf` requires.
 */
export function withoutRootUnion(schema: JsonObject): JsonObject {
  const { anyOf, oneOf, allOf, enum: _enum, not: _not, ...rest } = schema;
  const list = (value: Json | undefined) => (Array.isArray(value) ? value.filter(isObject) : []);
  const required = (branch: JsonObject) =>
    Array.isArray(branch.required) ? branch.required.filter((key) => typeof key === 'string') : [];
  const every = list(allOf);
  const some = [...list(anyOf), ...list(oneOf)];
  const properties: Record<string, Json | undefined> = {};
  for (const branch of [...some, ...every, rest]) {
    if (isObject(branch.properties)) putAll(properties, branch.properties);
  }
  let common: readonly string[] | undefined;
  for (const branch of some) {
    const keys = new Set(required(branch));
    common = common === undefined ? [...keys] : common.filter((key) => keys.has(key));
  }
  const needed = [...new Set([...required(rest), ...every.flatMap(required), ...(common ?? [])])];
  return {
    ...rest,
    type: 'object',
    properties,
    ...(needed.length > 0 ? { required: needed } : {}),
  };
}
