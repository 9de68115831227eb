/** Parameters and JSON bodies of the API's routes: TypeBox schemas, bounded reading, and the error for what does not fit. */

import { type Static, type TObject, type TSchema, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { GatewayError, invalid } from '../../conversation/errors.ts';
import { readUpTo } from '../../lib/http/read-up-to.ts';
import { isObject, type JsonObject, tryParse } from '../../lib/json/json.ts';

// Every schema carries the parameter's name (title) and what is expected (description) for the error message.
// They are TypeBox's own: `t.Integer` of Elysia takes texts as well, in JSON bodies too.

/** A whole number from `least` to `most`. */
export const wholeNumber = (
  name: string,
  { least, most, fallback }: { least: number; most: number; fallback: number },
) =>
  Type.Integer({
    title: name,
    description: `a whole number from ${least} to ${most}`,
    minimum: least,
    maximum: most,
    default: fallback,
  });

/** A whole number from 0 on, for offsets. */
export const offset = (name: string) =>
  wholeNumber(name, { least: 0, most: Number.MAX_SAFE_INTEGER, fallback: 0 });

/** A text of at most 500 characters; it may be left out. */
export const shortText = (name: string) =>
  Type.Optional(Type.String({ title: name, description: 'a text', maxLength: 500 }));

/** True or false. */
export const flag = (name: string, fallback: boolean) =>
  Type.Boolean({ title: name, description: 'true or false', default: fallback });

/**
 * Options of a route whose query fits this schema. Numbers are converted here: Elysia's own conversion
 * recognizes a number out of bounds by a class name, which a minified program has lost, and lets it pass.
 */
export const queryOf = <T extends TObject>(schema: T) => ({
  query: schema,
  transform({ query }: { query: Record<string, unknown> }) {
    for (const [name, { type }] of Object.entries(schema.properties)) {
      if (type === 'integer' && query[name] !== undefined) query[name] = Number(query[name]);
    }
  },
});

/** The error for a value that does not fit one of these schemas. */
export function misfit(problem: { readonly schema?: unknown } | undefined): GatewayError {
  const { title, description } = (problem?.schema ?? {}) as {
    readonly title?: string;
    readonly description?: string;
  };
  if (title === undefined) return invalid('The request does not fit.');
  return invalid(`"${title}" must be ${description}.`, title);
}

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
