/** What `GET /v1/models` shows beside the names of the configuration: those that vendors list, where a wildcard takes them. */

import type { Config } from '../config/config.ts';
import type { ProviderConfig } from '../config/sections/providers.ts';
import { PROTOCOL_NAMES } from '../conversation/protocol-names.ts';
import { globTest, isGlob } from '../lib/text/glob.ts';
import { type ModelItem, models } from './models.ts';
import { plainRequest } from './request.ts';
import { type RoutingTable, route, routingTable } from './table.ts';
import { splitTarget, targetOf } from './targets.ts';

/** Names × rules; beyond it a vendor's names are listed as `provider/model` alone, which no rule is asked for. */
const MOST_WORK = 500_000;

/** The providers that take names which the configuration does not spell out: a glob of their own, or a route's `*`. */
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
 * {@link models} with what vendors list.
 * @param lists the names that a provider's vendor gave, by provider
 */
export function modelsWith(
  config: Config,
  lists: ReadonlyMap<string, readonly string[]>,
): readonly ModelItem[] {
  const items = new Map(models(config).map((item) => [item.id, item]));
  // A table of its own: the one that requests are routed by remembers names, and has no room for all of these.
  const table = routingTable(config);
  for (const provider of openProviders(config)) {
    const names = lists.get(provider.name) ?? [];
    const globs = provider.models.filter(isGlob).map(globTest);
    const askRules = names.length * config.routes.length <= MOST_WORK;
    for (const name of names) {
      const routed = askRules && leadsTo(table, name, provider);
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

/** Whether a request of which only the name is known goes to this very model of the provider. */
function leadsTo(table: RoutingTable, name: string, { name: provider }: ProviderConfig): boolean {
  return placesOf(table, name).some(
    ({ target }) => target.provider === provider && target.model === name,
  );
}

/** The first place of a request with this name, for each protocol that a client may speak. */
function placesOf(table: RoutingTable, name: string) {
  return PROTOCOL_NAMES.flatMap((protocol) => {
    const decision = route(plainRequest(name, protocol, Date.now()), table);
    return decision.ok ? decision.targets.slice(0, 1) : [];
  });
}

/** The provider that would answer for this name, listed or not; undefined when nobody takes it. */
export const takerOf = (table: RoutingTable, name: string): string | undefined =>
  placesOf(table, name)[0]?.provider.name;
