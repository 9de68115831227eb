/** What one configuration makes: routes, providers, access. A reload makes it anew from what there was before. */

import type { Config } from '../config/config.ts';
import type { Environment } from '../config/environment.ts';
import type { Services } from '../gateway/types.ts';
import { routingTable } from '../routing/index.ts';
import { type Access, createAccess } from '../server/auth.ts';
import type { ConnectionLimits } from '../server/connections.ts';
import { ConcurrencyLimit } from '../upstream/concurrency-limit.ts';
import { demoTransport } from '../upstream/demo/index.ts';
import { answerOf } from '../upstream/fetch-transport.ts';
import { UpstreamPool } from '../upstream/pool.ts';
import type { UpstreamRequest } from '../upstream/transport.ts';

export interface Configured {
  /** What the gateway works with. */
  readonly services: Services;
  readonly upstreams: UpstreamPool;
  readonly access: Access;
  readonly bodyBytes: number;
}

/** @param last what is in force: open exchanges hold their places, providers that stay the same stay open */
export function configured(
  config: Config,
  environment: Environment,
  last?: Configured,
): Configured {
  const { providers, limits } = config;
  const proxied = (scheme: string) => environment.proxies(scheme);
  const upstreams =
    last?.upstreams.next(providers) ??
    new UpstreamPool({ builtIn: { 'demo:': demo }, proxied }, providers);
  const slots = last?.services.slots ?? new ConcurrencyLimit(limits.concurrency);
  slots.resize(limits.concurrency);
  return {
    services: {
      table: routingTable(config),
      upstream: (routed) => upstreams.of(routed.provider),
      slots,
    },
    upstreams,
    access: createAccess({ keys: config.auth.keys, host: config.listen.host }),
    bodyBytes: limits.bodyBytes,
  };
}

/** The transport of the built-in demo model. */
const demo = () => {
  const transport = demoTransport();
  return async (request: UpstreamRequest) => answerOf(await demoCall(request, transport));
};

function demoCall(
  { url, headers, body, abort }: UpstreamRequest,
  transport: ReturnType<typeof demoTransport>,
): Promise<Response> {
  const [path = ''] = url.slice('demo:'.length).split('?', 1);
  // No endpoint that takes forms is sent here.
  const bytes = body instanceof Uint8Array ? body : new Uint8Array();
  return transport({ path, headers, body: bytes, signal: abort.signal });
}

export const connectionLimits = ({ limits }: Config): ConnectionLimits => ({
  idleMs: limits.idleConnectionMs,
  bodyIdleMs: limits.idleBodyMs,
  unfinishedBytes: limits.unfinishedBytes,
  runningBytes: limits.runningBytes,
});
