/** Lifts Bun's limit of 256 fetches at a time, where a provider is reached by fetch. */

import type { Config } from '../../config/config.ts';
import type { Environment } from '../../config/environment.ts';
import { usesFetch } from '../../upstream/pool.ts';

/** Read by Bun when a process begins, and never again. */
const LIMIT = 'BUN_CONFIG_MAX_HTTP_REQUESTS';

type Variables = Readonly<Record<string, string | undefined>>;

/** The providers whose open streams count against a limit that this process has. */
export function limitedProviders(
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
 * Where a provider needs it, the process replaces itself once, with the same pid, and with the limit
 * lifted. Costs some milliseconds, so whoever needs no fetch is spared it.
 */
export function liftLimit(
  config: Config,
  environment: Environment,
  variables: Variables,
  command: readonly string[],
): void {
  if (process.execve === undefined) return;
  if (limitedProviders(config, environment, variables).length === 0) return;
  const lifted = { ...variables, [LIMIT]: '65535' } as NodeJS.ProcessEnv;
  process.execve(process.execPath, [...command], lifted);
}
