/** What may not be served although it can be read: the one place that decides, for serve, check, doctor and a reload. */

import type { Config } from './config.ts';
import type { Problem } from './file/problem.ts';

/** Loopback: nobody but this machine reaches it. */
export const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || host.startsWith('127.');

/** Why this configuration is not served, in words; undefined when it is. */
export function refusalToServe({
  listen,
  auth,
}: Pick<Config, 'listen' | 'auth'>): string | undefined {
  if (isLoopback(listen.host) || auth.keys.length > 0) return undefined;
  return (
    `refusing to listen on ${listen.host} without gateway keys: anyone who can reach it could ` +
    'use your providers. Set auth.keys, or listen on 127.0.0.1.'
  );
}

/**
 * The refusal as a problem, with the place of what the loader warned of at the same key.
 * @param warnings what the loader said of this configuration
 */
export function problemOfServing(
  config: Pick<Config, 'listen' | 'auth'>,
  warnings: readonly Problem[],
): { readonly problem: Problem | undefined; readonly warnings: readonly Problem[] } {
  const message = refusalToServe(config);
  if (message === undefined) return { problem: undefined, warnings };
  const isIt = ({ path }: Problem) => path === 'listen';
  const { line, column } = warnings.find(isIt) ?? { line: 0, column: 0 };
  return {
    problem: { path: 'listen', line, column, message },
    warnings: warnings.filter((warning) => !isIt(warning)),
  };
}
