/** The building blocks of the file's schema (keys with a default, choices, seconds), and how their values are read. */

import { type TOptional, type TSchema, type TUnion, Type } from '@sinclair/typebox';

/**
 * A key that may be left out. The check fills in the default, so the static type is that of a key that
 * is always there.
 */
export function byDefault<T extends TSchema>(schema: T, value: unknown): T {
  return Type.Optional({ ...schema, default: value }) as unknown as T;
}

/** A key that may be left out; `otherwise` says in words what happens then. */
export function optional<T extends TSchema>(schema: T, otherwise: string) {
  return Type.Optional({ ...schema, 'x-default': otherwise } as T);
}

/** The keys of a section for one provider, which has those of the top level where it names none. */
export function inherited<P extends Record<string, TSchema>>(keys: P) {
  const own = Object.entries(keys).map(([name, schema]) => [
    name,
    optional(schema, 'that of the top level'),
  ]);
  return Object.fromEntries(own) as { readonly [K in keyof P]: TOptional<P[K]> };
}

/** One of some words. */
export function choice<const T extends readonly string[]>(values: T, description: string) {
  return Type.Unsafe<T[number]>(
    Type.Union(
      values.map((value) => Type.Literal(value)),
      { description },
    ),
  );
}

/** One value, or a list of them; {@link listOf} reads both. */
export function oneOrMore<T extends TSchema>(item: T, description: string): TUnion<[T, ListOf<T>]> {
  return Type.Union([item, Type.Array(item, { minItems: 1 }) as ListOf<T>], { description });
}
type ListOf<T extends TSchema> = ReturnType<typeof Type.Array<T>>;

/** The value of {@link oneOrMore} as a list. */
export const listOf = <T>(value: T | readonly T[] | undefined): readonly T[] | undefined =>
  value === undefined || Array.isArray(value) ? (value as readonly T[] | undefined) : [value as T];

/** A closed object: unknown keys are problems. */
export function closed<P extends Record<string, TSchema>>(properties: P, description: string) {
  return Type.Object(properties, { additionalProperties: false, description });
}

/** Seconds, fractions allowed; 0 = no limit where the description says so. */
export const seconds = (description: string) =>
  Type.Number({ minimum: 0, maximum: 2_000_000, 'x-unit': 'seconds', description });

/** The value of {@link seconds} in whole milliseconds. */
export const ms = (value: number) => Math.round(value * 1000);

export const count = (description: string, minimum = 0) =>
  Type.Integer({ minimum, maximum: Number.MAX_SAFE_INTEGER, description });

export const text = (description: string) => Type.String({ minLength: 1, description });

/** The value of a header. `lib/http/headers.ts` refuses line breaks and NUL with each request. */
export const ONE_LINE = {
  pattern: '^[^\\u0000\\r\\n]*$',
  'x-mismatch': 'holds a line break or a NUL, which no header can carry',
} as const;

/** A key, password or token. */
export const credential = (description: string) =>
  Type.String({ minLength: 1, description, ...ONE_LINE });

export const headerValue = () => Type.String({ ...ONE_LINE });

/** A whole URL without a user name, password or fragment. */
export const httpUrl = (description: string) =>
  Type.String({
    pattern: '^https?://.+$',
    'x-mismatch': 'must begin with https:// or http://',
    'x-url': 'whole',
    description,
  });

/** A day, `2027-01-31`. */
export const date = (description: string) =>
  Type.String({
    pattern: '^[0-9]{4}-[0-9]{2}-[0-9]{2}$',
    'x-mismatch': 'must be a date such as 2027-01-31',
    'x-date': true,
    description,
  });

export const flag = (description: string) => Type.Boolean({ description });

/** Free names to values. */
export const named = <T extends TSchema>(value: T, description: string, pattern = '^.+$') =>
  Type.Record(Type.String({ pattern }), value, { description, additionalProperties: false });
