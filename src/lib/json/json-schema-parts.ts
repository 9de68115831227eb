/** Parts of JSON Schema that checks of schemas and of values share: references, patterns, types. */

import { type LinearPattern, linearPattern } from '../text/linear-pattern.ts';
import { isObject, type Json, type JsonObject } from './json.ts';
import { memberOf } from './json-members.ts';

export const TYPES = new Set(['null', 'boolean', 'object', 'array', 'number', 'integer', 'string']);

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

/** A local reference: `#`, a pointer (`#/…`), an `$anchor` or an `$id` of the document. */
export function resolve(ref: string, root: JsonObject): Schema | undefined {
  if (ref === '#' || ref === '') return root;
  if (!ref.startsWith('#/')) return named(ref, root);
  let at: Json | undefined = root;
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

function named(ref: string, root: JsonObject): JsonObject | undefined {
  const waiting: Json[] = [root];
  for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) {
    if (typeof node !== 'object' || node === null) continue;
    if (isObject(node) && (node.$id === ref || `#${String(node.$anchor)}` === ref)) return node;
    for (const child of Object.values(node as Readonly<Record<string, Json>>)) waiting.push(child);
  }
  return undefined;
}

/** Compiled patterns. Schemas come from the operator, so there are few. */
const patterns = new Map<string, LinearPattern>();

/** @throws UnfitPattern */
export function patternOf(source: string): LinearPattern {
  let pattern = patterns.get(source);
  if (pattern === undefined) {
    pattern = linearPattern(source);
    if (patterns.size < 1000) patterns.set(source, pattern);
  }
  return pattern;
}
