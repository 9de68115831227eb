/** Checks of what an app says in the extension: every complaint names the field, `hopgate.memory.recall`. */

import { invalid } from '../../conversation/errors.ts';
import { isObject, type Json, type JsonObject } from '../../lib/json/json.ts';

/** A value with the path under which the app knows it. */
export interface Field {
  readonly at: string;
  readonly value: Json | undefined;
}

export const invalidField = (at: string, words: string) => invalid(`'${at}' ${words}`, at);

/** An object with no other keys than these. @throws GatewayError invalid_request */
export function objectWith({ at, value }: Field, keys: readonly string[]): JsonObject {
  const object = anyObject({ at, value });
  for (const key of Object.keys(object)) {
    if (!keys.includes(key)) {
      throw invalidField(`${at}.${key}`, `is not known. Known are: ${keys.join(', ')}.`);
    }
  }
  return object;
}

/** An object, whatever its keys. @throws GatewayError invalid_request */
export function anyObject({ at, value }: Field): JsonObject {
  if (!isObject(value)) throw invalidField(at, 'must be an object.');
  return value;
}

export function listField({ at, value }: Field): readonly Json[] {
  if (!Array.isArray(value)) throw invalidField(at, 'must be a list.');
  return value as readonly Json[];
}

/** Words that are not empty. */
export function textField({ at, value }: Field): string {
  if (typeof value !== 'string') throw invalidField(at, 'must be a string.');
  if (value.trim() === '') throw invalidField(at, 'must not be empty.');
  return value;
}

/** Ids are text or whole numbers (rows of a database); told apart by their text. */
export function idField(field: Field): string {
  const { value } = field;
  return typeof value === 'number' && Number.isSafeInteger(value)
    ? String(value)
    : textField(field);
}

export function booleanField({ at, value }: Field): boolean {
  if (typeof value !== 'boolean') throw invalidField(at, 'must be true or false.');
  return value;
}

export function integerField({ at, value }: Field, min: number, max: number): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < min || value > max) {
    throw invalidField(at, `must be a whole number from ${min} to ${max}.`);
  }
  return value;
}

export function choiceField<T extends string>({ at, value }: Field, words: readonly T[]): T {
  const found = words.find((word) => word === value);
  if (found === undefined) throw invalidField(at, `must be one of ${words.join(', ')}.`);
  return found;
}
