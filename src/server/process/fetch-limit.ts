/** Lifts Bun's limit of 256 fetches at a time, where a provider is reached by fetch. */

import type { Config } from '../../config/config.ts';
import type { Environment } from '../../config/environment.ts';
import { usesFetch } from '../../upstream/pool.ts';

/** Bun reads it when a process starts, and never again. */
const LIMIT = 'BUN_CONFIG_MAX_HTTP_REQUESTS';

type Variables = Readonly<Record<string, string | undefined>>;

/** The providers that are reached by fetch, where this process still has the limit. */
export function providersUsingFetch(
  config: Config,
  environment: Environment,
  variables: Variables,
): readonly string[] {
  if (variables[LIMIT] !== undefined) return [];
  return Object.values(config.providers)
    .filter((provider) => usesFetch(provider, environment.proxies))
    .map(({ name }) => name);
}

/**
 * Where a provider is reached by fetch, the process replaces itself once, with the same pid and the limit lifted.
 * This costs some milliseconds, so it is not done where no provider needs it.
 */
export function liftFetchLimit(
  config: Config,
  environment: Environment,
  variables: Variables,
  command: readonly string[],
): void {
  if (process.execve === undefined) return;
  if (providersUsingFetch(config, environment, variables).length === 0) return;
  const lifted = { ...variables, [LIMIT]: '65535' } as NodeJS.ProcessEnv;
  process.execve(process.execPath, [...command], lifted);
}
