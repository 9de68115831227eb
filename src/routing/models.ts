/** The models that the configuration names: the first part of what `GET /v1/models` lists. */

import type { Config } from '../config/config.ts';
import type { Target } from '../conversation/target.ts';
import { isGlob } from '../lib/text/glob.ts';
import { splitTarget, targetOf } from './targets.ts';

export interface ModelItem {
  readonly id: string;
  /** The provider that serves it; '' when only the routes decide. */
  readonly provider: string;
  /**
   * plain: a provider lists it; rule: a route has it as a condition; alias: from the configuration;
   * direct: `provider/model`; claude: the same with `claude-` before it; vendor: the vendor lists it,
   * and a wildcard takes it.
   */
  readonly kind: 'plain' | 'rule' | 'alias' | 'direct' | 'claude' | 'vendor';
  /** The target of a request with this name; left out when the routes decide. */
  readonly target?: Target;
}

/** Every name in the configuration, none twice: aliases, names in routes, plain names, then `provider/model`. */
export function models(config: Config): readonly ModelItem[] {
  const items = new Map<string, ModelItem>();
  const add = (item: ModelItem) => {
    if (!items.has(item.id)) items.set(item.id, item);
  };
  const own = Object.values(config.providers);
  for (const [id, to] of Object.entries(config.aliases)) {
    const parts = splitTarget(to, config.providers);
    add({
      id,
      kind: 'alias',
      provider: parts?.provider.name ?? '',
      target: parts && targetOf(parts.provider, parts.model).target,
    });
  }
  for (const id of config.routes.flatMap((route) => route.when?.model ?? [])) {
    if (isGlob(id) || id.startsWith('/')) continue;
    const lister = own.find((provider) => provider.models.includes(id));
    add({ id, kind: 'rule', provider: lister?.name ?? '' });
  }
  for (const provider of own) {
    for (const id of provider.models.filter((name) => !isGlob(name))) {
      const { target } = targetOf(provider, id);
      add({ id, kind: 'plain', provider: provider.name, target });
    }
  }
  const direct = [
    ...own.flatMap((provider) => provider.models.map((model) => `${provider.name}/${model}`)),
    ...config.routes.flatMap((route) => route.to.map(({ target }) => target)),
  ].filter((id) => !isGlob(id));
  for (const id of direct) {
    const parts = splitTarget(id, config.providers);
    if (parts === undefined) continue;
    const { target } = targetOf(parts.provider, parts.model);
    add({ id, kind: 'direct', provider: parts.provider.name, target });
    if (!config.modelList.claudeAliases) continue;
    add({ id: `claude-${id}`, kind: 'claude', provider: parts.provider.name, target });
  }
  return [...items.values()];
}
