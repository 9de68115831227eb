/** The configuration as the program uses it: one member for each section of the file, resolved, checked and frozen. */

import type { Environment } from './environment.ts';
import type { Findings } from './file/problem.ts';
import { ms } from './file/schema-types.ts';
import { type AuthConfig, resolveAuth } from './sections/auth.ts';
import { type CategorySettings, resolveCategories } from './sections/categories.ts';
import type { ConversationConfig } from './sections/conversation.ts';
import type { FileConfig } from './sections/index.ts';
import { resolveBudgets, type SharedBudget } from './sections/keys/budgets.ts';
import { type LimitsConfig, resolveLimits } from './sections/limits.ts';
import { type Listen, resolveListen } from './sections/listen.ts';
import { type MemoryConfig, resolveMemory } from './sections/memory.ts';
import { type Aliases, resolveAliases } from './sections/models.ts';
import { type EnginesConfig, resolveEngines } from './sections/operations/engines.ts';
import { resolveSpend, type SpendConfig } from './sections/operations/money.ts';
import { type Profiles, resolveProfiles } from './sections/profiles.ts';
import { type ProviderConfig, resolveProviders } from './sections/providers.ts';
import { type RetryConfig, resolveRetry } from './sections/retry.ts';
import { type RouteConfig, resolveRoutes } from './sections/routes.ts';
import { resolveSamples, type SamplesConfig } from './sections/samples.ts';
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

export interface Config {
  readonly source: ConfigSource;
  readonly listen: Listen;
  /** By name, in the order of the file. Never empty. */
  readonly providers: Readonly<Record<string, ProviderConfig>>;
  readonly routes: readonly RouteConfig[];
  readonly aliases: Aliases;
  readonly modelList: { readonly claudeAliases: boolean };
  /** The name that answers give their model. */
  readonly answerModel: 'vendor' | 'requested';
  readonly categories: CategorySettings;
  readonly auth: AuthConfig;
  /** Models without a price. */
  readonly unpriced: 'count' | 'refuse';
  readonly spend: SpendConfig;
  readonly engines: EnginesConfig;
  /** Budgets that keys share. */
  readonly budgets: readonly SharedBudget[];
  readonly samples: SamplesConfig;
  readonly serverTools: ServerToolsConfig;
  readonly limits: LimitsConfig;
  readonly retry: RetryConfig;
  /** Silence on a client's stream after which a ping is sent; 0 = never. */
  readonly keepAliveMs: number;
  /** Processes that share the port; 1 = one. */
  readonly workers: number;
  /** Which streams are checked against their protocol as clients get them. */
  readonly validate: 'off' | 'sample' | 'all';
  readonly memory: MemoryConfig;
  readonly conversation: ConversationConfig;
  readonly telemetry: TelemetryConfig;
  readonly log: { readonly level: LogLevel; readonly format: 'auto' | 'json' | 'pretty' };
  /** Vendor facts by profile name: the built-in profiles with those of the file laid over them. */
  readonly profiles: Profiles;
}

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'silent';

/** The Config, deeply frozen. It may only be used when no problem was found. */
export function resolveConfig(
  file: FileConfig,
  source: ConfigSource,
  environment: Environment,
  findings: Findings,
): Config {
  const profiles = resolveProfiles(file.profiles, findings);
  const providers = resolveProviders(file, profiles, environment, findings);
  // Also providers that have a problem of their own: routes to them are not at fault.
  const names: ProviderNames = new Set(Object.keys(file.providers));
  const listen = resolveListen(file.listen, environment, findings);
  const routes = resolveRoutes(file.routes, names, providers, findings);
  const routeNames = new Set(routes.map(({ name }) => name));
  const auth = resolveAuth(file.auth, environment, routeNames, findings);
  warnOfServing({ listen, auth }, findings);
  warnOfOwnAddress(listen, providers, findings);
  checkOrigins({ listen, auth }, findings);
  return freeze({
    source,
    listen,
    providers,
    routes,
    aliases: resolveAliases(file.aliases, names, findings),
    modelList: { claudeAliases: file.model_list.claude_aliases },
    answerModel: file.answer_model,
    categories: resolveCategories(file.categories),
    auth,
    unpriced: file.unpriced,
    spend: resolveSpend(file.spend),
    engines: resolveEngines(file.engines, environment, findings),
    budgets: resolveBudgets(file.budgets, routeNames, findings),
    samples: resolveSamples(file.samples, environment),
    serverTools: resolveServerTools(file.server_tools, names, environment, findings),
    limits: resolveLimits(file.limits, environment),
    retry: resolveRetry({}, file.retry),
    keepAliveMs: ms(file.keep_alive),
    workers: file.workers,
    validate: file.validate,
    memory: resolveMemory(file.memory, file.providers, environment, findings),
    conversation: file.conversation,
    telemetry: resolveTelemetry(file.telemetry, environment, findings),
    log: file.log,
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
