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

interface KeepingConfig {
  readonly workers: number;
  readonly limits: Pick<Config['limits'], 'unfinishedBytes' | 'runningBytes' | 'historyBytes'>;
}

/** Shares of the memory that this process may use: what is kept of a body takes twice its bytes and more. */
const UNFINISHED_SHARE = 1 / 8;
const RUNNING_SHARE = 1 / 4;
const HISTORY_SHARE = 1 / 8;
/** Bytes that all processes of this gateway may use: of the container, else of the machine; 0 = not known. */
const MEMORY = process.constrainedMemory();

/** Bytes that may be kept at a time, also in a small container. */
export function keptBytes({ limits, workers }: KeepingConfig, memory = MEMORY) {
  const most = (bytes: number, share: number) =>
    bytes === 0 || memory === 0 ? bytes : Math.min(bytes, Math.floor((memory * share) / workers));
  return {
    unfinishedBytes: most(limits.unfinishedBytes, UNFINISHED_SHARE),
    runningBytes: most(limits.runningBytes, RUNNING_SHARE),
    historyBytes: most(limits.historyBytes, HISTORY_SHARE),
  };
}

export function connectionLimits(config: Config): ConnectionLimits {
  const { limits } = config;
  const { unfinishedBytes, runningBytes } = keptBytes(config);
  return {
    idleMs: limits.idleConnectionMs,
    bodyIdleMs: limits.idleBodyMs,
    unfinishedBytes,
    runningBytes,
  };
}

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

export function socketLimits(config: Config): SocketLimits {
  const { limits, keepAliveMs } = config;
  return {
    connectionMs: limits.websocketMinutes * 60_000,
    bodyBytes: limits.bodyBytes,
    unfinishedBytes: keptBytes(config).unfinishedBytes,
    endMs: limits.drainMs,
    keepAliveMs,
  };
}
