/** Repairs JSON arguments that a model wrote wrongly, without making anything up. */

import { jsonrepair } from 'jsonrepair';
import { isObject, type JsonObject } from '../../lib/json.ts';
import { jsonValue } from './coerce-value.ts';

// A number, a key or a list that breaks off may have gone on; closing brackets add nothing.
const WHOLE_VALUE = /(?:["'}\]]|[Tt]rue|[Ff]alse|null|None)\s*$/;

/**
 * The text of the object that the broken JSON means, or undefined where it cannot be told. A text that
 * ends inside a value is not repaired: the rest of it would be made up.
 */
export function repairedText(text: string): string | undefined {
  if (!/^\s*\{/.test(text) || endsInString(text) || !WHOLE_VALUE.test(text)) return undefined;
  try {
    const fixed = jsonrepair(text);
    return isObject(jsonValue(fixed)) ? fixed : undefined;
  } catch {
    return undefined;
  }
}

/** The object that the broken JSON means, or undefined. */
export function repairJson(text: string): JsonObject | undefined {
  const fixed = repairedText(text);
  const value = fixed === undefined ? undefined : jsonValue(fixed);
  return isObject(value) ? value : undefined;
}

/** Does the text break off within a double-quoted string? */
function endsInString(text: string): boolean {
  let inside = false;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === 0x5c && inside) i++;
    else if (code === 0x22) inside = !inside;
  }
  return inside;
}
