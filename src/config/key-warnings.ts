/** What is said of gateway keys that anybody could guess. */

import type { FileConfig } from './sections/index.ts';
import type { Findings } from './sections/resolve-providers.ts';

/** Characters; a key of fewer is found by trying, and no mask of a log knows it from a word. */
const SHORT = 8;

/** Warns of each gateway key that is too short. Never repeats one. */
export function warnOfKeys({ auth }: FileConfig, { warnings }: Findings): void {
  for (const [index, entry] of auth.keys.entries()) {
    const named = typeof entry !== 'string';
    if ((named ? entry.key : entry).length >= SHORT) continue;
    warnings.push({
      path: ['auth', 'keys', index, ...(named ? ['key'] : [])],
      message: `is short: a key of fewer than ${SHORT} characters can be guessed, and is not masked in logs`,
    });
  }
}
