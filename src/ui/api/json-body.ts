/** Reads the JSON body of a request to the page's API: bounded, and checked against a schema. */

import type { Static, TSchema } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { GatewayError, invalid } from '../../conversation/errors.ts';
import { readUpTo } from '../../lib/http/read-up-to.ts';
import { isObject, type JsonObject, tryParse } from '../../lib/json/json.ts';
import { misfit } from './parameters.ts';

/** Bytes of a request to this API. */
const MAX_BYTES = 64 * 1024;

/** The JSON object that a request carries. @param most bytes @throws GatewayError invalid_request, too_large */
export async function readJson(request: Request, most = MAX_BYTES): Promise<JsonObject> {
  const type = request.headers.get('content-type') ?? '';
  // A page of another site can send forms and plain text without asking first, but not JSON.
  if (!/^application\/json\b/i.test(type)) {
    throw invalid('Send JSON, with "content-type: application/json".');
  }
  const large = () => new GatewayError('too_large', `The body is larger than ${most} bytes.`);
  if (Number(request.headers.get('content-length') ?? 0) > most) throw large();
  const { bytes, truncated } = await readUpTo(request.body, most);
  if (truncated) throw large();
  const value = tryParse(new TextDecoder().decode(bytes));
  if (!isObject(value)) throw invalid('The body is not a JSON object.');
  return value;
}

/**
 * The body as its schema describes it, with defaults. A member that is null or an empty text counts as left out.
 * @throws GatewayError invalid_request for the first member that does not fit
 */
export function checked<T extends TSchema>(schema: T, body: JsonObject): Static<T> {
  const given = Object.entries(body).filter(([, value]) => value !== null && value !== '');
  const value = Value.Default(schema, Object.fromEntries(given));
  if (Value.Check(schema, value)) return value;
  throw misfit(Value.Errors(schema, value).First());
}
