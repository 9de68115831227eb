/** Compares parts of two configurations. */

import { Secret } from '../config/secret.ts';

/**
 * True for the same plain data, secrets compared by what they hide. Two objects of any other class are never
 * the same: their members do not show the difference.
 */
export function sameConfig(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (a instanceof Secret) return b instanceof Secret && a.reveal() === b.reveal();
  if (!isPlain(a) || !isPlain(b) || Array.isArray(a) !== Array.isArray(b)) return false;
  const names = Object.keys(a);
  if (names.length !== Object.keys(b).length) return false;
  return names.every((name) => Object.hasOwn(b, name) && sameConfig(a[name], b[name]));
}

function isPlain(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) return false;
  const maker = Object.getPrototypeOf(value);
  return maker === Object.prototype || maker === Array.prototype || maker === null;
}
