/** Arguments of an HTTP tool as a request: where each one goes, and nothing that leads elsewhere. */

import { isObject, type Json, type JsonObject } from '../../../../lib/json/json.ts';
import { violation } from '../../../../lib/json/json-schema.ts';
import { ToolError } from '../../tool.ts';

/**
 * The fixed part of a tool. Where an argument goes is decided in this order:
 *
 * 1. `{name}` in the URL template takes the argument `name`, percent-encoded; `{+name}` keeps its
 *    slashes. In the path it must be given and not be empty; in the query, `key={name}` goes when
 *    the argument is left out.
 * 2. `x-in: query` or `x-in: body` on the property in the schema.
 * 3. Else the query for GET and DELETE, the JSON body for POST, PUT and PATCH.
 *
 * `x-name` on the property is its name in query and body. Arguments that the schema does not name
 * are left out, unless it says `additionalProperties: true`.
 */
export interface HttpRequestSpec {
  readonly method: string;
  readonly url: string;
  readonly schema: JsonObject;
}

export interface HttpToolRequest {
  readonly url: URL;
  /** Left out: no body. */
  readonly body?: JsonObject;
}

const PLACEHOLDER = /\{(\+?)([^{}]*)\}/g;

const bad = (message: string) => new ToolError(message, { code: 'invalid_tool_input' });

/** Property schemas by name. */
function propertiesOf(schema: JsonObject): Readonly<Record<string, JsonObject>> {
  if (!isObject(schema.properties)) return {};
  return Object.fromEntries(
    Object.entries(schema.properties).map(([name, one]) => [name, isObject(one) ? one : {}]),
  );
}

/** The schema as the model sees it: without the words that are for this program. */
export function schemaForModel(schema: JsonObject): JsonObject {
  if (!isObject(schema.properties)) return schema;
  const properties = Object.fromEntries(
    Object.entries(schema.properties).map(([name, property]) => {
      if (!isObject(property)) return [name, property];
      const { 'x-in': _place, 'x-name': _name, ...shown } = property;
      return [name, shown];
    }),
  );
  return { ...schema, properties };
}

/**
 * The request for these arguments, which must be as the schema wants them: it may be all that stands
 * between a model and what the operator's credentials can do.
 * @throws ToolError invalid_tool_input, in words for the model
 */
export function buildRequest(spec: HttpRequestSpec, given: JsonObject): HttpToolRequest {
  const properties = propertiesOf(spec.schema);
  checkRequired(spec.schema, given);
  const args = checked(spec.schema, given);
  const used = new Set([...spec.url.matchAll(PLACEHOLDER)].map(([, , name]) => name!));
  const url = new URL(fillUrl(spec.url, args));
  if (url.origin !== originOf(spec.url)) throw bad('These arguments lead to another host.');
  const body: Record<string, Json | undefined> = {};
  const open = spec.schema.additionalProperties === true;
  const byDefault = spec.method === 'GET' || spec.method === 'DELETE' ? 'query' : 'body';
  let hasBody = byDefault === 'body';
  for (const [name, value] of Object.entries(args)) {
    if (value === undefined || used.has(name)) continue;
    const property = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (property === undefined && !open) continue;
    const wireName = typeof property?.['x-name'] === 'string' ? property['x-name'] : name;
    if ((property?.['x-in'] ?? byDefault) === 'query') addToQuery(url, wireName, value);
    else {
      hasBody = true;
      body[wireName] = value;
    }
  }
  return hasBody ? { url, body } : { url };
}

function checkRequired(schema: JsonObject, args: JsonObject): void {
  if (!Array.isArray(schema.required)) return;
  const missing = schema.required.filter(
    (name) => typeof name === 'string' && args[name] === undefined,
  );
  if (missing.length > 0) throw bad(`Missing arguments: ${missing.join(', ')}.`);
}

/**
 * The arguments, all as the schema wants them. Null for one that need not be given says that it is left
 * out: some models must name every argument.
 */
function checked(schema: JsonObject, given: JsonObject): JsonObject {
  let args = given;
  for (;;) {
    const found = violation(args, schema);
    if (found === undefined) return args;
    const [name, ...below] = found.path;
    const required = Array.isArray(schema.required) && schema.required.includes(name as string);
    const left = typeof name === 'string' && below.length === 0 && args[name] === null;
    if (left && !required && Object.hasOwn(propertiesOf(schema), name)) {
      const { [name]: _null, ...others } = args;
      args = others;
      continue;
    }
    if (name === undefined) throw bad(`The arguments: this ${found.message}.`);
    throw bad(`The argument "${found.path.join('.').slice(0, 200)}" ${found.message}.`);
  }
}

const originOf = (template: string) => new URL(template.replace(PLACEHOLDER, 'x')).origin;

/** Query values: lists repeat their key, objects go as JSON, null as nothing. */
function addToQuery(url: URL, name: string, value: Json): void {
  if (Array.isArray(value)) for (const item of value) url.searchParams.append(name, words(item));
  else if (value !== null) url.searchParams.append(name, words(value));
}

function words(value: Json | undefined): string {
  if (typeof value === 'string') return value;
  return value === undefined || value === null ? '' : JSON.stringify(value);
}

function fillUrl(template: string, args: JsonObject): string {
  const cut = template.indexOf('?');
  const path = cut < 0 ? template : template.slice(0, cut);
  const filled = path.replace(PLACEHOLDER, (_whole, plus: string, name: string) => {
    const text = words(args[name]);
    if (text === '') throw bad(`The argument "${name}" must not be empty.`);
    return plus === '' ? encodeURIComponent(text.toWellFormed()) : encodePath(text);
  });
  // Checked as a whole: "{a}{b}" may come to ".." out of two harmless halves.
  const segments = filled.replace(/^https?:\/\/[^/]*/, '').split(/[/\\]/);
  if (filled !== path && segments.some((segment) => /^(?:\.|%2e){1,2}$/i.test(segment))) {
    throw bad('The path must not hold "." or ".." as a part.');
  }
  return cut < 0 ? filled : filled + fillQuery(template.slice(cut + 1), args);
}

/** Slashes stay, an empty part does not: `//host/` must not come out of it. */
function encodePath(text: string): string {
  return text
    .toWellFormed()
    .split('/')
    .filter((part) => part !== '')
    .map(encodeURIComponent)
    .join('/');
}

function fillQuery(template: string, args: JsonObject): string {
  const pairs = template.split('&').filter((pair) => {
    const names = [...pair.matchAll(PLACEHOLDER)].map(([, , name]) => name!);
    return names.every((name) => args[name] !== undefined && args[name] !== null);
  });
  if (pairs.length === 0) return '';
  const filled = pairs.map((pair) =>
    pair.replace(PLACEHOLDER, (_whole, _plus, name: string) =>
      encodeURIComponent(words(args[name]).toWellFormed()),
    ),
  );
  return `?${filled.join('&')}`;
}
