/** Keys that the file leaves out: taken from the environment variables where they usually stand. */

import type { Environment } from '../environment.ts';
import type { Findings, Path } from '../file/problem.ts';
import { ONE_LINE } from '../file/schema.ts';
import { Secret } from '../secret.ts';

/**
 * The first of some variables that is set. Its value must satisfy the schema of a key in the file.
 * @param path of the entry that needs the key, for a problem with the value
 */
export function keyFromEnvironment(
  variables: readonly string[],
  environment: Environment,
  path: Path,
  findings: Findings,
): Secret | undefined {
  for (const name of variables) {
    const value = environment.variable(name);
    if (value === undefined) continue;
    if (!new RegExp(ONE_LINE.pattern, 'u').test(value)) {
      const message = `the environment variable ${name} ${ONE_LINE['x-mismatch']}`;
      findings.problems.push({ path, message, key: true });
    }
    return new Secret(value, `$${name}`);
  }
  return undefined;
}
