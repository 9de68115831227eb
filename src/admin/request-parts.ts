/** Reads what requests to the admin API carry: a JSON object, a checked query, a version. */

import { GatewayError, invalid } from '../conversation/errors.ts';
import { readUpTo } from '../lib/http/read-up-to.ts';
import { isObject, type JsonObject, tryParse } from '../lib/json/json.ts';
import { suggest } from '../lib/text/did-you-mean.ts';
import { printableLine } from '../lib/text/printable-text.ts';

const MAX_BYTES = 256 * 1024;

/** The object in a body; an empty body is an empty object. @throws GatewayError invalid_request, too_large */
export async function objectIn(request: Request): Promise<JsonObject> {
  const { bytes, truncated } = await readUpTo(request.body, MAX_BYTES);
  if (truncated) {
    throw new GatewayError('too_large', `The body is larger than ${MAX_BYTES} bytes.`);
  }
  if (bytes.length === 0) return {};
  const value = tryParse(new TextDecoder().decode(bytes));
  if (!isObject(value)) throw invalid('The body is not a JSON object.');
  return value;
}

/** The query, which may hold these names only, each once. @throws GatewayError invalid_request */
export function queryOf(request: Request, names: readonly string[]): URLSearchParams {
  return onlyNames(new URL(request.url).searchParams, names);
}

/** As {@link queryOf}. @throws GatewayError invalid_request */
export function onlyNames(query: URLSearchParams, names: readonly string[]): URLSearchParams {
  for (const name of query.keys()) {
    const shown = printableLine(name, 100);
    if (!names.includes(name)) {
      const near = suggest(shown, names);
      const hint = near === undefined ? '' : ` Did you mean '${near}'?`;
      throw invalid(`'${shown}' is not a parameter here.${hint}`, shown);
    }
    if (query.getAll(name).length > 1) throw invalid(`'${shown}' is given twice.`, shown);
  }
  return query;
}

/** @throws GatewayError invalid_request */
export function wholeNumber(
  query: URLSearchParams,
  name: string,
  otherwise: number,
  most: number,
): number {
  const text = query.get(name);
  if (text === null) return otherwise;
  const value = Number(text);
  if (/^\d{1,16}$/.test(text) && value >= 1 && value <= most) return value;
  throw invalid(`'${name}' must be a whole number from 1 to ${most}.`, name);
}

/** The version in `If-Match: "3"`; undefined for none and for `*`. @throws GatewayError invalid_request */
export function ifMatch(header: string | null): number | undefined {
  if (header === null || header.trim() === '*') return undefined;
  const version = /^"?(\d{1,15})"?$/.exec(header.trim())?.[1];
  if (version === undefined) {
    throw invalid('If-Match must be the version of the key, "3".', 'If-Match');
  }
  return Number(version);
}
