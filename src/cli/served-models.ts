import type { Config } from '../config/config.ts';
import { type Listen, schemeOf } from '../config/sections/listen.ts';
import type { ProtocolName } from '../conversation/types.ts';
import { urlHostOf } from '../lib/http/local-address.ts';
import { type ModelItem, models, plainRequest, route, routingTable } from '../routing/index.ts';

/**
 * Every model name without a pattern: first those of the providers, then exact names of routes and aliases, then
 * `provider/model` where there is no shorter name. The first one is the default of clients.
 */
export function modelNames(config: Config): readonly string[] {
  const items = models(config);
  const of = (kind: ModelItem['kind']) => items.filter((item) => item.kind === kind);
  // A model that has a short name is not listed as `provider/model`.
  const short = new Set([...of('plain'), ...of('rule')].map(({ id }) => id));
  const direct = of('direct').filter(({ target }) => !short.has(target?.model ?? ''));
  return [...of('plain'), ...of('rule'), ...of('alias'), ...direct].map(({ id }) => id);
}

/** Does a target serve this model? */
export function isServed(config: Config, model: string, protocol: ProtocolName): boolean {
  return route(plainRequest(model, protocol, Date.now()), routingTable(config)).ok;
}

/**
 * The model that answers for Claude Code's own model names; undefined when no target does, or when the only target
 * would be asked for a claude model that it is unlikely to have.
 */
export function claudeTarget(config: Config): string | undefined {
  const request = plainRequest('claude-sonnet-5-5', 'anthropic-messages', Date.now());
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

/** The URL of the gateway for clients on this machine. */
export function reachableUrl(listen: Listen): string {
  const { host, port } = listen;
  const everywhere = host === '0.0.0.0' || host === '::' || host === '';
  const name = everywhere ? '127.0.0.1' : urlHostOf(host);
  return `${schemeOf(listen)}://${name}:${port}`;
}

/**
 * Calls the gateway of this configuration on this machine. Its certificate is not verified: it names the host that
 * clients use, not the address of this machine.
 */
export function fetchOwn(listen: Listen, fetch: typeof globalThis.fetch): typeof globalThis.fetch {
  if (listen.tls === undefined) return fetch;
  const own: BunFetchRequestInit = { tls: { rejectUnauthorized: false } };
  const call = (input: string | URL | Request, init?: RequestInit) =>
    fetch(input, { ...init, ...own });
  return Object.assign(call, { preconnect: fetch.preconnect });
}
