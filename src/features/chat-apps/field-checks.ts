/** Checks of the extension's fields. Every error names its field, such as `hopgate.memory.recall`. */

import { invalid } from '../../conversation/errors.ts';
import { isObject, type Json, type JsonObject } from '../../lib/json/json.ts';
import { isTimeZone } from '../../lib/text/calendar.ts';

/** A value with its path for error messages. */
export interface Field {
  readonly at: string;
  readonly value: Json | undefined;
}

/** @param problem the rest of the sentence, such as `must be a list.` */
export const invalidField = (at: string, problem: string) => invalid(`'${at}' ${problem}`, at);

/** An object with no keys but these. @throws GatewayError invalid_request */
export function objectWith({ at, value }: Field, keys: readonly string[]): JsonObject {
  const object = anyObject({ at, value });
  for (const key of Object.keys(object)) {
    if (!keys.includes(key)) {
      throw invalidField(`${at}.${key}`, `is not known. Known fields: ${keys.join(', ')}.`);
    }
  }
  return object;
}

/** An object with any keys. @throws GatewayError invalid_request */
export function anyObject({ at, value }: Field): JsonObject {
  if (!isObject(value)) throw invalidField(at, 'must be an object.');
  return value;
}

export function listField({ at, value }: Field): readonly Json[] {
  if (!Array.isArray(value)) throw invalidField(at, 'must be a list.');
  return value as readonly Json[];
}

/** A string that is not blank. */
export function textField({ at, value }: Field): string {
  if (value === undefined) throw invalidField(at, 'is missing: it must be a string.');
  if (typeof value !== 'string') throw invalidField(at, 'must be a string.');
  if (value.trim() === '') throw invalidField(at, 'must not be empty.');
  return value;
}

/** An id: text, or a whole number (a database row), which is compared as text. */
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

export function choiceField<T extends string>({ at, value }: Field, choices: readonly T[]): T {
  const found = choices.find((choice) => choice === value);
  if (found === undefined) throw invalidField(at, `must be one of ${choices.join(', ')}.`);
  return found;
}

/** Milliseconds since 1970, or ISO 8601. */
export function timeField({ at, value }: Field): number {
  const time = typeof value === 'string' ? Date.parse(value) : value;
  if (typeof time === 'number' && Number.isFinite(time) && time >= 0) return time;
  throw invalidField(at, 'must be milliseconds since 1970 or an ISO 8601 time.');
}

export function timeZoneField(field: Field): string {
  const name = textField(field);
  if (name.length <= 100 && isTimeZone(name)) return name;
  throw invalidField(field.at, 'must be an IANA time zone, e.g. Europe/Berlin.');
}
