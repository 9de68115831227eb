/** Does a value satisfy a JSON Schema? The keywords that tools and structured outputs use. */

import { isObject, type Json, type JsonObject } from '../../lib/json/json.ts';
import { memberOf } from '../../lib/json/json-members.ts';
import { hasType, isSchema, type Schema } from '../../lib/json/json-schema-parts.ts';
import { spend } from './effort.ts';

/** Follows a local reference: `#`, `#/…` pointers, and `$id`/`$anchor` names anywhere in the document. */
export function resolveRef(ref: string, root: Schema): Schema | undefined {
  if (ref === '#') return root;
  if (!ref.startsWith('#/')) return byName(ref, root);
  let at: Json | undefined = root as Json;
  spend(ref.length);
  for (const part of ref.slice(2).split('/')) {
    const key = decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~');
    at = typeof at === 'object' && at !== null ? memberOf(at as JsonObject, key) : undefined;
  }
  return isSchema(at) ? at : undefined;
}

function byName(ref: string, node: Json): JsonObject | undefined {
  spend(0.2);
  if (typeof node !== 'object' || node === null) return undefined;
  if (isObject(node) && (node.$id === ref || `#${String(node.$anchor)}` === ref)) return node;
  for (const child of Object.values(node as Record<string, Json>)) {
    const found = byName(ref, child);
    if (found) return found;
  }
  return undefined;
}

/** Equality of JSON values; the order of keys does not matter. */
export function sameJson(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  spend();
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const keys = Object.keys(a);
  return (
    keys.length === Object.keys(b).length &&
    keys.every((k) => Object.hasOwn(b, k) && sameJson((a as JsonObject)[k], (b as JsonObject)[k]))
  );
}

const num = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined);
const list = (value: unknown): readonly Schema[] =>
  Array.isArray(value) ? value.filter(isSchema) : [];

/** Characters of a pattern that is looked at. */
const LONGEST_PATTERN = 500;
/** Repetitions of a group: the engine's work can double, or more, with each character that it reads. */
const GROUPS = /\)(?:[+*]|\{\d*,)/g;
/** Other repetitions without an end: the work grows with a power of the text. */
const REPETITIONS = /[+*]|\{\d*,\}/g;
/** Characters of a text that a pattern is held against, by how many repetitions it has. */
const MOST_BY_GROUPS = [undefined, 16, 12];
const MOST_BY_REPETITIONS = [10_000, 2000, 400, 100];
const MOST_OTHERWISE = 32;
const MOST_TIMES = 10_000_000;

/** A pattern as a regular expression; undefined where this engine cannot read it, or could take too long over it. */
export function patternOf(source: unknown): RegExp | undefined {
  if (typeof source !== 'string' || source.length > LONGEST_PATTERN) return undefined;
  spend(10 + source.length / 4);
  if (countOf(GROUPS, source) >= MOST_BY_GROUPS.length || timesIn(source) > MOST_TIMES) {
    return undefined;
  }
  for (const flags of ['u', '']) {
    try {
      return new RegExp(source, flags);
    } catch {
      // Tried again without `u`, which is laxer about escapes.
    }
  }
  return undefined;
}

/** How often a pattern repeats its parts at least, all counts within each other: engines do that even for nothing. */
const timesIn = (source: string): number =>
  [...source.matchAll(/\{(\d+)(?:,(\d*))?\}/g)].reduce(
    (product, [, least, most]) => product * Math.max(1, Number(most || least)),
    1,
  );

const countOf = (what: RegExp, source: string) => source.match(what)?.length ?? 0;

/**
 * Whether a text fits a pattern; undefined where nothing is known of the pattern. A text too long for it
 * to be tried does not fit.
 */
function fitsPattern(source: unknown, text: string): boolean | undefined {
  const pattern = patternOf(source);
  if (pattern === undefined) return undefined;
  const groups = countOf(GROUPS, pattern.source);
  const repetitions = countOf(REPETITIONS, pattern.source);
  const most = MOST_BY_GROUPS[groups] ?? MOST_BY_REPETITIONS[repetitions] ?? MOST_OTHERWISE;
  spend(groups > 0 ? 100 : text.length / 20);
  return text.length <= most && pattern.test(text);
}

function checkNumber(value: number, s: JsonObject): boolean {
  const min = num(s.minimum) ?? Number.NEGATIVE_INFINITY;
  const max = num(s.maximum) ?? Number.POSITIVE_INFINITY;
  // `true` is draft 4's way to say that the bound itself is out.
  if (value < min || (s.exclusiveMinimum === true && value === min)) return false;
  if (value > max || (s.exclusiveMaximum === true && value === max)) return false;
  if (value <= (num(s.exclusiveMinimum) ?? Number.NEGATIVE_INFINITY)) return false;
  if (value >= (num(s.exclusiveMaximum) ?? Number.POSITIVE_INFINITY)) return false;
  const step = num(s.multipleOf);
  if (step === undefined || step <= 0) return true;
  // The remainder of integers is exact, the quotient of fractions nearly always.
  return Number.isInteger(step) ? value % step === 0 : Number.isInteger(value / step);
}

function checkString(value: string, s: JsonObject): boolean {
  spend(value.length / 20);
  const length = [...value].length;
  if (length < (num(s.minLength) ?? 0)) return false;
  if (length > (num(s.maxLength) ?? Number.POSITIVE_INFINITY)) return false;
  return fitsPattern(s.pattern, value) ?? true;
}

function checkArray(value: readonly Json[], s: JsonObject, root: Schema): boolean {
  if (value.length < (num(s.minItems) ?? 0)) return false;
  if (value.length > (num(s.maxItems) ?? Number.POSITIVE_INFINITY)) return false;
  if (s.uniqueItems === true) spend(value.length ** 2 / 8);
  if (
    s.uniqueItems === true &&
    value.some((a, i) => value.slice(0, i).some((b) => sameJson(a, b)))
  ) {
    return false;
  }
  const first = list(Array.isArray(s.items) ? s.items : s.prefixItems);
  const rest = Array.isArray(s.items) ? s.additionalItems : s.items;
  if (isSchema(s.contains)) {
    const contains = s.contains;
    const hits = value.filter((item) => satisfies(item, contains, root)).length;
    if (hits < (num(s.minContains) ?? 1)) return false;
    if (hits > (num(s.maxContains) ?? Number.POSITIVE_INFINITY)) return false;
  }
  return value.every((item, i) =>
    satisfies(item, first[i] ?? (isSchema(rest) ? rest : true), root),
  );
}

/** The schemas that speak of one property, `additionalProperties` included. */
export function propertySchemas(key: string, s: JsonObject): readonly Schema[] {
  const found: Schema[] = [];
  const named = isObject(s.properties) ? memberOf(s.properties, key) : undefined;
  if (isSchema(named)) found.push(named);
  if (isObject(s.patternProperties)) {
    spend(Object.keys(s.patternProperties).length);
    for (const [pattern, schema] of Object.entries(s.patternProperties)) {
      if (isSchema(schema) && fitsPattern(pattern, key) === true) found.push(schema);
    }
  }
  if (found.length === 0 && isSchema(s.additionalProperties)) found.push(s.additionalProperties);
  return found;
}

function checkObject(value: JsonObject, s: JsonObject, root: Schema): boolean {
  const keys = Object.keys(value);
  spend(keys.length + (Array.isArray(s.required) ? s.required.length : 0));
  if (keys.length < (num(s.minProperties) ?? 0)) return false;
  if (keys.length > (num(s.maxProperties) ?? Number.POSITIVE_INFINITY)) return false;
  if (Array.isArray(s.required) && !s.required.every((key) => Object.hasOwn(value, String(key)))) {
    return false;
  }
  for (const key of keys) {
    if (isSchema(s.propertyNames) && !satisfies(key, s.propertyNames, root)) return false;
    for (const schema of propertySchemas(key, s)) {
      if (!satisfies(value[key]!, schema, root)) return false;
    }
    const needs = isObject(s.dependentRequired) ? memberOf(s.dependentRequired, key) : undefined;
    if (Array.isArray(needs) && !needs.every((k) => Object.hasOwn(value, String(k)))) return false;
  }
  return true;
}

/**
 * Whether the value satisfies the schema. `format` is not checked, unknown keywords are passed over,
 * and a reference that leads nowhere allows everything.
 * @param root the document that local references point into
 */
export function satisfies(value: Json, schema: Schema, root: Schema = schema): boolean {
  if (typeof schema === 'boolean') return schema;
  spend();
  const s = schema;
  if (typeof s.$ref === 'string') {
    const target = resolveRef(s.$ref, root);
    if (target !== undefined && target !== schema && !satisfies(value, target, root)) return false;
  }
  if (s.type !== undefined && !hasType(value, s.type)) return false;
  if ('const' in s && !sameJson(value, s.const)) return false;
  if (Array.isArray(s.enum)) spend(s.enum.length / 8);
  if (Array.isArray(s.enum) && !s.enum.some((one) => sameJson(one, value))) return false;
  if (typeof value === 'number' && !checkNumber(value, s)) return false;
  if (typeof value === 'string' && !checkString(value, s)) return false;
  if (Array.isArray(value) && !checkArray(value, s, root)) return false;
  if (isObject(value) && !checkObject(value, s, root)) return false;
  if (!list(s.allOf).every((one) => satisfies(value, one, root))) return false;
  if (Array.isArray(s.anyOf) && !list(s.anyOf).some((one) => satisfies(value, one, root)))
    return false;
  if (
    Array.isArray(s.oneOf) &&
    list(s.oneOf).filter((one) => satisfies(value, one, root)).length !== 1
  ) {
    return false;
  }
  if (isSchema(s.not) && satisfies(value, s.not, root)) return false;
  if (isSchema(s.if)) {
    const branch = satisfies(value, s.if, root) ? s.then : s.else;
    if (isSchema(branch) && !satisfies(value, branch, root)) return false;
  }
  return true;
}
