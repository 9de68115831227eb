/** Field checks with OpenAI's messages, shared by its two protocols. */

import type { Json } from '../../../src/lib/json/json.ts';
import { type Fields, hasType } from './check-schema.ts';
import { isRecord, refuseWith } from './refusal.ts';

const WANTED: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a decimal',
  integer: 'an integer',
  boolean: 'a boolean',
  array: 'an array',
  object: 'an object',
};

function nameOf(value: Json | undefined): string {
  if (value === null || value === undefined) return 'null';
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'object') return 'an object';
  if (typeof value === 'number') return Number.isInteger(value) ? 'an integer' : 'a decimal';
  return `a ${typeof value}`;
}

/** @throws Refusal unless `value` has the type */
export function expectType(value: Json | undefined, type: string, at: string): void {
  if (hasType(value, type)) return;
  const wanted = WANTED[type.replace('?', '')] ?? type;
  refuseWith(
    `Invalid type for '${at}': expected ${wanted}, but got ${nameOf(value)} instead.`,
    at,
    'invalid_type',
  );
}

/** Unknown and ill-typed members, then missing ones (`required`). */
export function expectFields(
  value: Record<string, Json>,
  fields: Fields,
  required: readonly string[],
  at: string,
  lenient = false,
): void {
  const path = (key: string) => (at === '' ? key : `${at}.${key}`);
  for (const [key, member] of Object.entries(value)) {
    const type = fields[key];
    if (type === undefined) {
      if (lenient) continue;
      refuseWith(`Unknown parameter: '${path(key)}'.`, path(key), 'unknown_parameter');
    }
    expectType(member, type, path(key));
  }
  for (const key of required) {
    if (value[key] !== undefined) continue;
    refuseWith(
      `Missing required parameter: '${path(key)}'.`,
      path(key),
      'missing_required_parameter',
    );
  }
}

/** @throws Refusal unless `value` is one of the values */
export function expectOneOf(value: Json | undefined, values: readonly string[], at: string): void {
  if (typeof value === 'string' && values.includes(value)) return;
  const all = values.map((one) => `'${one}'`);
  const list = all.length < 2 ? all.join('') : `${all.slice(0, -1).join(', ')}, and ${all.at(-1)}`;
  const shown = typeof value === 'string' ? `'${value}'` : JSON.stringify(value);
  refuseWith(`Invalid value: ${shown}. Supported values are: ${list}.`, at, 'invalid_value');
}

/** @throws Refusal unless `value` is absent, null or within the bounds */
export function expectRange(value: Json | undefined, at: string, min: number, max: number): void {
  if (typeof value !== 'number') return;
  const kind = Number.isInteger(min) && at.includes('tokens') ? 'integer' : 'decimal';
  if (value < min) {
    refuseWith(
      `Invalid '${at}': ${kind} below minimum value. Expected a value >= ${min}, but got ${value} instead.`,
      at,
      `${kind}_below_min_value`,
    );
  }
  if (value > max) {
    refuseWith(
      `Invalid '${at}': ${kind} above maximum value. Expected a value <= ${max}, but got ${value} instead.`,
      at,
      `${kind}_above_max_value`,
    );
  }
}

/** @throws Refusal when a string is longer than the vendor accepts */
export function expectLength(value: Json | undefined, max: number, at: string): void {
  if (typeof value !== 'string' || value.length <= max) return;
  refuseWith(
    `Invalid '${at}': string too long. Expected a string with maximum length ${max}, but got a string with length ${value.length} instead.`,
    at,
    'string_above_max_length',
  );
}

/** @throws Refusal unless the id of a call, if there is one, is 1 to 64 characters long */
export function expectId(value: Json | undefined, at: string): void {
  if (value === '') refuseWith(`Invalid '${at}': empty string.`, at, 'empty_string');
  expectLength(value, 64, at);
}

/** @throws Refusal when an array that must not be empty is empty */
export function expectFilled(value: readonly Json[], at: string): void {
  if (value.length > 0) return;
  refuseWith(
    `Invalid '${at}': empty array. Expected an array with minimum length 1, but got an empty array instead.`,
    at,
    'empty_array',
  );
}

/** @throws Refusal when an array is longer than the vendor accepts */
export function expectAtMost(value: readonly Json[], max: number, at: string): void {
  if (value.length <= max) return;
  refuseWith(
    `Invalid '${at}': array too long. Expected an array with maximum length ${max}, but got an array with length ${value.length} instead.`,
    at,
    'array_above_max_length',
  );
}

const NAME = /^[a-zA-Z0-9_-]+$/;

/** A function's (or message's) name. */
export function expectName(value: Json | undefined, at: string): void {
  expectType(value, 'string', at);
  expectLength(value, 64, at);
  if (NAME.test(String(value))) return;
  refuseWith(
    `Invalid '${at}': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.`,
    at,
    'invalid_value',
  );
}

/** A function's schema: an object at the root; in strict mode closed and with every property required. */
export function expectSchema(
  schema: Json | undefined,
  strict: boolean,
  name: string,
  at: string,
): void {
  if (schema === undefined || schema === null) return;
  const bad = (why: string): never =>
    refuseWith(`Invalid schema for function '${name}': ${why}`, at, 'invalid_function_parameters');
  expectType(schema, 'object', at);
  if (!isRecord(schema)) return;
  if (schema.type !== 'object') {
    const got = typeof schema.type === 'string' ? schema.type : 'None';
    bad(`schema must be a JSON Schema of 'type: "object"', got 'type: "${got}"'.`);
  }
  if (schema.properties !== undefined && !isRecord(schema.properties)) {
    bad(`${JSON.stringify(schema.properties)} is not of type 'object'.`);
  }
  if (!strict) return;
  if (schema.additionalProperties !== false) {
    bad("In context=(), 'additionalProperties' is required to be supplied and to be false.");
  }
  const required = Array.isArray(schema.required) ? schema.required : [];
  for (const key of Object.keys((schema.properties ?? {}) as object)) {
    if (required.includes(key)) continue;
    bad(
      `In context=(), 'required' is required to be supplied and to be an array including every key in properties. Missing '${key}'.`,
    );
  }
}
