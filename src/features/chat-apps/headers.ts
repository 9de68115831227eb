/** Reads the extension from headers, for apps that cannot change their request bodies. */

import { invalid } from '../../conversation/errors.ts';
import { FlatHeaders, type ReadonlyHeaders } from '../../lib/http/headers.ts';
import { isObject, type Json, type JsonObject, tryParse } from '../../lib/json/json.ts';
import { editDistance } from '../../lib/text/did-you-mean.ts';

const EXTENSION = 'x-hopgate-extension';

/** Each header with its field of the extension and the reader of its value. */
const FIELDS: Readonly<
  Record<string, { readonly path: readonly [string, string?]; readonly read: ValueReader }>
> = {
  'x-hopgate-memory-space': { path: ['memory', 'space'], read: text },
  'x-hopgate-recall': { path: ['memory', 'recall'], read: text },
  'x-hopgate-max-recalls': { path: ['memory', 'max_recalls'], read: number },
  'x-hopgate-capture': { path: ['memory', 'capture'], read: boolean },
  'x-hopgate-tool-events': { path: ['tool_events'], read: boolean },
};
const NAMES = Object.keys(FIELDS);

type ValueReader = (text: string, name: string) => Json;

/** Names of spaces may contain any character, so the value is percent-encoded. */
function text(text: string, name: string): Json {
  try {
    return decodeURIComponent(text);
  } catch {
    throw invalidHeader(name, 'is not percent-encoded text.');
  }
}

function boolean(text: string, name: string): Json {
  if (text === 'true' || text === '1') return true;
  if (text === 'false' || text === '0') return false;
  throw invalidHeader(name, 'must be true or false.');
}

function number(text: string, name: string): Json {
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw invalidHeader(name, 'must be a whole number.');
}

const invalidHeader = (name: string, text: string) => invalid(`The header ${name} ${text}`, name);

/**
 * The extension of a request, merged from `x-hopgate-extension`, the single headers and the body. Of one
 * field the body's value counts first, then the single header's. Undefined where there is none of them.
 * @throws GatewayError invalid_request that names the header
 */
export function joinedExtension(
  body: JsonObject | undefined,
  headers: ReadonlyHeaders,
): JsonObject | undefined {
  if (!mentions(headers)) return body;
  refuseMisspelt(headers);
  const packed = headers.get(EXTENSION);
  const single: string[] = [];
  for (const name of NAMES) if (headers.has(name)) single.push(name);
  if (packed === null && single.length === 0) return body;
  let all: JsonObject = packed === null ? {} : unpack(packed);
  for (const name of single) {
    const { path, read } = FIELDS[name]!;
    const value = read(headers.get(name) ?? '', name);
    const [key, inner] = path;
    all = merged(all, { [key]: inner === undefined ? value : { [inner]: value } });
  }
  return body === undefined ? all : merged(all, body);
}

/** Does any header begin with `x-hopgate-`? One pass for all names. */
function mentions(headers: ReadonlyHeaders): boolean {
  const list = FlatHeaders.from(headers);
  for (let i = 0; i < list.size; i++) if (list.name(i).startsWith('x-hopgate-')) return true;
  return false;
}

/** Refuses a misspelt name of these headers; any other name may come from a proxy. @throws GatewayError */
function refuseMisspelt(headers: ReadonlyHeaders): void {
  const list = FlatHeaders.from(headers);
  for (let i = 0; i < list.size; i++) {
    const name = list.name(i);
    if (!name.startsWith('x-hopgate-') || name === EXTENSION || NAMES.includes(name)) continue;
    const meant = [EXTENSION, ...NAMES].find(
      (known) => editDistance(name, known, MAX_TYPOS) <= MAX_TYPOS,
    );
    if (meant !== undefined) {
      throw invalid(`There is no header ${name.slice(0, 100)}. Do you mean ${meant}?`, meant);
    }
  }
}

// Bounds of the report of unknown headers: their number and the length of each name.
const MAX_REPORTED = 8;
const NAME_CHARS = 100;
const NONE: readonly string[] = [];

/** Unknown headers with the gateway's prefix: they have no effect, which their sender may not know. */
export function unknownHeaders(headers: ReadonlyHeaders): readonly string[] {
  const list = FlatHeaders.from(headers);
  let names = NONE;
  for (let i = 0; i < list.size && names.length < MAX_REPORTED; i++) {
    const name = list.name(i);
    if (!name.startsWith('x-hopgate-') || name === EXTENSION || NAMES.includes(name)) continue;
    names = [...names, name.slice(0, NAME_CHARS)];
  }
  return names;
}

/** The largest edit distance of a misspelt name from the name that is meant. */
const MAX_TYPOS = 2;

function unpack(text: string): JsonObject {
  const value = tryParse(Buffer.from(text, 'base64url').toString());
  if (!isObject(value)) throw invalidHeader(EXTENSION, 'is not a JSON object in base64url.');
  return value;
}

/** Merges two levels deep: the fields of `memory` and `conversation` replace each other one by one. */
function merged(below: JsonObject, above: JsonObject): JsonObject {
  const out: Record<string, Json | undefined> = { ...below };
  for (const [key, value] of Object.entries(above)) {
    const before = out[key];
    out[key] = isObject(before) && isObject(value) ? { ...before, ...value } : value;
  }
  return out as JsonObject;
}
