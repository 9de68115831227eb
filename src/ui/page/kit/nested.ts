/** Which JSON values hold others. */

import { isObject, type Json } from '../../../lib/json/json.ts';

/** An object or a list; a number that is kept as it was written is neither. */
export const isNested = (value: Json | undefined): value is Json & object =>
  Array.isArray(value) || isObject(value);
