/** Builds routes, providers and access from a configuration. A reload builds them again and reuses unchanged parts. */

import type { Config } from '../config/config.ts';
import type { Environment } from '../config/environment.ts';
import { needsKey } from '../config/sections/auth.ts';
import type { Services } from '../gateway/reloadable.ts';
import { KeyDirectory } from '../keys/directory.ts';
import type { JwtTokens } from '../keys/jwt-tokens.ts';
import { withoutKey } from '../keys/make-principal.ts';
import type { RunTimeKeys } from '../keys/run-time-keys.ts';
import type { ReadonlyHeaders } from '../lib/http/headers.ts';
import { contextOf, routingTable } from '../routing/index.ts';
import { type Access, Admins, createAccess } from '../server/auth.ts';
import type { ConnectionLimits } from '../server/connections.ts';
import type { SocketLimits } from '../server/websocket/sockets.ts';
import { ConcurrencyLimit } from '../upstream/concurrency-limit.ts';
import { demoTransport } from '../upstream/demo/index.ts';
import { answerOf } from '../upstream/fetch-transport.ts';
import { type PoolOptions, UpstreamPool } from '../upstream/pool.ts';
import { type UpstreamRequest, wholeBody } from '../upstream/transport.ts';

export interface Configured {
  /** What the gateway works with. */
  readonly services: Services;
  readonly upstreams: UpstreamPool;
  readonly access: Access;
  /** Who is asking the admin API, as {@link Admins.check}. */
  readonly admin: (headers: ReadonlyHeaders) => string;
  readonly isAdmin: (headers: ReadonlyHeaders) => boolean;
  readonly keys: KeyDirectory;
  readonly bodyBytes: number;
}

interface Outliving {
  readonly runTimeKeys: RunTimeKeys;
  readonly tokens: JwtTokens;
  readonly onCooldown: PoolOptions['onCooldown'];
  readonly replicas: PoolOptions['replicas'];
  readonly gatewayId?: PoolOptions['gatewayId'];
}

/**
 * @param outliving what outlives a configuration: keys made at run time, tokens that were seen, and who hears of
 *   cooldowns
 * @param last what is in force: open exchanges hold their places, providers that stay the same stay open
 */
export function configured(
  config: Config,
  environment: Environment,
  { runTimeKeys, tokens, onCooldown, replicas, gatewayId }: Outliving,
  last?: Configured,
): Configured {
  const { providers, limits } = config;
  const proxied = (scheme: string) => environment.proxies(scheme);
  const upstreams =
    last?.upstreams.next(providers) ??
    new UpstreamPool(
      { builtIn: { 'demo:': demo }, proxied, onCooldown, replicas, gatewayId },
      providers,
    );
  const slots = last?.services.slots ?? new ConcurrencyLimit(limits.concurrency);
  slots.resize(limits.concurrency);
  return {
    services: {
      table: routingTable(config),
      upstream: (routed) => upstreams.of(routed.provider),
      room: contextOf,
      slots,
    },
    upstreams,
    ...accessOf(config, runTimeKeys, tokens),
    bodyBytes: limits.bodyBytes,
  };
}

/** The transport of the built-in demo model. */
const demo = () => {
  const transport = demoTransport();
  return async (request: UpstreamRequest) => answerOf(await demoCall(request, transport));
};

function demoCall(
  request: UpstreamRequest,
  transport: ReturnType<typeof demoTransport>,
): Promise<Response> {
  const { url, headers, abort } = request;
  const [path = ''] = url.slice('demo:'.length).split('?', 1);
  // No endpoint that takes forms is sent here.
  const body = wholeBody(request) ?? new Uint8Array();
  return transport({ path, headers, body, signal: abort.signal });
}

export const connectionLimits = ({ limits }: Config): ConnectionLimits => ({
  idleMs: limits.idleConnectionMs,
  bodyIdleMs: limits.idleBodyMs,
  unfinishedBytes: limits.unfinishedBytes,
  runningBytes: limits.runningBytes,
});

function accessOf(
  config: Config,
  runTimeKeys: RunTimeKeys,
  tokens: JwtTokens,
): Pick<Configured, 'access' | 'admin' | 'isAdmin' | 'keys'> {
  const { auth, budgets, listen, routes } = config;
  const keys = new KeyDirectory(config, runTimeKeys);
  const admins = new Admins(auth.adminKeys);
  tokens.configure(auth.jwt, budgets, new Set(routes.map(({ name }) => name)));
  const access = createAccess({
    origins: config.listen.cors,
    host: listen.host,
    withoutKey: needsKey(auth) ? undefined : withoutKey(budgets),
    keys,
    tokens: auth.jwt === undefined ? undefined : tokens,
    admins,
  });
  return {
    access,
    keys,
    admin: (headers) => admins.check(headers, keys),
    isAdmin: (headers) => admins.has(headers),
  };
}

export const socketLimits = ({ limits, keepAliveMs }: Config): SocketLimits => ({
  connectionMs: limits.websocketMinutes * 60_000,
  bodyBytes: limits.bodyBytes,
  unfinishedBytes: limits.unfinishedBytes,
  endMs: limits.drainMs,
  keepAliveMs,
});
