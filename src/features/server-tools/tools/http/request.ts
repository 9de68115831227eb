/** Builds the request of an HTTP tool: puts each argument in its place and keeps the request on its host. */

import { isObject, type Json, type JsonObject } from '../../../../lib/json/json.ts';
import { violation } from '../../../../lib/json/json-schema.ts';
import { ToolError } from '../../tool.ts';

/**
 * The fixed part of a tool. Where an argument goes is decided in this order:
 *
 * 1. `{name}` in the URL template is replaced by the argument `name`, percent-encoded; `{+name}` keeps
 *    slashes. In the path the argument is required and must not be empty; in the query, `key={name}`
 *    is left out together with its argument.
 * 2. `x-in: query` or `x-in: body` on the property in the schema.
 * 3. Otherwise the query for GET and DELETE, the JSON body for POST, PUT and PATCH.
 *
 * `x-name` on the property is its name in query and body. Arguments that the schema does not declare
 * are left out, unless the schema says `additionalProperties: true`.
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

const invalidArguments = (message: string) =>
  new ToolError(message, { code: 'invalid_tool_input' });

/** Property schemas by name. */
function propertiesOf(schema: JsonObject): Readonly<Record<string, JsonObject>> {
  if (!isObject(schema.properties)) return {};
  return Object.fromEntries(
    Object.entries(schema.properties).map(([name, one]) => [name, isObject(one) ? one : {}]),
  );
}

/** The schema for the model: without the `x-` keywords that are for this program. */
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
 * The request for these arguments. They must match the schema, which may be the only limit on what a
 * model can do with the operator's credentials.
 * @throws ToolError invalid_tool_input, with a message for the model
 */
export function buildRequest(spec: HttpRequestSpec, given: JsonObject): HttpToolRequest {
  const properties = propertiesOf(spec.schema);
  checkRequired(spec.schema, given);
  const args = checkedArguments(spec.schema, given);
  const used = new Set([...spec.url.matchAll(PLACEHOLDER)].map(([, , name]) => name!));
  const url = new URL(fillUrl(spec.url, args));
  if (url.origin !== originOf(spec.url))
    throw invalidArguments('These arguments would send the request to another host.');
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
  if (missing.length > 0) throw invalidArguments(`Missing arguments: ${missing.join(', ')}.`);
}

/**
 * The arguments, checked against the schema. Null for an optional argument means that it is left out:
 * some models must name every argument.
 */
function checkedArguments(schema: JsonObject, given: JsonObject): JsonObject {
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
    if (name === undefined) throw invalidArguments(`The arguments: this ${found.message}.`);
    throw invalidArguments(
      `The argument "${found.path.join('.').slice(0, 200)}" ${found.message}.`,
    );
  }
}

const originOf = (template: string) => new URL(template.replace(PLACEHOLDER, 'x')).origin;

/** Adds a query value: a list repeats its key, an object becomes JSON, null is left out. */
function addToQuery(url: URL, name: string, value: Json): void {
  if (Array.isArray(value)) for (const item of value) url.searchParams.append(name, asText(item));
  else if (value !== null) url.searchParams.append(name, asText(value));
}

function asText(value: Json | undefined): string {
  if (typeof value === 'string') return value;
  return value === undefined || value === null ? '' : JSON.stringify(value);
}

function fillUrl(template: string, args: JsonObject): string {
  const cut = template.indexOf('?');
  const path = cut < 0 ? template : template.slice(0, cut);
  const filled = path.replace(PLACEHOLDER, (_whole, plus: string, name: string) => {
    const text = asText(args[name]);
    if (text === '') throw invalidArguments(`The argument "${name}" must not be empty.`);
    return plus === '' ? encodeURIComponent(text.toWellFormed()) : encodePath(text);
  });
  // Checked as a whole: two harmless values can form ".." in "{a}{b}".
  const segments = filled.replace(/^https?:\/\/[^/]*/, '').split(/[/\\]/);
  if (filled !== path && segments.some((segment) => /^(?:\.|%2e){1,2}$/i.test(segment))) {
    throw invalidArguments('The path must not contain "." or ".." as a segment.');
  }
  return cut < 0 ? filled : filled + fillQuery(template.slice(cut + 1), args);
}

/** Keeps slashes and drops empty segments, so that no `//host/` can result. */
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
      encodeURIComponent(asText(args[name]).toWellFormed()),
    ),
  );
  return `?${filled.join('&')}`;
}
