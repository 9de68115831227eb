/** The one text of a JSON value: equal values have equal texts. */

import { isObject, type Json } from './json.ts';

/** A text that is the same for equal values, whatever the order of their keys. */
export function canonicalText(value: Json): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  return JSON.stringify(value, (_key, inside: Json) =>
    isObject(inside)
      ? Object.fromEntries(Object.entries(inside).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inside,
  );
}
