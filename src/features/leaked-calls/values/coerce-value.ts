/** Converts an argument that came as plain text to the type that the tool's schema declares. */

import { isObject, type Json, type JsonObject, parseExact } from '../../../lib/json/json.ts';
import { memberOf } from '../../../lib/json/json-members.ts';
import { pythonLiteral } from './python-literal.ts';

type JsonType = 'null' | 'integer' | 'number' | 'boolean' | 'object' | 'array' | 'string';

/** Rules of a vendor's own parser beyond the common ones. */
interface ValueDialect {
  /** Words for null; with `anyCase` in upper or lower case. */
  readonly nulls?: readonly string[];
  readonly anyCase?: true;
  /** yes/on/no/off are booleans. */
  readonly yesNo?: true;
  /** Any text other than true and 1 is false. */
  readonly elseFalse?: true;
  /** Quotes around a string argument are JSON quotes. */
  readonly unquotes?: true;
}

const DIALECTS: Readonly<Record<string, ValueDialect>> = {
  'minimax-m2': { nulls: ['null', 'none', 'nil'], anyCase: true, yesNo: true },
  'minimax-m3': { nulls: ['null', 'Null', 'NULL'] },
  qwen: { elseFalse: true },
  glm: { unquotes: true },
};

export const dialectOf = (family: string): ValueDialect => DIALECTS[family] ?? {};

// Aliases and order of types as in vLLM.
const ORDER: readonly JsonType[] = [
  'null',
  'integer',
  'number',
  'boolean',
  'object',
  'array',
  'string',
];
const ALIASES: readonly [RegExp, JsonType][] = [
  [/^(?:string|str|text|varchar|char|enum)$/, 'string'],
  [/^(?:int.*|uint.*|long|short|unsigned.*)$/, 'integer'],
  [/^(?:number|num.*|float.*|double)$/, 'number'],
  [/^(?:boolean|bool|binary)$/, 'boolean'],
  [/^(?:object|dict.*)$/, 'object'],
  [/^(?:array|arr.*|list.*|sequence)$/, 'array'],
  [/^null$/, 'null'],
];

/** Cache keyed by the schema object, which all calls of a tool share. */
const typesBySchema = new WeakMap<object, ReadonlySet<JsonType>>();

/**
 * The types that a property's schema allows by `type`, `enum`, `const`, `anyOf`, `oneOf` and `allOf`.
 * References within `root` are followed. An empty set means any type. Each schema is read once, however
 * many references lead to it.
 */
function typesOf(schema: Json | undefined, root: JsonObject): ReadonlySet<JsonType> {
  if (!isObject(schema)) return ANYTHING;
  const before = typesBySchema.get(schema);
  if (before !== undefined) return before;
  const types = new Set<JsonType>();
  const seen = new Set<JsonObject>();
  const waiting: (Json | undefined)[] = [schema];
  for (let one = waiting.pop(); one !== undefined; one = waiting.pop()) {
    if (!isObject(one) || seen.has(one)) continue;
    seen.add(one);
    if (typeof one.$ref === 'string') {
      const named = resolve(one.$ref, root);
      if (named !== undefined) waiting.push(named);
    } else addTypes(types, one, waiting);
  }
  typesBySchema.set(schema, types);
  return types;
}

const ANYTHING: ReadonlySet<JsonType> = new Set();

/** Adds the types that one schema declares; its subschemas go to `waiting`. */
function addTypes(types: Set<JsonType>, schema: JsonObject, waiting: (Json | undefined)[]): void {
  let declared = false;
  const add = (type: JsonType) => {
    declared = true;
    types.add(type);
  };
  const named = Array.isArray(schema.type) ? (schema.type as readonly Json[]) : [schema.type];
  for (const name of named) {
    if (typeof name !== 'string' || name.length > MAX_TYPE) continue;
    const type = ALIASES.find(([pattern]) => pattern.test(name.toLowerCase()))?.[1];
    if (type !== undefined) add(type);
  }
  const values = Array.isArray(schema.enum) ? (schema.enum as readonly Json[]) : [];
  for (const value of values) add(typeOfValue(value));
  if (schema.const !== undefined) add(typeOfValue(schema.const));
  for (const key of ['anyOf', 'oneOf', 'allOf'] as const) {
    const branches = schema[key];
    if (!Array.isArray(branches) || branches.length === 0) continue;
    declared = true;
    for (const branch of branches as readonly Json[]) waiting.push(branch);
  }
  if (!declared && isObject(schema.properties)) types.add('object');
  else if (!declared && isObject(schema.items)) types.add('array');
}

/** Longer names of types are ignored. */
const MAX_TYPE = 64;

function typeOfValue(value: Json): JsonType {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number';
  return typeof value === 'object' ? 'object' : (typeof value as 'string' | 'boolean');
}

function resolve(reference: string, root: JsonObject): Json | undefined {
  if (!reference.startsWith('#/')) return undefined;
  let here: Json | undefined = root;
  for (const part of reference.slice(2).split('/')) {
    if (!isObject(here)) return undefined;
    here = memberOf(here, part.replaceAll('~1', '/').replaceAll('~0', '~'));
  }
  return here;
}

/**
 * The text as the first type that fits, in the order null, integer, number, boolean, object, array, string.
 * If none of the schema's types fits, the text is parsed as JSON, and kept as it is if that fails. Without a
 * schema the text is kept.
 */
export function coerceValue(
  text: string,
  schema: Json | undefined,
  root: JsonObject,
  dialect: ValueDialect = {},
): Json {
  const types = typesOf(schema, root);
  if (types.size === 0) return text;
  const trimmed = text.trim();
  for (const type of ORDER) {
    if (!types.has(type)) continue;
    const value = readAs(type, text, trimmed, dialect);
    if (value !== undefined) return value;
  }
  // A number too large for a double stays text.
  const number = Number(trimmed);
  if (trimmed !== '' && !Number.isNaN(number) && !Number.isFinite(number)) return text;
  return jsonValue(trimmed) ?? text;
}

function readAs(
  type: JsonType,
  text: string,
  trimmed: string,
  dialect: ValueDialect,
): Json | undefined {
  switch (type) {
    case 'null': {
      const words = dialect.nulls ?? ['null'];
      const word = dialect.anyCase ? trimmed.toLowerCase() : trimmed;
      return words.includes(word) ? null : undefined;
    }
    case 'integer':
      return /^[-+]?\d+$/.test(trimmed) ? exactNumber(trimmed) : undefined;
    case 'number': {
      if (!/^[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?$/.test(trimmed)) return undefined;
      const value = Number(trimmed);
      if (!Number.isFinite(value)) return undefined;
      return Number.isSafeInteger(value) ? value : exactNumber(trimmed);
    }
    case 'boolean': {
      const word = trimmed.toLowerCase();
      if (word === 'true' || word === '1') return true;
      if (word === 'false' || word === '0') return false;
      if (dialect.yesNo && (word === 'yes' || word === 'on')) return true;
      if (dialect.yesNo && (word === 'no' || word === 'off')) return false;
      return dialect.elseFalse ? false : undefined;
    }
    case 'object':
    case 'array': {
      if (!trimmed.startsWith(type === 'object' ? '{' : '[')) return undefined;
      return jsonValue(trimmed) ?? pythonLiteral(trimmed);
    }
    case 'string': {
      const quoted = dialect.unquotes && /^"[\s\S]*"$/.test(trimmed);
      const value = quoted ? jsonValue(trimmed) : undefined;
      return typeof value === 'string' ? value : text;
    }
  }
}

/** A number; kept as written if a double would change it. */
function exactNumber(text: string): Json {
  const value = Number(text);
  if (Number.isSafeInteger(value)) return value;
  return jsonValue(text.replace(/^\+/, '').replace(/^(-?)0+(?=\d)/, '$1')) ?? value;
}

/** Parses JSON and keeps numbers as written; undefined if the text is no JSON (NaN and Infinity are not). */
export function jsonValue(text: string): Json | undefined {
  try {
    return parseExact(text);
  } catch {
    return undefined;
  }
}
