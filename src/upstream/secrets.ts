/** The credentials of a configuration, in the forms in which a vendor may repeat them. */

import type { Config } from '../config/config.ts';
import { secretsIn } from '../config/secret.ts';
import { secretLiterals } from '../lib/text/secret-literals.ts';

const known = new WeakMap<Config, readonly string[]>();

/** Every spelling of every credential in the configuration; worked out once for each. */
export function secretsOf(config: Config): readonly string[] {
  let all = known.get(config);
  if (all === undefined) {
    all = secretLiterals(secretsIn(config));
    known.set(config, all);
  }
  return all;
}
