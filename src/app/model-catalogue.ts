import type { ModelEntry } from '../codecs/codec.ts';
import { factsOf, priceOf } from '../config/models/model-facts.ts';
import type { Services } from '../gateway/reloadable.ts';
import { type Principal, WITHOUT_KEY } from '../keys/principal.ts';
import { memberOf } from '../lib/json/json-members.ts';
import { mayReach, modelsWith, openProviders, targetFor } from '../routing/index.ts';
import type { ModelLists } from '../upstream/model-list.ts';

/** Where a listed name leads. */
interface ModelTarget {
  readonly provider: string;
  readonly model: string;
}

export interface CatalogueOptions {
  readonly services: () => Services;
  /** What the vendors list. */
  readonly lists: ModelLists;
}

export function modelCatalogue({ services, lists }: CatalogueOptions) {
  const entry = (id: string, name: string, target: ModelTarget | undefined): ModelEntry => {
    const provider = target && memberOf(services().table.config.providers, target.provider);
    const common = { id, provider: name, created: STARTED };
    if (target === undefined || provider === undefined) return common;
    const { model } = target;
    const facts = factsOf(provider, model, lists.factsOf(provider, model));
    const price = priceOf(provider, model);
    return { ...common, ...(facts && { facts }), ...(price && { price }) };
  };
  return {
    /**
     * All models that this principal may use.
     * @param passed the gateways that the request has passed
     */
    async list(
      principal: Principal,
      passed: readonly string[] | undefined,
    ): Promise<readonly ModelEntry[]> {
      const listed = await lists.of(openProviders(services().table.config), passed);
      const { table } = services();
      return modelsWith(table.config, listed)
        .filter(({ id }) => principal === WITHOUT_KEY || mayReach(principal, id, table))
        .map(({ id, provider, target }) =>
          entry(id, provider, target ?? targetFor(table, id)?.target),
        );
    },
    /** Undefined: there is no such model, or this principal may not use it. */
    find(id: string, principal: Principal): ModelEntry | undefined {
      const { table } = services();
      const target = targetFor(table, id)?.target;
      if (target === undefined || !mayReach(principal, id, table)) return undefined;
      return entry(id, target.provider, target);
    },
  };
}

const STARTED = Math.floor(Date.now() / 1000);
