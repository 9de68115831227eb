/** Reads JSON values by their type: the value if it is of that type, else undefined. */

import { isObject, type Json, type JsonObject } from './json.ts';
import { put } from './json-members.ts';

export const text = (value: unknown): string | undefined =>
  typeof value === 'string' ? value : undefined;

export const number = (value: unknown): number | undefined =>
  typeof value === 'number' ? value : undefined;

export const flag = (value: unknown): boolean | undefined =>
  typeof value === 'boolean' ? value : undefined;

export const object = (value: unknown): JsonObject | undefined =>
  isObject(value) ? value : undefined;

export const list = (value: unknown): readonly Json[] | undefined =>
  Array.isArray(value) ? (value as readonly Json[]) : undefined;

/** The items of a list; none if the value is no list. */
export const listOf = (value: unknown): readonly Json[] => list(value) ?? [];

/** The objects in a list; none if the value is no list. */
export const objects = (value: unknown): readonly JsonObject[] =>
  Array.isArray(value) ? (value as readonly Json[]).filter(isObject) : [];

/** The object without undefined members, so that it equals what JSON would give back. */
export function compact<T extends object = JsonObject>(value: T): T {
  const copy: Record<string, unknown> = {};
  // No list of pairs: every part of every reply comes by here.
  for (const key in value) {
    const member = value[key];
    if (member !== undefined) put(copy, key, member);
  }
  return copy as T;
}
