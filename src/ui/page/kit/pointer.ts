/** JSON pointers, and what has places inside. */

import type { Json } from '../../../lib/json/json.ts';

/** An object or a list; a number that is kept as it was written is neither. */
export const isNested = (value: Json | undefined): value is Json & object =>
  typeof value === 'object' && value !== null && !('rawJSON' in value);

export const pointerTo = (parent: string, part: string | number) =>
  `${parent}/${String(part).replaceAll('~', '~0').replaceAll('/', '~1')}`;

/** The value at a JSON pointer. */
export function valueAt(root: Json | undefined, pointer: string): Json | undefined {
  return pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce<Json | undefined>(
      (value, part) =>
        typeof value === 'object' && value !== null
          ? (value as Readonly<Record<string, Json>>)[part]
          : undefined,
      root,
    );
}
