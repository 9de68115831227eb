/** Parameters of the API's routes as TypeBox schemas, and the error for one that does not fit. */

import { type TObject, Type } from '@sinclair/typebox';
import { type GatewayError, invalid } from '../../conversation/errors.ts';

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
