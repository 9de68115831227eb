/** JSON Schema (draft 2020-12, and what older drafts wrote otherwise): whether a value satisfies a schema. */

import type { LinearPattern } from '../text/linear-pattern.ts';
import { canonicalText, isObject, type Json, type JsonObject } from './json.ts';
import { memberOf } from './json-members.ts';
import { hasType, isSchema, patternOf, resolve, type Schema } from './json-schema-parts.ts';

/** What a schema does not allow in a value. */
export interface Violation {
  /** Keys and indexes below the value; empty: the value itself. */
  readonly path: readonly (string | number)[];
  /** Continues a sentence that begins with the path: `must be one of "a", "b"`. */
  readonly message: string;
}

/** Schemas and pattern steps that one check applies at most; a value that needs more is refused. */
const MAX_WORK = 400_000;
const MAX_DEPTH = 256;

export interface CheckOptions {
  /** The document that references point into; the schema itself by default. */
  readonly root?: Schema;
  /** The remaining work budget; the check counts it down. */
  readonly work?: { left: number };
}

/**
 * The first violation of the schema; undefined when the value satisfies it. `format` is an annotation, as in the
 * standard, and refuses nothing.
 * @param schema what is a problem in it by {@link schemaProblems} (`json-schema-problems.ts`) is ignored
 * @see https://json-schema.org/draft/2020-12/json-schema-validation
 */
export function violation(
  value: Json,
  schema: Schema,
  { root = schema, work = { left: MAX_WORK } }: CheckOptions = {},
): Violation | undefined {
  return new Validation(root, work).apply(value, schema, [], 0, nothingEvaluated());
}

/** The members and items of a value that a schema has evaluated, for `unevaluated…`. */
interface Evaluated {
  readonly keys: Set<string>;
  readonly items: Set<number>;
}
const nothingEvaluated = (): Evaluated => ({ keys: new Set(), items: new Set() });

type Path = readonly (string | number)[];

class Validation {
  constructor(
    private readonly root: Schema,
    private readonly work: { left: number },
  ) {}

  apply(
    value: Json,
    schema: Schema,
    path: Path,
    depth: number,
    evaluated: Evaluated,
  ): Violation | undefined {
    const no = (message: string): Violation => ({ path, message });
    if (schema === true) return undefined;
    if (schema === false) return no('is not allowed');
    if (--this.work.left < 0 || depth > MAX_DEPTH) return no('is too large to be checked');
    const own =
      this.#ofType(value, schema, no) ??
      (typeof value === 'string' ? this.#ofText(value, schema, no) : undefined) ??
      (typeof value === 'number' ? ofNumber(value, schema, no) : undefined);
    if (own !== undefined) return own;
    const mine = nothingEvaluated();
    const down = (inside: Json, one: Schema, key: string | number) =>
      this.apply(inside, one, [...path, key], depth + 1, nothingEvaluated());
    const beside = (one: Schema, into: Evaluated) => this.apply(value, one, path, depth + 1, into);
    const found =
      this.#combined(schema, mine, beside, no) ??
      (Array.isArray(value) ? this.#ofList(value, schema, mine, down, no) : undefined) ??
      (isObject(value) ? this.#ofObject(value, schema, mine, down, beside, path) : undefined);
    if (found !== undefined) return found;
    merge(evaluated, mine);
    return undefined;
  }

  #ofType(value: Json, schema: JsonObject, no: (message: string) => Violation) {
    const { type, enum: choices } = schema;
    if (value === null && schema.nullable === true) return undefined;
    if (type !== undefined && !hasType(value, type)) {
      return no(`must be of type ${[type].flat().join(' or ')}`);
    }
    if (schema.const !== undefined && !this.#isOneOf(value, [schema.const])) {
      return no(`must be ${short(JSON.stringify(schema.const))}`);
    }
    if (!Array.isArray(choices) || this.#isOneOf(value, choices)) return undefined;
    return no(`must be one of ${short(choices.map((one) => JSON.stringify(one)).join(', '))}`);
  }

  #isOneOf(value: Json, choices: readonly Json[]): boolean {
    this.work.left -= choices.length / 64;
    if (choices.includes(value)) return true;
    if (typeof value !== 'object' || value === null) return false;
    const text = canonicalText(value);
    return choices.some((one) => {
      if (typeof one !== 'object' || one === null) return false;
      const other = canonicalText(one);
      this.work.left -= (text.length + other.length) / 64;
      return other === text;
    });
  }

  #matches(source: string, text: string): boolean | undefined {
    let pattern: LinearPattern;
    try {
      pattern = patternOf(source, this.root);
    } catch {
      return true;
    }
    this.work.left -= pattern.size + Math.ceil((text.length * pattern.size) / 8);
    return this.work.left < 0 ? undefined : pattern.test(text);
  }

  #ofText(value: string, schema: JsonObject, no: (message: string) => Violation) {
    const { minLength, maxLength, pattern } = schema;
    if (typeof minLength === 'number' || typeof maxLength === 'number') {
      let length = 0;
      for (const _ of value) length++;
      if (typeof minLength === 'number' && length < minLength) {
        return no(`must have at least ${minLength} characters`);
      }
      if (typeof maxLength === 'number' && length > maxLength) {
        return no(`must have at most ${maxLength} characters`);
      }
    }
    if (typeof pattern !== 'string') return undefined;
    const fits = this.#matches(pattern, value);
    if (fits === undefined) return no('is too long to be checked');
    return fits ? undefined : no(`must match the pattern ${short(pattern)}`);
  }

  #combined(
    schema: JsonObject,
    mine: Evaluated,
    beside: (one: Schema, into: Evaluated) => Violation | undefined,
    no: (message: string) => Violation,
  ): Violation | undefined {
    const { $ref, allOf, anyOf, oneOf, not } = schema;
    const alternatives = (schemas: readonly Schema[]) => {
      let first: Violation | undefined;
      let fits = 0;
      for (const one of schemas) {
        const into = nothingEvaluated();
        const found = beside(one, into);
        if (found === undefined) {
          fits++;
          merge(mine, into);
        } else first ??= found;
      }
      return { fits, first };
    };
    if (typeof $ref === 'string') {
      const target = resolve($ref, this.root);
      const found = target === undefined ? undefined : beside(target, mine);
      if (found !== undefined) return found;
    }
    for (const one of list(allOf)) {
      const found = beside(one, mine);
      if (found !== undefined) return found;
    }
    if (Array.isArray(anyOf)) {
      const { fits, first } = alternatives(list(anyOf));
      if (fits === 0) return first ?? no('is not allowed');
    }
    if (Array.isArray(oneOf)) {
      const { fits, first } = alternatives(list(oneOf));
      if (fits === 0) return first ?? no('is not allowed');
      if (fits > 1) return no(`must fit exactly one of ${oneOf.length} schemas, and fits ${fits}`);
    }
    if (isSchema(not) && beside(not, nothingEvaluated()) === undefined) {
      // A value that could not be checked has not been shown to violate the schema.
      return this.work.left < 0 ? no('is too large to be checked') : no('is not allowed');
    }
    if (isSchema(schema.if)) {
      const into = nothingEvaluated();
      const holds = beside(schema.if, into) === undefined;
      if (this.work.left < 0) return no('is too large to be checked');
      if (holds) merge(mine, into);
      const branch = holds ? schema.then : schema.else;
      const found = isSchema(branch) ? beside(branch, mine) : undefined;
      if (found !== undefined) return found;
    }
    return undefined;
  }

  #ofList(
    value: readonly Json[],
    schema: JsonObject,
    mine: Evaluated,
    down: (inside: Json, one: Schema, key: number) => Violation | undefined,
    no: (message: string) => Violation,
  ): Violation | undefined {
    const { minItems, maxItems, contains } = schema;
    if (typeof minItems === 'number' && value.length < minItems) {
      return no(`must have at least ${minItems} items`);
    }
    if (typeof maxItems === 'number' && value.length > maxItems) {
      return no(`must have at most ${maxItems} items`);
    }
    if (schema.uniqueItems === true && new Set(value.map(canonicalText)).size < value.length) {
      return no('must not hold the same item twice');
    }
    const first = list(Array.isArray(schema.items) ? schema.items : schema.prefixItems);
    const rest = Array.isArray(schema.items) ? schema.additionalItems : schema.items;
    for (let at = 0; at < value.length; at++) {
      const one = first[at] ?? (isSchema(rest) ? rest : undefined);
      if (one === undefined) continue;
      const found = down(value[at]!, one, at);
      if (found !== undefined) return found;
      mine.items.add(at);
    }
    if (isSchema(contains)) {
      let fits = 0;
      for (let at = 0; at < value.length; at++) {
        if (down(value[at]!, contains, at) !== undefined) continue;
        fits++;
        mine.items.add(at);
      }
      const least = typeof schema.minContains === 'number' ? schema.minContains : 1;
      if (fits < least) return no(`must hold at least ${least} items of the wanted kind`);
      if (typeof schema.maxContains === 'number' && fits > schema.maxContains) {
        return no(`must hold at most ${schema.maxContains} items of that kind`);
      }
    }
    const { unevaluatedItems } = schema;
    if (!isSchema(unevaluatedItems)) return undefined;
    for (let at = 0; at < value.length; at++) {
      if (mine.items.has(at)) continue;
      const found = down(value[at]!, unevaluatedItems, at);
      if (found !== undefined) return found;
      mine.items.add(at);
    }
    return undefined;
  }

  #ofObject(
    value: JsonObject,
    schema: JsonObject,
    mine: Evaluated,
    down: (inside: Json, one: Schema, key: string) => Violation | undefined,
    beside: (one: Schema, into: Evaluated) => Violation | undefined,
    path: Path,
  ): Violation | undefined {
    const no = (message: string, at: Path = path): Violation => ({ path: at, message });
    const keys = Object.keys(value).filter((key) => value[key] !== undefined);
    const has = (key: unknown) =>
      Object.hasOwn(value, String(key)) && value[String(key)] !== undefined;
    const { minProperties, maxProperties, required } = schema;
    for (const key of Array.isArray(required) ? required : []) {
      if (!has(key)) return no('is missing', [...path, String(key)]);
    }
    if (typeof minProperties === 'number' && keys.length < minProperties) {
      return no(`must have at least ${minProperties} members`);
    }
    if (typeof maxProperties === 'number' && keys.length > maxProperties) {
      return no(`must have at most ${maxProperties} members`);
    }
    const properties = isObject(schema.properties) ? schema.properties : {};
    const patterns = isObject(schema.patternProperties)
      ? Object.entries(schema.patternProperties)
      : [];
    for (const key of keys) {
      const inside = value[key]!;
      const speaking: Schema[] = [];
      const named = memberOf(properties, key);
      if (isSchema(named)) speaking.push(named);
      for (const [pattern, one] of patterns) {
        const fits = this.#matches(pattern, key);
        if (fits === undefined) return no('is too large to be checked');
        if (fits && isSchema(one)) speaking.push(one);
      }
      if (speaking.length === 0 && isSchema(schema.additionalProperties)) {
        if (schema.additionalProperties === false) return no('is not known', [...path, key]);
        speaking.push(schema.additionalProperties);
      }
      for (const one of speaking) {
        const found = down(inside, one, key);
        if (found !== undefined) return found;
        mine.keys.add(key);
      }
      if (isSchema(schema.propertyNames)) {
        const found = down(key, schema.propertyNames, key);
        if (found !== undefined) return no(`is a name that ${found.message}`, [...path, key]);
      }
    }
    for (const keyword of ['dependentRequired', 'dependentSchemas', 'dependencies']) {
      const rules = schema[keyword];
      for (const [key, rule] of isObject(rules) ? Object.entries(rules) : []) {
        if (!has(key)) continue;
        if (Array.isArray(rule)) {
          const missing = rule.find((one) => !has(one));
          if (missing !== undefined) {
            return no(`is missing, and "${key}" needs it`, [...path, String(missing)]);
          }
        } else if (isSchema(rule)) {
          const found = beside(rule, mine);
          if (found !== undefined) return found;
        }
      }
    }
    const { unevaluatedProperties } = schema;
    if (!isSchema(unevaluatedProperties)) return undefined;
    for (const key of keys) {
      if (mine.keys.has(key)) continue;
      if (unevaluatedProperties === false) return no('is not known', [...path, key]);
      const found = down(value[key]!, unevaluatedProperties, key);
      if (found !== undefined) return found;
      mine.keys.add(key);
    }
    return undefined;
  }
}

function merge(into: Evaluated, from: Evaluated): void {
  for (const key of from.keys) into.keys.add(key);
  for (const item of from.items) into.items.add(item);
}

const list = (value: Json | undefined): readonly Schema[] =>
  Array.isArray(value) ? (value as readonly unknown[]).filter(isSchema) : [];

function ofNumber(value: number, schema: JsonObject, no: (message: string) => Violation) {
  const { minimum, maximum, exclusiveMinimum: above, exclusiveMaximum: below, multipleOf } = schema;
  if (typeof minimum === 'number') {
    // `true`: draft 4 excludes the bound itself this way.
    if (above === true && value <= minimum) return no(`must be more than ${minimum}`);
    if (value < minimum) return no(`must be at least ${minimum}`);
  }
  if (typeof maximum === 'number') {
    if (below === true && value >= maximum) return no(`must be less than ${maximum}`);
    if (value > maximum) return no(`must be at most ${maximum}`);
  }
  if (typeof above === 'number' && value <= above) return no(`must be more than ${above}`);
  if (typeof below === 'number' && value >= below) return no(`must be less than ${below}`);
  if (typeof multipleOf === 'number' && multipleOf > 0 && !isMultiple(value, multipleOf)) {
    return no(`must be a multiple of ${multipleOf}`);
  }
  return undefined;
}

/** The remainder of integers is exact; a quotient of fractions is off by the last bits at most. */
function isMultiple(value: number, step: number): boolean {
  if (Number.isInteger(step) && Number.isInteger(value)) return value % step === 0;
  const times = value / step;
  return Math.abs(times - Math.round(times)) <= Math.abs(times) * Number.EPSILON * 2;
}

const short = (text: string) =>
  text.length > 300 ? `${text.slice(0, 300).toWellFormed()} …` : text;
