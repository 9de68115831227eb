/** A value for a JSON Schema, the same one each time: arguments of calls and structured answers of the demo model. */

import { isObject, type Json, type JsonObject } from '../../lib/json/json.ts';
import { memberOf, put } from '../../lib/json/json-members.ts';
import { violation } from '../../lib/json/json-schema.ts';
import { isSchema, resolve, type Schema } from '../../lib/json/json-schema-parts.ts';
import { listOf } from '../../lib/json/typed-reads.ts';

/** Values to try first for a property. An optional property that one of them fits is put in. */
export type Wishes = (name: string, schema: JsonObject, required: boolean) => readonly Json[];

// Schemas come from clients, and some have no cheap answer.
const MAX_NODES = 2000;
const MAX_WORK = 50_000;
const MAX_DEPTH = 12;
const MAX_CHOICES = 20;
const MAX_TEXT = 2000;

const FORMATS: Readonly<Record<string, string>> = {
  'date-time': '2026-01-01T12:00:00Z',
  date: '2026-01-01',
  time: '12:00:00Z',
  duration: 'P1D',
  email: 'demo@example.com',
  hostname: 'example.com',
  ipv4: '192.0.2.1',
  ipv6: '2001:db8::1',
  uri: 'https://example.com/demo',
  url: 'https://example.com/demo',
  uuid: '00000000-0000-4000-8000-000000000000',
};
/** For patterns: none is made from a pattern. */
const TEXTS = 'demo Demo DEMO a A 1 123 2026-01-01 12:00 1.0.0 en /demo #000000 a@b.example'.split(
  ' ',
);

/**
 * A value that fits the schema; undefined where none is found soon.
 * @param optional optional properties, too
 */
export function sampleOf(
  schema: Schema,
  { wishes = () => [], optional = false }: { wishes?: Wishes; optional?: boolean } = {},
): Json | undefined {
  const sampler = new Sampler(schema, wishes, optional);
  const value = sampler.make(schema, { name: '', depth: 0, nth: 0, required: true });
  return value !== undefined && sampler.fits(value, schema) ? value : undefined;
}

interface Place {
  readonly name: string;
  readonly depth: number;
  /** 0, 1, …: another value for each item of a list. */
  readonly nth: number;
  readonly required: boolean;
}

class Sampler {
  readonly #work = { left: MAX_WORK };
  #nodes = MAX_NODES;

  constructor(
    private readonly root: Schema,
    private readonly wishes: Wishes,
    private readonly optional: boolean,
  ) {}

  fits(value: Json, schema: Schema): boolean {
    return violation(value, schema, { root: this.root, work: this.#work }) === undefined;
  }

  make(schema: Schema, place: Place): Json | undefined {
    if (schema === false || place.depth > MAX_DEPTH || this.#nodes-- <= 0) return undefined;
    const own: JsonObject = schema === true ? {} : schema;
    const known = [
      ...(place.name === '' ? [] : this.wishes(place.name, own, place.required)),
      ...('const' in own ? [own.const] : []),
      ...turned(listOf(own.enum), place.nth),
      ...(place.nth === 0 ? [own.default, ...listOf(own.examples)] : []),
    ];
    const found = known.find((one) => one !== undefined && one !== null && this.fits(one, own));
    if (found !== undefined) return found;
    if ('const' in own) return own.const;
    const { $ref, allOf, anyOf, oneOf, ...rest } = own;
    const inner = { ...place, depth: place.depth + 1 };
    if (typeof $ref === 'string') {
      const target = resolve($ref, this.root);
      return target && this.make(joined([target, without(own, '$ref')]), inner);
    }
    if (allOf !== undefined) {
      return this.make(joined([without(own, 'allOf'), ...listOf(allOf).filter(isSchema)]), inner);
    }
    const choices = listOf(anyOf ?? oneOf).filter(isSchema);
    for (const one of turned(choices, place.nth)) {
      const value = this.make(joined([rest, one]), inner);
      if (value !== undefined && this.fits(value, own)) return value;
    }
    return choices.length > 0 ? undefined : this.#ofType(own, place);
  }

  #ofType(schema: JsonObject, place: Place): Json | undefined {
    const [type] = Array.isArray(schema.type) ? schema.type : [schema.type ?? typeIn(schema)];
    switch (type) {
      case 'null':
        return null;
      case 'boolean':
        return true;
      case 'integer':
      case 'number':
        return numbers(schema, place.nth).find((one) => this.fits(one, schema));
      case 'array':
        return this.#list(schema, place);
      case 'object':
        return this.#object(schema, place);
      default:
        return texts(schema, place).find((one) => this.fits(one, schema));
    }
  }

  #list(schema: JsonObject, place: Place): Json | undefined {
    const first = listOf(schema.prefixItems ?? schema.items);
    const items = isSchema(schema.items) ? schema.items : true;
    const least = Math.max(numberOf(schema.minItems, 0), isSchema(schema.contains) ? 1 : 0);
    const wanted = 'items' in schema && place.depth < MAX_DEPTH / 2 ? 1 : 0;
    const count = Math.min(Math.max(first.length, least, wanted), numberOf(schema.maxItems, 1e9));
    const out: Json[] = [];
    for (let at = 0; at < count; at++) {
      const own = at === 0 && isSchema(schema.contains) ? schema.contains : (first[at] ?? items);
      const nth = schema.uniqueItems === true ? at : 0;
      const inner = { ...place, depth: place.depth + 1, nth, required: true };
      const value = isSchema(own) ? this.make(own, inner) : undefined;
      if (value === undefined) return at >= least ? out : undefined;
      out.push(value);
    }
    return out;
  }

  #object(schema: JsonObject, place: Place): Json | undefined {
    const properties = isObject(schema.properties) ? schema.properties : {};
    const required = new Set(listOf(schema.required).map(String));
    const out: Record<string, Json> = {};
    for (const name of new Set([...Object.keys(properties), ...required])) {
      if (this.#nodes <= 0) return undefined;
      const own = memberOf(properties, name) ?? schema.additionalProperties ?? true;
      if (!isSchema(own)) continue;
      const must = required.has(name);
      if (!must && !this.#wanted(name, own, place.depth)) continue;
      const inner = { name, depth: place.depth + 1, nth: place.nth, required: must };
      const value = this.make(own, inner);
      if (value !== undefined) put(out, name, value);
      else if (must) return undefined;
    }
    return out;
  }

  #wanted(name: string, schema: Schema, depth: number): boolean {
    if (this.optional && depth < 3) return true;
    const wishes = typeof schema === 'boolean' ? [] : this.wishes(name, schema, false);
    return wishes.some((one) => this.fits(one, schema));
  }
}

const numberOf = (value: Json | undefined, otherwise: number): number =>
  typeof value === 'number' ? value : otherwise;
const without = ({ ...schema }: JsonObject, key: string): JsonObject => {
  const { [key]: _, ...rest } = schema;
  return rest;
};
/** Some of the choices, another one first for each item of a list. */
const turned = <T>(all: readonly T[], nth: number): readonly T[] =>
  [...all.slice(nth), ...all.slice(0, nth)].slice(0, MAX_CHOICES);

/** Schemas that must all hold, as one: enough to make a value, which is then checked against the whole. */
function joined(schemas: readonly Schema[]): Schema {
  if (schemas.includes(false)) return false;
  const objects = schemas.filter((one) => isObject(one));
  const all: Record<string, Json | undefined> = Object.assign({}, ...objects);
  const merged = (key: string) => objects.map((one) => one[key]).filter((one) => isObject(one));
  if (merged('properties').length > 1) {
    all.properties = Object.assign({}, ...merged('properties')) as JsonObject;
  }
  const required = objects.flatMap((one) => listOf(one.required));
  if (required.length > 0) all.required = required;
  return all as JsonObject;
}

function typeIn(schema: JsonObject): string {
  if (schema.properties !== undefined || schema.required !== undefined) return 'object';
  if (schema.items !== undefined || schema.prefixItems !== undefined) return 'array';
  return schema.minimum !== undefined || schema.multipleOf !== undefined ? 'number' : 'string';
}

function texts(schema: JsonObject, { name, nth }: Place): readonly string[] {
  const format = typeof schema.format === 'string' ? memberOf(FORMATS, schema.format) : undefined;
  const mark = nth === 0 ? '' : ` ${nth + 1}`;
  const base = `demo${name === '' ? '' : ` ${name}`}${mark}`;
  const min = numberOf(schema.minLength, 0);
  if (min > MAX_TEXT) return [];
  const long = base.padEnd(min, ' demo').slice(0, numberOf(schema.maxLength, MAX_TEXT));
  return [...(format === undefined ? [] : [format]), long, ...TEXTS];
}

function numbers(schema: JsonObject, nth: number): readonly number[] {
  const low = numberOf(schema.minimum, numberOf(schema.exclusiveMinimum, 0));
  const high = numberOf(schema.maximum, numberOf(schema.exclusiveMaximum, low + 8));
  const step = numberOf(schema.multipleOf, 1);
  const first = Math.ceil(low / step) * step;
  const last = Math.floor(high / step) * step;
  const all = [1, 2, 3, first, first + step, last, last - step, (low + high) / 2, 0];
  return nth === 0 ? all : [first + nth * step, ...all];
}
