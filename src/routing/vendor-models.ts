/** Adds to the configuration's model names those that vendors list and a wildcard takes, for `GET /v1/models`. */

import type { Config } from '../config/config.ts';
import type { ProviderConfig } from '../config/sections/providers.ts';
import { PROTOCOL_NAMES } from '../conversation/protocol-names.ts';
import { globTest, isGlob } from '../lib/text/glob.ts';
import { type ModelItem, models } from './models.ts';
import { plainRequest, type RoutedTarget } from './request.ts';
import { type RoutingTable, route, routingTable } from './table.ts';
import { splitTarget, targetOf } from './targets.ts';

/** Names × rules. Above it a vendor's names are listed only as `provider/model`, which needs no rule. */
const MAX_LOOKUPS = 500_000;

/** The providers that take names which the configuration does not spell out: by a glob of their own, or a route's `*`. */
export function openProviders({ providers, routes }: Config): readonly ProviderConfig[] {
  const open = new Set<ProviderConfig>();
  for (const provider of Object.values(providers)) {
    if (provider.models.some(isGlob)) open.add(provider);
  }
  for (const { target } of routes.flatMap(({ to }) => to)) {
    const parts = target.includes('*') ? splitTarget(target, providers) : undefined;
    if (parts?.model.includes('*')) open.add(parts.provider);
  }
  return [...open];
}

/**
 * {@link models}, and the names that vendors list.
 * @param lists by provider: the names that its vendor lists
 */
export function modelsWith(
  config: Config,
  lists: ReadonlyMap<string, readonly string[]>,
): readonly ModelItem[] {
  const items = new Map(models(config).map((item) => [item.id, item]));
  // A separate table: the one that routes requests remembers names, and these would displace them.
  const table = routingTable(config);
  for (const provider of openProviders(config)) {
    const names = lists.get(provider.name) ?? [];
    const globs = provider.models.filter(isGlob).map(globTest);
    const tryRules = names.length * config.routes.length <= MAX_LOOKUPS;
    for (const name of names) {
      const routed = tryRules && leadsTo(table, name, provider);
      if (!routed && !globs.some((test) => test(name))) continue;
      const { target } = targetOf(provider, name);
      const add = (id: string, kind: ModelItem['kind']) => {
        if (!items.has(id)) items.set(id, { id, kind, provider: provider.name, target });
      };
      if (routed) add(name, 'vendor');
      add(`${provider.name}/${name}`, 'direct');
      if (config.modelList.claudeAliases) add(`claude-${provider.name}/${name}`, 'claude');
    }
  }
  return [...items.values()];
}

/** Whether a request with this name goes to the model of the same name of the provider. */
function leadsTo(table: RoutingTable, name: string, { name: provider }: ProviderConfig): boolean {
  return targetsOf(table, name).some(
    ({ target }) => target.provider === provider && target.model === name,
  );
}

/** The first target of a request with this name, for each protocol that a client may speak. */
function targetsOf(table: RoutingTable, name: string) {
  return PROTOCOL_NAMES.flatMap((protocol) => {
    const decision = route(plainRequest(name, protocol, Date.now()), table);
    return decision.ok ? decision.targets.slice(0, 1) : [];
  });
}

/** The first target of a request with this name; undefined when none takes it. */
export const targetFor = (table: RoutingTable, name: string): RoutedTarget | undefined =>
  targetsOf(table, name)[0];
