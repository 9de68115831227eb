/** Field checks with Anthropic's messages (pydantic's, after a dotted path). */

import type { Json } from '../../../src/lib/json/json.ts';
import { type Fields, hasType } from './check-schema.ts';
import { refuseWith } from './refusal.ts';

const WANTED: Readonly<Record<string, string>> = {
  string: 'Input should be a valid string',
  number: 'Input should be a valid number',
  integer: 'Input should be a valid integer',
  boolean: 'Input should be a valid boolean',
  array: 'Input should be a valid list',
  object: 'Input should be a valid dictionary',
};

/** @throws Refusal `path: message` */
export function fail(at: string, message: string): never {
  refuseWith(at === '' ? message : `${at}: ${message}`);
}

/** @throws Refusal unless `value` has the type */
export function wantType(value: Json | undefined, type: string, at: string): void {
  if (!hasType(value, type)) fail(at, WANTED[type.replace('?', '')] ?? 'Input is not valid');
}

/** Missing members first, as the vendor reports them, then unknown and ill-typed ones. */
export function fields(
  value: Record<string, Json>,
  allowed: Fields,
  required: readonly string[],
  at: string,
): void {
  const path = (key: string) => (at === '' ? key : `${at}.${key}`);
  for (const key of required) if (value[key] === undefined) fail(path(key), 'Field required');
  for (const [key, member] of Object.entries(value)) {
    const type = allowed[key];
    if (type === undefined) fail(path(key), 'Extra inputs are not permitted');
    wantType(member, type, path(key));
  }
}
