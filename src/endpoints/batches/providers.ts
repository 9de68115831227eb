/** Which providers can have a file or a batch: those at which the key may use every model that its requests ask for. */

import { GatewayError, invalid } from '../../conversation/errors.ts';
import { affordableTargets } from '../../gateway/tries/open-account.ts';
import type { Account, Exchange } from '../../gateway/types.ts';
import {
  permittedTargets,
  plainRequest,
  type RoutedTarget,
  type RoutingTable,
  route,
  targetOf,
} from '../../routing/index.ts';
import { whyNot } from './operations.ts';
import type { VendorApi } from './vendor-objects.ts';

/** A provider, with its target for each model that is asked for. */
export interface Serving {
  readonly provider: string;
  readonly targets: ReadonlyMap<string, RoutedTarget>;
  /** Where no model is asked for. */
  readonly routed?: RoutedTarget;
}

interface Wanted {
  readonly api: VendorApi;
  /** For messages. */
  readonly path: string;
}

/**
 * In the order of the first model's targets; never empty.
 * @throws GatewayError if none has all of the models, or the key may not use one
 */
export function providersFor(
  exchange: Exchange,
  table: RoutingTable,
  account: Account | undefined,
  wanted: Wanted,
  models: readonly string[],
): readonly Serving[] {
  if (models.length === 0) return [onlyProvider(exchange, table, wanted)];
  const found = models.map((asked) => {
    const facts = {
      ...plainRequest(asked, exchange.protocol.name, Date.now()),
      headers: exchange.headers,
      affinity: exchange.sessionId || exchange.id,
      stream: false,
    };
    const decision = route(facts, table, account?.route);
    if (!decision.ok) throw decision.error;
    const { principal } = exchange;
    const permitted = permittedTargets(principal, asked, decision.routeName, decision.targets);
    const targets = account === undefined ? permitted : affordableTargets(account, permitted);
    const able = targets.filter(({ provider }) => whyNot(provider, wanted.api) === undefined);
    if (able.length === 0) throw notServed(whyNot(targets[0]!.provider, wanted.api)!, wanted);
    return { asked, targets: able };
  });
  const providers = [...new Set(found[0]!.targets.map(({ provider }) => provider.name))];
  const serving = providers.flatMap((provider): Serving[] => {
    const targets = new Map<string, RoutedTarget>();
    for (const { asked, targets: own } of found) {
      const one = own.find(({ target }) => target.provider === provider);
      if (one === undefined) return [];
      targets.set(asked, one);
    }
    return [{ provider, targets }];
  });
  if (serving.length > 0) return serving;
  const where = found.map(({ asked, targets }) => {
    const names = [...new Set(targets.map(({ target }) => target.provider))];
    return `${asked} is at ${names.join(', ')}`;
  });
  throw invalid(
    `All requests of a batch go to one provider, and no provider has all of these models: ${where.join('; ')}.`,
    'model',
  );
}

/** For a file of no model: the only provider that can have it. */
function onlyProvider({ principal }: Exchange, table: RoutingTable, wanted: Wanted): Serving {
  const all = Object.values(table.config.providers);
  const able = all.filter((provider) => whyNot(provider, wanted.api) === undefined);
  const [first, ...others] = able;
  if (first === undefined) {
    const why = all[0] === undefined ? 'None is configured' : whyNot(all[0], wanted.api)!;
    throw notServed(why, wanted);
  }
  if (others.length === 0 && principal.policy.everyModel) {
    return { provider: first.name, targets: new Map(), routed: targetOf(first, '*') };
  }
  throw invalid(
    principal.policy.everyModel
      ? `Several providers may have this file (${able.map(({ name }) => name).join(', ')}): name a model of the one that is to have it, ${wanted.path}?model=NAME.`
      : `This API key may use some models only: name the one that the file is for, ${wanted.path}?model=NAME.`,
    'model',
  );
}

const notServed = (why: string, { api, path }: Wanted): GatewayError =>
  new GatewayError(
    'not_found',
    `Provider ${why}, which has no ${path} ${api === 'openai' ? "of OpenAI's" : "of Anthropic's"}. Route the model to a provider ${api === 'openai' ? 'of an OpenAI protocol' : 'that speaks anthropic-messages, and is no cloud'}.`,
    { code: 'endpoint_not_served', param: 'model', retryable: false },
  );
