/** The configuration as the program uses it: one member for each section of the file, resolved, checked and frozen. */

import type { Json } from '../lib/json/json.ts';
import { sha256Hex } from '../lib/text/sha256.ts';
import type { Environment } from './environment.ts';
import type { Findings } from './file/problem.ts';
import { type FileForm, inProgram } from './file/schema.ts';
import { type AuthConfig, resolveAuth } from './sections/auth.ts';
import { fileSchema, type OwnConfig } from './sections/index.ts';
import { resolveBudgets, type SharedBudget } from './sections/keys/budgets.ts';
import { type MemoryConfig, resolveMemory } from './sections/memory.ts';
import { type Aliases, checkAliases } from './sections/models.ts';
import { type Profiles, resolveProfiles } from './sections/profiles.ts';
import { type ProviderConfig, resolveProviders } from './sections/providers.ts';
import { type RetryConfig, resolveRetry } from './sections/retry.ts';
import { type RouteConfig, resolveRoutes } from './sections/routes.ts';
import { resolveServerTools, type ServerToolsConfig } from './sections/server-tools/index.ts';
import type { ProviderNames } from './sections/targets.ts';
import { resolveTelemetry, type TelemetryConfig } from './sections/telemetry.ts';
import { checkOrigins, warnOfOwnAddress, warnOfServing } from './servable.ts';

/** Where a configuration came from. */
export type ConfigSource =
  | { readonly kind: 'file'; readonly path: string }
  /** No file (or one without providers): keys of the environment and local servers. */
  | { readonly kind: 'discovered'; readonly path?: string }
  /** Nothing was found: the built-in `demo`. */
  | { readonly kind: 'demo'; readonly path?: string };

/** The configuration of the file, with the values that presets, the environment and other sections fill in. */
export interface Config
  extends Omit<OwnConfig, 'version' | 'timeouts' | keyof Resolved>,
    Resolved {}

interface Resolved {
  readonly source: ConfigSource;
  /** By name, in the order of the file. Never empty. */
  readonly providers: Readonly<Record<string, ProviderConfig>>;
  readonly routes: readonly RouteConfig[];
  readonly aliases: Aliases;
  readonly auth: AuthConfig;
  /** Budgets that keys share. */
  readonly budgets: readonly SharedBudget[];
  readonly serverTools: ServerToolsConfig;
  readonly retry: RetryConfig;
  readonly memory: MemoryConfig;
  readonly telemetry: TelemetryConfig;
  /** Vendor facts by profile name: the built-in profiles with those of the file laid over them. */
  readonly profiles: Profiles;
}

/** The Config, deeply frozen. It may only be used when no problem was found. */
export function resolveConfig(
  file: FileForm<typeof fileSchema>,
  source: ConfigSource,
  environment: Environment,
  findings: Findings,
): Config {
  const {
    version: _,
    timeouts,
    ...own
  } = inProgram(fileSchema, file, {
    path: [],
    environment,
    findings,
  });
  const profiles = resolveProfiles(own.profiles, findings);
  const providers = resolveProviders({ timeouts, ...own }, profiles, environment, findings);
  // Also providers that have a problem of their own: routes to them are not at fault.
  const names: ProviderNames = new Set(Object.keys(own.providers));
  const routes = resolveRoutes(own.routes, names, providers, findings);
  const routeNames = new Set(routes.map(({ name }) => name));
  const auth = resolveAuth(own.auth, environment, routeNames, findings);
  const { listen } = own;
  warnOfServing({ listen, auth }, findings);
  warnOfOwnAddress(listen, providers, findings);
  checkOrigins({ listen, auth }, findings);
  checkAliases(own.aliases, names, findings);
  return freeze({
    ...own,
    source,
    providers,
    routes,
    auth,
    budgets: resolveBudgets(own.budgets, routeNames, findings),
    serverTools: resolveServerTools(own.serverTools, names, environment, findings),
    retry: resolveRetry({}, own.retry),
    memory: resolveMemory(own.memory, own.providers, findings),
    telemetry: resolveTelemetry(own.telemetry, environment, findings),
    profiles,
  });
}

/** Freezes plain data and everything in it. */
function freeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const child of Object.values(value)) freeze(child);
  return value;
}

/**
 * 12 hex digits over all that must be equal on all replicas. Secrets count only as being there; addresses, folders,
 * processes and logs belong to one machine.
 */
export function configFingerprint({
  source: _source,
  listen: _listen,
  workers: _workers,
  log: _log,
  telemetry: _telemetry,
  samples: { dir: _dir, ...samples },
  memory: { path: _path, ...memory },
  ...rest
}: Config): string {
  const text = JSON.stringify({ ...rest, samples, memory }, inOneOrder);
  return sha256Hex(text).slice(0, 12);
}

/** Members in the order of their names: the order of a file says nothing. */
function inOneOrder(_name: string, value: Json): Json {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const members = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(members);
}
