/** Which readable configurations are not served: the one place that decides, for serve, check, doctor and a reload. */

import { isLoopback } from '../lib/http/local-address.ts';
import type { Findings, Problem } from './file/problem.ts';
import { type AuthConfig, needsKey } from './sections/auth.ts';
import type { Listen } from './sections/listen.ts';

/** The parts of a configuration on which this depends. */
interface Exposure {
  readonly listen: Listen;
  readonly auth: AuthConfig;
}

/** Whether other machines can reach the server, and need no key. */
const isExposed = ({ listen, auth }: Exposure): boolean =>
  !needsKey(auth) && !isLoopback(listen.host);

/** Warns of a configuration that will not be served; it can still be read, checked and compared. */
export function warnOfExposure(exposure: Exposure, { warnings }: Findings): void {
  if (!isExposed(exposure)) return;
  warnings.push({
    path: ['listen'],
    message:
      'every client that reaches this address can use your providers: set auth.keys, or listen on 127.0.0.1',
  });
}

/** Why this configuration is not served, as a message; undefined when it is. */
export function refusalToServe(exposure: Exposure): string | undefined {
  if (!isExposed(exposure)) return undefined;
  return (
    `refusing to listen on ${exposure.listen.host} without gateway keys: anyone who can reach it could ` +
    'use your providers. Set auth.keys, or listen on 127.0.0.1.'
  );
}

/**
 * The refusal as a problem, at the position of the loader's warning about the same key.
 * @param warnings those of the loader for this configuration
 * @returns the problem, and the warnings without the one that it replaces
 */
export function problemOfServing(
  exposure: Exposure,
  warnings: readonly Problem[],
): { readonly problem: Problem | undefined; readonly warnings: readonly Problem[] } {
  const message = refusalToServe(exposure);
  if (message === undefined) return { problem: undefined, warnings };
  const isSame = ({ path }: Problem) => path === 'listen';
  const { line, column } = warnings.find(isSame) ?? { line: 0, column: 0 };
  return {
    problem: { path: 'listen', line, column, message },
    warnings: warnings.filter((warning) => !isSame(warning)),
  };
}
