/** The extension in headers, for apps that cannot change the bodies they send. */

import { invalid } from '../../conversation/errors.ts';
import { FlatHeaders, type ReadonlyHeaders } from '../../lib/http/headers.ts';
import { isObject, type Json, type JsonObject, tryParse } from '../../lib/json/json.ts';
import { editDistance } from '../../lib/text/did-you-mean.ts';

const EXTENSION = 'x-hopgate-extension';

/** Header → the field of the extension that it is, and how its text is read. */
const FIELDS: Readonly<
  Record<string, { readonly path: readonly [string, string?]; readonly read: Reader }>
> = {
  'x-hopgate-memory-space': { path: ['memory', 'space'], read: words },
  'x-hopgate-recall': { path: ['memory', 'recall'], read: words },
  'x-hopgate-max-recalls': { path: ['memory', 'max_recalls'], read: number },
  'x-hopgate-capture': { path: ['memory', 'capture'], read: flag },
  'x-hopgate-tool-events': { path: ['tool_events'], read: flag },
};
const NAMES = Object.keys(FIELDS);

type Reader = (text: string, name: string) => Json;

/** Spaces may hold any character: what a header cannot say is percent-encoded. */
function words(text: string, name: string): Json {
  try {
    return decodeURIComponent(text);
  } catch {
    throw wrong(name, 'is not percent-encoded text.');
  }
}

function flag(text: string, name: string): Json {
  if (text === 'true' || text === '1') return true;
  if (text === 'false' || text === '0') return false;
  throw wrong(name, 'must be true or false.');
}

function number(text: string, name: string): Json {
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw wrong(name, 'must be a whole number.');
}

const wrong = (name: string, text: string) => invalid(`The header ${name} ${text}`, name);

/**
 * The extension of a request: what `x-hopgate-extension` holds, under it the single headers, and the
 * body's own fields over both. Undefined where none of them is there.
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
    all = over(all, { [key]: inner === undefined ? value : { [inner]: value } });
  }
  return body === undefined ? all : over(all, body);
}

/** One look for all of the names. */
function mentions(headers: ReadonlyHeaders): boolean {
  const list = FlatHeaders.from(headers);
  for (let i = 0; i < list.size; i++) if (list.name(i).startsWith('x-hopgate-')) return true;
  return false;
}

/** A name that is nearly one of these is one, misspelt; any other may be a proxy's. @throws GatewayError */
function refuseMisspelt(headers: ReadonlyHeaders): void {
  const list = FlatHeaders.from(headers);
  for (let i = 0; i < list.size; i++) {
    const name = list.name(i);
    if (!name.startsWith('x-hopgate-') || name === EXTENSION || NAMES.includes(name)) continue;
    const meant = [EXTENSION, ...NAMES].find(
      (known) => editDistance(name, known, MOST_SLIPS) <= MOST_SLIPS,
    );
    if (meant !== undefined) {
      throw invalid(`There is no header ${name.slice(0, 100)}. Do you mean ${meant}?`, meant);
    }
  }
}

// Of the names that mean nothing so many are told, and so much of each.
const MOST_TOLD = 8;
const NAME_CHARS = 100;
const NONE: readonly string[] = [];

/** Headers that begin like the gateway's own and are none: who sent one may believe that it does something. */
export function unknownHeaders(headers: ReadonlyHeaders): readonly string[] {
  const list = FlatHeaders.from(headers);
  let names = NONE;
  for (let i = 0; i < list.size && names.length < MOST_TOLD; i++) {
    const name = list.name(i);
    if (!name.startsWith('x-hopgate-') || name === EXTENSION || NAMES.includes(name)) continue;
    names = [...names, name.slice(0, NAME_CHARS)];
  }
  return names;
}

/** Edits between a misspelt header name and the one that is meant. */
const MOST_SLIPS = 2;

function unpack(text: string): JsonObject {
  const value = tryParse(Buffer.from(text, 'base64url').toString());
  if (!isObject(value)) throw wrong(EXTENSION, 'is not a JSON object in base64url.');
  return value;
}

/** Two levels deep: the fields of `memory` and `conversation` are laid over one by one. */
function over(below: JsonObject, above: JsonObject): JsonObject {
  const out: Record<string, Json | undefined> = { ...below };
  for (const [key, value] of Object.entries(above)) {
    const before = out[key];
    out[key] = isObject(before) && isObject(value) ? { ...before, ...value } : value;
  }
  return out as JsonObject;
}
