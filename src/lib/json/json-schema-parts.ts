/** Parts of JSON Schema that checks of schemas and of values share: references, patterns, types. */

import { type LinearPattern, linearPattern, UnfitPattern } from '../text/linear-pattern.ts';
import { wordSet } from '../text/words.ts';
import { isObject, type Json, type JsonObject } from './json.ts';
import { memberOf } from './json-members.ts';

export const TYPES = new Set(['null', 'boolean', 'object', 'array', 'number', 'integer', 'string']);

/** Keywords whose value is a schema. */
export const WITH_SCHEMA = wordSet(`
  additionalProperties propertyNames items additionalItems contains not if then else
  unevaluatedItems unevaluatedProperties`);
/** A list of schemas. */
export const WITH_SCHEMAS = wordSet('allOf anyOf oneOf prefixItems');
/** Schemas by name. */
export const WITH_NAMED_SCHEMAS = wordSet(`
  properties patternProperties dependentSchemas $defs definitions`);

export type Schema = JsonObject | boolean;
export const isSchema = (value: unknown): value is Schema =>
  typeof value === 'boolean' || isObject(value);

/** Is it of a `type`, which is a name or a list of names? A name that is not known fits everything. */
export function hasType(value: Json, type: unknown): boolean {
  if (Array.isArray(type)) return type.some((one) => hasType(value, one));
  switch (type) {
    case 'null':
      return value === null;
    case 'array':
      return Array.isArray(value);
    case 'object':
      return isObject(value);
    case 'integer':
      return Number.isInteger(value);
    default:
      return typeof value === type || !TYPES.has(type as string);
  }
}

/** The compiled parts of a schema document, cached for its lifetime. */
interface Compiled {
  readonly patterns: Map<string, LinearPattern | UnfitPattern>;
  named?: ReadonlyMap<string, JsonObject>;
}
const documents = new WeakMap<object, Compiled>();

function compiledOf(root: Schema): Compiled {
  // A boolean holds no patterns and no names.
  if (typeof root === 'boolean') return { patterns: new Map() };
  let compiled = documents.get(root);
  if (compiled === undefined) {
    compiled = { patterns: new Map() };
    documents.set(root, compiled);
  }
  return compiled;
}

/** A local reference: `#`, a pointer (`#/…`), an `$anchor` or an `$id` of the document. */
export function resolve(ref: string, root: Schema): Schema | undefined {
  if (ref === '#' || ref === '') return root;
  if (!ref.startsWith('#/')) {
    const compiled = compiledOf(root);
    compiled.named ??= namesIn(root);
    return compiled.named.get(ref);
  }
  let at: Json | undefined = root as Json;
  for (const part of ref.slice(2).split('/')) {
    let key: string;
    try {
      key = decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~');
    } catch {
      return undefined;
    }
    if (typeof at !== 'object' || at === null) return undefined;
    at = memberOf(at as JsonObject, key);
  }
  return isSchema(at) ? at : undefined;
}

function namesIn(root: Schema): ReadonlyMap<string, JsonObject> {
  const named = new Map<string, JsonObject>();
  const waiting: Json[] = [root as Json];
  for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) {
    if (typeof node !== 'object' || node === null) continue;
    if (isObject(node)) {
      if (typeof node.$id === 'string') named.set(node.$id, node);
      if (typeof node.$anchor === 'string') named.set(`#${node.$anchor}`, node);
    }
    for (const child of Object.values(node as Readonly<Record<string, Json>>)) waiting.push(child);
  }
  return named;
}

/**
 * The compiled pattern of a schema document.
 * @throws UnfitPattern
 */
export function patternOf(source: string, root: Schema): LinearPattern {
  const { patterns } = compiledOf(root);
  let pattern = patterns.get(source);
  if (pattern === undefined) {
    try {
      pattern = linearPattern(source);
    } catch (thrown) {
      if (!(thrown instanceof UnfitPattern)) throw thrown;
      pattern = thrown;
    }
    patterns.set(source, pattern);
  }
  if (pattern instanceof UnfitPattern) throw pattern;
  return pattern;
}
