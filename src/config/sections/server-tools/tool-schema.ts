/** Schema parts that tools under `server_tools` share: timeouts, keywords, and records of secrets. */

import { Type } from '@sinclair/typebox';
import { optional, text } from '../../file/schema-types.ts';
import { Secret } from '../../secret.ts';

/** Seconds of a limit that cannot be switched off: a client waits for the result. */
export const toolTimeout = (description: string) =>
  Type.Number({ minimum: 0.1, maximum: 3600, description });

export const keywords = optional(
  Type.Array(text('A word or phrase; case does not matter.'), {
    minItems: 1,
    description: 'Offered only if the latest message of the user contains one of these.',
  }),
  'offered always',
);

/** Header or parameter values as secrets, with their names as they are or in lower case. */
export const secrets = (
  written: Readonly<Record<string, string>>,
  name = (key: string) => key,
): Readonly<Record<string, Secret>> =>
  Object.fromEntries(Object.entries(written).map(([key, value]) => [name(key), new Secret(value)]));

export const lowerCase = (key: string) => key.toLowerCase();
