/** Schema parts that tools under `server_tools` share. */

import { list, named, secondsFrom, string, text } from '../../file/schema.ts';

/** Seconds of a limit that cannot be switched off: a client waits for the result. */
export const toolTimeout = (description: string) => secondsFrom(0.1, 3600, description);

export const keywords = list(
  text('A word or phrase; case does not matter.'),
  'Offered only if the latest message of the user contains one of these.',
  { minItems: 1 },
).optional('offered always');

/** Names and secret values. */
export const secrets = (description: string) => named(string().secret(), description);
