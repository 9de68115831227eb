/** Server tools that are one HTTP request each, as the operator describes them. */

import { readUpTo } from '../../../../lib/http/read-up-to.ts';
import { retryHint } from '../../../../lib/http/safe-fetch.ts';
import { isObject, type Json, type JsonObject, tryParse } from '../../../../lib/json/json.ts';
import { violation } from '../../../../lib/json/json-schema.ts';
import { wordSet } from '../../../../lib/text/words.ts';
import {
  failedOutcome,
  OUTCOME_UNKNOWN,
  type ServerTool,
  type ToolContext,
  ToolError,
  type ToolOutcome,
} from '../../tool.ts';
import {
  fetchWithin,
  imageType,
  offeredFor,
  type Revealable,
  revealed,
} from '../configured-tool.ts';

export interface HttpToolOptions {
  readonly name: string;
  /** Offered where the user's latest text contains one of these; always when left out. */
  readonly keywords?: readonly string[];
  readonly description: string;
  readonly method: string;
  /** See `HttpRequestSpec`. It may be a private address, since the operator wrote it. */
  readonly url: string;
  readonly schema: JsonObject;
  readonly headers: Readonly<Record<string, Revealable>>;
  /** Added to every call. */
  readonly query: Readonly<Record<string, Revealable>>;
  readonly timeoutMs: number;
  /** Bytes read of an answer; the rest is cut off. */
  readonly maxBytes: number;
}

/** What `fetch` reports when there was no connection on which a request could go out. */
const NOT_CONNECTED = wordSet(`
  ConnectionRefused ECONNREFUSED FailedToOpenSocket ENOTFOUND EAI_AGAIN EHOSTUNREACH ENETUNREACH`);
/**
 * Methods that may be sent again when it is not known what the first request did.
 * @see https://www.rfc-editor.org/rfc/rfc9110#section-9.2.2
 */
const IDEMPOTENT: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT']);
const isRepeatable = ({ method }: HttpToolOptions) => IDEMPOTENT.has(method.toUpperCase());
const TEXT = /^(?:text\/|application\/(?:.*\+)?(?:json|xml|yaml|x-yaml|javascript|x-ndjson)$)/;
const ERROR_TEXT = 2000;

export function httpTool(options: HttpToolOptions): ServerTool {
  return {
    name: options.name,
    description: options.description,
    schema: schemaForModel(options.schema),
    ...offeredFor(options.keywords),
    limits: { timeoutMs: options.timeoutMs },
    changes: !isRepeatable(options),
    run: (args, context) => run(args, context, options),
  };
}

async function run(
  args: JsonObject,
  context: ToolContext,
  options: HttpToolOptions,
): Promise<ToolOutcome> {
  const request = buildRequest(options, args);
  for (const [name, value] of Object.entries(revealed(options.query))) {
    request.url.searchParams.set(name, value);
  }
  const signal = AbortSignal.any([context.signal, AbortSignal.timeout(options.timeoutMs)]);
  try {
    const response = await send(request, options, signal);
    return await outcome(response, options);
  } catch (thrown) {
    if (thrown instanceof ToolError) throw thrown;
    if (context.signal.aborted) throw context.signal.reason;
    // The error's message may contain the URL with a key in it.
    const { code } = thrown as { code?: unknown };
    const why = typeof code === 'string' ? ` (${code})` : '';
    const neverSent = typeof code === 'string' && NOT_CONNECTED.has(code);
    const what = signal.aborted
      ? `did not answer within ${options.timeoutMs / 1000} s`
      : neverSent || isRepeatable(options)
        ? `cannot be reached${why}`
        : `broke the connection off${why}`;
    if (neverSent || isRepeatable(options)) {
      throw new ToolError(`${options.name} ${what}.`, { retryable: true });
    }
    throw new ToolError(`${options.name} ${what}. ${OUTCOME_UNKNOWN}`);
  }
}

function send(
  request: HttpToolRequest,
  options: HttpToolOptions,
  signal: AbortSignal,
): Promise<Response> {
  const headers = revealed(options.headers);
  const payload = request.body === undefined ? undefined : bodyOf(request.body, headers);
  return fetchWithin(options.name, request.url, {
    method: options.method,
    signal,
    headers: {
      accept: 'application/json, text/*;q=0.9, */*;q=0.5',
      ...payload?.type,
      ...headers,
    },
    ...(payload === undefined ? {} : { body: payload.text }),
  });
}

interface Payload {
  readonly text: string;
  readonly type: Readonly<Record<string, string>>;
}

/** JSON, or a form where the operator's content-type says so. */
function bodyOf(body: JsonObject, headers: Readonly<Record<string, string>>): Payload {
  const type = headers['content-type'];
  if (type?.startsWith('application/x-www-form-urlencoded') !== true) {
    return { text: JSON.stringify(body), type: { 'content-type': 'application/json' } };
  }
  const form = new URLSearchParams();
  for (const [name, value] of Object.entries(body)) {
    const items = Array.isArray(value) ? value : [value];
    for (const item of items) {
      form.append(name, typeof item === 'string' ? item : JSON.stringify(item));
    }
  }
  return { text: form.toString(), type: {} };
}

async function outcome(response: Response, options: HttpToolOptions): Promise<ToolOutcome> {
  const [mime = '', ...parameters] = (response.headers.get('content-type') ?? '').split(';');
  const type = mime.trim().toLowerCase();
  const { bytes, truncated } = await readUpTo(response.body, options.maxBytes);
  const log = { status: response.status, bytes: bytes.length, truncated };
  const mediaType = imageType(type);
  if (response.ok && mediaType !== undefined && !truncated) {
    const data = Buffer.from(bytes).toString('base64');
    return {
      ok: true,
      payload: { status: response.status, mediaType },
      text: `(an image, ${mediaType})`,
      media: [{ type: 'media', media: 'image', source: { type: 'base64', mediaType, data } }],
      log,
    };
  }
  const readable = TEXT.test(type) || (type === '' && !bytes.subarray(0, 1024).includes(0));
  const text = readable ? decoded(bytes, parameters) : '';
  if (!response.ok) {
    const { status } = response;
    const isUnknown = status >= 500 && status !== 503 && !isRepeatable(options);
    const retryable = status === 429 || (status >= 500 && !isUnknown);
    const errorText =
      text.trim() === '' ? '' : `: ${text.trim().slice(0, ERROR_TEXT).toWellFormed()}`;
    const later = retryHint(response.headers.get('retry-after'));
    const message = `${options.name} answered with HTTP status ${status}${later}${errorText}${isUnknown ? `\n${OUTCOME_UNKNOWN}` : ''}`;
    const code = status === 429 ? 'too_many_requests' : 'unavailable';
    return failedOutcome(options.name, message, { retryable, code, log });
  }
  if (!readable && bytes.length > 0) {
    throw new ToolError(
      `${options.name} answered with ${type || 'binary data'}, which is not text.`,
    );
  }
  const mark = truncated ? `\n[cut off after ${options.maxBytes} bytes]` : '';
  const parsed = truncated ? undefined : tryParse(text);
  return { ok: true, payload: parsed ?? text + mark, text: text + mark || '(no content)', log };
}

/** Decodes with the charset that the answer names; UTF-8 where it names none or an unknown one. */
function decoded(bytes: Uint8Array, parameters: readonly string[]): string {
  for (const parameter of parameters) {
    const charset = /^\s*charset\s*=\s*"?([\w.:-]{1,40})/i.exec(parameter.slice(0, 100))?.[1];
    if (charset === undefined) continue;
    try {
      return new TextDecoder(charset as Bun.Encoding).decode(bytes);
    } catch {
      break;
    }
  }
  return new TextDecoder().decode(bytes);
}

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
