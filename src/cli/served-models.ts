/** What a configuration serves, in the words of a client: model names, and where the gateway is. */

import type { Config } from '../config/config.ts';
import type { Listen } from '../config/sections/listen.ts';
import type { ProtocolName } from '../conversation/types.ts';
import { type ModelItem, models, plainRequest, route, routingTable } from '../routing/index.ts';

/**
 * Every model name that can be written down: what the providers list, then exact names of routes and
 * aliases, then `provider/model` where nothing shorter will do. The first one is what a client gets
 * by default.
 */
export function modelNames(config: Config): readonly string[] {
  const items = models(config);
  const of = (kind: ModelItem['kind']) => items.filter((item) => item.kind === kind);
  // A name of a route leads to the same model as `provider/model` does.
  const short = new Set([...of('plain'), ...of('rule')].map(({ id }) => id));
  const direct = of('direct').filter(({ target }) => !short.has(target?.model ?? ''));
  return [...of('plain'), ...of('rule'), ...of('alias'), ...direct].map(({ id }) => id);
}

/** Does some target take this model? */
export function takes(config: Config, model: string, protocol: ProtocolName): boolean {
  return route(plainRequest(model, protocol, Date.now()), routingTable(config)).ok;
}

/**
 * The model that answers for Claude Code's own model names; undefined when no target does, or only one
 * that would be asked for a claude model it can hardly have.
 */
export function claudeTarget(config: Config): string | undefined {
  const request = plainRequest('claude-sonnet-4-5', 'anthropic-messages', Date.now());
  const decision = route(request, routingTable(config));
  const first = decision.ok ? decision.targets[0] : undefined;
  if (first === undefined) return undefined;
  const { model, protocol } = first.target;
  const plausible =
    !/claude/i.test(model) ||
    protocol === 'anthropic-messages' ||
    first.provider.baseUrl.startsWith('demo:') ||
    first.provider.models.some((name) => /claude/i.test(name));
  return plausible ? model : undefined;
}

/** The address under which a client on this machine reaches the gateway. */
export function reachableUrl({ host, port }: Listen): string {
  const everywhere = host === '0.0.0.0' || host === '::' || host === '';
  const name = everywhere ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host;
  return `http://${name}:${port}`;
}
