/** The access check of a gateway with these keys, from the text of a configuration. */

import type { Config } from '../../src/config/config.ts';
import { environmentFrom } from '../../src/config/environment.ts';
import { parseConfig } from '../../src/config/load.ts';
import { needsKey } from '../../src/config/sections/auth.ts';
import { KeyDirectory } from '../../src/keys/directory.ts';
import { withoutKey } from '../../src/keys/make-principal.ts';
import type { Principal } from '../../src/keys/principal.ts';
import type { RunTimeKeys } from '../../src/keys/run-time-keys.ts';
import type { ReadonlyHeaders } from '../../src/lib/http/headers.ts';
import { Admins, createAccess } from '../../src/server/auth.ts';

/** @throws Error with the problems of the configuration */
export function configWith(more: Record<string, unknown>): Config {
  const providers = { p: { protocol: 'openai-chat', base_url: 'http://up.test', models: ['*'] } };
  const text = JSON.stringify({ providers, ...more });
  const loaded = parseConfig(text, 'test.yaml', environmentFrom({}, '/nowhere'));
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  return loaded.config;
}

/** @param auth the section of the configuration */
export function accessWith(
  auth: Record<string, unknown>,
  { runTime, ...more }: { runTime?: RunTimeKeys; budgets?: unknown; routes?: unknown } = {},
): (headers: ReadonlyHeaders) => Principal {
  const config = configWith({ auth, ...more });
  const access = createAccess({
    host: config.listen.host,
    withoutKey: needsKey(config.auth) ? undefined : withoutKey(config.budgets),
    keys: new KeyDirectory(config, runTime),
    admins: new Admins(config.auth.adminKeys),
  });
  // Only tokens of people take time, and there are none here.
  return (headers) => access(headers) as Principal;
}
